package plugin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
)

func TestWhichJobsRunAgain(t *testing.T) {
	ended := func(failed int32) *v1alpha1.HTCJob {
		j := job(v1alpha1.PhaseFailed)
		j.Spec.Script.Queue, j.Status.Failed, j.Status.Succeeded = new(int32(10)), failed, 10-failed
		return j
	}
	for name, c := range map[string]struct {
		job    *v1alpha1.HTCJob
		failed bool
		procs  string
		want   string
		words  string
	}{
		"all":                 {job: ended(2)},
		"those that failed":   {job: ended(2), failed: true, want: "failed"},
		"none has failed":     {job: ended(0), failed: true, words: "no job of it has failed"},
		"some":                {job: ended(2), procs: "9,7-8, 3", want: "3,7-9"},
		"one that is not":     {job: ended(2), procs: "10", words: "there is no job 10: they are numbered 0 to 9"},
		"one that runs":       {job: job(v1alpha1.PhaseRunning), words: "has not ended"},
		"one that is put off": {job: job(v1alpha1.PhaseSuspended), words: "set spec.suspend to false"},
	} {
		which, err := chosen(objectOf(c.job), c.failed, c.procs)
		if c.words != "" {
			require.ErrorContains(t, err, c.words, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, c.want, which, name)
	}
	j := ended(1)
	j.ResourceVersion = "12"
	at := time.Unix(1, 0)
	require.JSONEq(
		t,
		`{"metadata":{"resourceVersion":"12","annotations":{"htc.cern.ch/rerun":"1970-01-01T00:00:01Z","htc.cern.ch/rerun-procs":null}}}`,
		string(rerunPatch(objectOf(j), "", at)),
	)
	require.JSONEq(
		t,
		`{"metadata":{"resourceVersion":"12","annotations":{"htc.cern.ch/rerun":"1970-01-01T00:00:01Z","htc.cern.ch/rerun-procs":"3"}}}`,
		string(rerunPatch(objectOf(j), "3", at)),
	)
}
