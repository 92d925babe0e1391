package lifecycle

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

func TestAFailureNamesItsItemAndEndsWithTheLastLineOfItsStandardError(t *testing.T) {
	p := ledger.Proc{
		Cluster:  7,
		Proc:     5,
		ExitCode: new(1),
		Message:  "exit code 1",
		Stderr:   "Traceback\n  ...\nValueError: no such channel",
	}
	s := Situation{Job: &v1alpha1.HTCJob{}, Items: map[int]string{5: "ENERGY=13000 SEED=2"}}
	require.Equal(t, "7.5, ENERGY=13000 SEED=2: exit code 1: ValueError: no such channel", howFailed(s, p))
	require.Equal(t, "7.5: exit code 1: ValueError: no such channel", howFailed(Situation{Job: &v1alpha1.HTCJob{}}, p))

	for stderr, last := range map[string]string{
		"":  "",
		"a": ": a",
		"a\nhtcd: the callback was not delivered; the cross-check will find the return code": ": a",
		"htcd: this node has neither apptainer nor singularity; the script was not run":      ": htcd: this node has neither apptainer nor singularity; the script was not run",
		"a\n \n\t":               ": a",
		strings.Repeat("x", 300): ": " + strings.Repeat("x", 253) + "…",
	} {
		p.Stderr = stderr
		require.Equal(t, "7.5: exit code 1"+last, howFailed(Situation{Job: &v1alpha1.HTCJob{}}, p))
	}
	p.Stderr, p.Fetched = "a\n(of the output of job 7.5 HTCondor did not keep \"x\")", ledger.Incomplete
	require.Equal(t, "7.5: exit code 1: a", howFailed(Situation{Job: &v1alpha1.HTCJob{}}, p))
	removed := ledger.Proc{Cluster: 7, Message: "removed", Stderr: "a"}
	require.Equal(t, "7.0: removed", howFailed(Situation{Job: &v1alpha1.HTCJob{}}, removed), "not what it ended with")
}

func TestAnItemThatTheLedgerHasLostStaysInTheStatus(t *testing.T) {
	job := &v1alpha1.HTCJob{}
	job.Status.Failures = []v1alpha1.Failure{{JobID: "7.5", Item: "SEED=2"}}
	s := Situation{Job: job, Failures: []ledger.Proc{{Cluster: 7, Proc: 4}, {Cluster: 7, Proc: 5}}}
	failures := describeFailures(s)
	require.Empty(t, failures[0].Item)
	require.Equal(t, "SEED=2", failures[1].Item)
}

func TestTheEndOfAStandardErrorIsNewsOnce(t *testing.T) {
	p := ledger.Proc{Cluster: 7, Proc: 5, ExitCode: new(255), Message: "exit code 255", Stderr: "FATAL: no such image"}
	s := Situation{
		Job:      &v1alpha1.HTCJob{},
		Run:      &ledger.Run{State: ledger.Submitted},
		Failures: []ledger.Proc{p},
		Counts:   ledger.Counts{Failed: 1},
	}
	failed := v1alpha1.HTCJobStatus{
		Phase:    v1alpha1.PhaseFailed,
		Attempt:  1,
		Failed:   1,
		Failures: []v1alpha1.Failure{{JobID: "7.5"}},
	}
	known := *failed.DeepCopy()
	known.Failures[0].Stderr = p.Stderr
	running := v1alpha1.HTCJobStatus{Phase: v1alpha1.PhaseRunning, Attempt: 1}
	for name, c := range map[string]struct {
		before, after v1alpha1.HTCJobStatus
		want          []Event
	}{
		"it has just been fetched":           {failed, known, []Event{{true, "JobFailed", "7.5: exit code 255: FATAL: no such image"}}},
		"it was known before":                {known, known, nil},
		"it is not here yet":                 {failed, failed, nil},
		"it was here when the failure came":  {running, known, []Event{{true, "Failed", "1 of 1 job failed; 7.5: exit code 255: FATAL: no such image"}}},
		"the failure comes, and it does not": {running, failed, []Event{{true, "Failed", "1 of 1 job failed; 7.5: exit code 255: FATAL: no such image"}}},
	} {
		require.Equal(t, c.want, Events(c.before, c.after, s), name)
	}
	s.Failures[0].ExitCode = nil
	require.Empty(t, Events(failed, known, s), "what a removed job has said is not why it failed")
}
