package orphans

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/api/v1alpha1"
)

func TestADeletionThatWasSeen(t *testing.T) {
	without := &v1alpha1.HTCWorkflow{}
	with := &v1alpha1.HTCWorkflow{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{v1alpha1.Finalizer}}}
	going := with.DeepCopy()
	going.DeletionTimestamp = new(metav1.Now())
	for name, c := range map[string]struct {
		object any
		want   bool
	}{
		"its finalizer was taken away by hand":     {going, true},
		"the same, and the watch was broken off":   {cache.DeletedFinalStateUnknown{Obj: going}, true},
		"it never had a finalizer":                 {without, true},
		"when it was last seen it had none":        {cache.DeletedFinalStateUnknown{Obj: without}, false},
		"it vanished from etcd":                    {with, false},
		"it is missing when the watch begins anew": {cache.DeletedFinalStateUnknown{Obj: with}, false},
	} {
		_, was := Deleted(c.object, v1alpha1.Finalizer)
		require.Equal(t, c.want, was, name)
	}
}
