package apiserver

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/api/v1alpha1"
)

func TestWhatTheCacheDoesNotHaveIsAskedFor(t *testing.T) {
	t.Parallel()
	named := func(name string) *v1alpha1.HTCJob {
		return &v1alpha1.HTCJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	}
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	require.NoError(t, store.Add(named("cached")))
	var asked []string
	get := func(_ context.Context, namespace, name string) (*v1alpha1.HTCJob, error) {
		asked = append(asked, namespace+"/"+name)
		switch name {
		case "created":
			return named(name), nil
		case "down":
			return nil, errors.New("refused")
		}
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: v1alpha1.Resource}, name)
	}
	for _, c := range []struct {
		watched, namespace, name string
		there                    bool
		asked                    []string
	}{
		{"", "ns", "cached", true, nil},
		{"", "ns", "created", true, []string{"ns/created"}},
		{"ns", "ns", "created", true, []string{"ns/created"}},
		{"", "ns", "none", false, []string{"ns/none"}},
		{"other", "ns", "created", false, nil},
	} {
		asked = nil
		job, there, err := lookup(store, c.watched, get)(t.Context(), c.namespace, c.name)
		require.NoError(t, err)
		require.Equal(t, c.there, there, c)
		require.Equal(t, c.asked, asked, c)
		if there {
			require.Equal(t, c.name, job.Name)
		}
	}
	_, there, err := lookup(store, "", get)(t.Context(), "ns", "down")
	require.ErrorContains(t, err, "refused")
	require.False(t, there)
}
