package workflow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/target/secrets"
)

func TestASecretIsKeptAsLongAsAWorkflowMayHaveBeenSentWithIt(t *testing.T) {
	w := newWorld(t)
	w.own = []secrets.Own{
		{Namespace: "default", Name: "kinit-secret", Usual: true},
		{Namespace: "default", Name: "further"},
	}
	w.apply(newWorkflow("flow"))
	require.True(t, w.own[0].Held)
	require.False(t, w.own[1].Held, "nothing was sent with it")

	w.own[0].Deleting = true
	w.openLedger()
	w.tend("default")
	require.True(t, w.own[0].Held, "the rows are lost, and the finalizer says that there were some")

	w.delete("flow")
	for range 3 {
		w.later(recovery.AbsentTwice + time.Second)
	}
	require.Nil(t, w.flow("flow"))
	w.tend("default") // as when the informer reports the deletion
	require.False(t, w.own[0].Held)
}
