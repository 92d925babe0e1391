package job

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

// As when an older state of etcd is put back, from before it was sent.
func TestAnHTCJobThatWasDeletedAndIsThereAgainIsNotSentASecondTime(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	require.NoError(t, w.ends("one", 0, 0))
	w.schedd.Leave(1, 0)
	w.delete("one")
	require.Nil(t, w.job("one"))

	w.apply(htcjob("one"))
	w.crosscheck()
	job := w.job("one")
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase)
	require.Equal(t, int32(1), job.Status.ClusterID)
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
}
