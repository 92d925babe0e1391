package workflow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

// As when an older state of etcd is put back, from before it was sent.
func TestAnHTCWorkflowThatWasDeletedAndIsThereAgainIsNotSentASecondTime(t *testing.T) {
	w := newWorld(t)
	w.apply(oneStep("flow"))
	w.ends(1)
	w.schedd.Leave(1, 0)
	w.delete("flow")
	require.Nil(t, w.flow("flow"))

	w.apply(oneStep("flow"))
	w.later(time.Minute)
	require.Equal(t, []string{"1.0"}, w.flow("flow").Status.JobID)
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
}
