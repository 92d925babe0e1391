//go:build node

package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

func TestASecondApplyChangesNothing(t *testing.T) {
	b := newBench(t)
	site := b.Lab.Path("node", "overlay")
	b.htcd("apply", "-k", site)
	for line := range strings.Lines(b.htcd("apply", "-k", site)) {
		require.Regexp(t, ` unchanged$`, strings.TrimSpace(line))
	}
}

// updatedJobs is the number of HTCJobs during the update.
const updatedJobs = 50

// During the update the jobs are in all states: not yet applied, not yet sent, waiting, running, ending.
func TestAnUpdateUnderLoadLosesAndDoublesNothing(t *testing.T) {
	b := newBench(t)
	before := b.leader(1, "")
	require.NoError(t, parts.TagImage(t.Context(), b.Lab, "localhost/htcd:next"))
	name := func(i int) string { return fmt.Sprintf("job-%d", i) }
	for i := range updatedJobs {
		b.Create(name(i), fmt.Sprintf("sleep %d\nexit %d\n", i%10, i%3))
		switch i {
		case updatedJobs / 3:
			b.htcd("set", "image", "deployment/htcd", "htcd=localhost/htcd:next")
		case updatedJobs * 2 / 3:
			b.htcd("rollout", "status", "deployment/htcd", "--timeout="+trial.Patience.String())
			b.htcd("rollout", "restart", "deployment/htcd")
		}
	}
	b.htcd("rollout", "status", "deployment/htcd", "--timeout="+trial.Patience.String())
	after := b.leader(1, before.Name)
	require.Equal(t, "localhost/htcd:next", after.Spec.Containers[0].Image)

	ids := map[string]bool{}
	for i := range updatedJobs {
		job := b.Ended(name(i))
		want := []int32{0, 1, 0}
		if i%3 != 0 {
			want = []int32{0, 0, 1}
			require.EqualValues(t, i%3, *job.Status.Failures[0].ExitCode)
		}
		require.EqualValues(t, want, []int32{job.Status.Active, job.Status.Succeeded, job.Status.Failed}, name(i))
		require.EqualValues(t, 1, job.Status.Attempt, name(i))
		require.Len(t, job.Status.JobID, 1)
		ids[job.Status.JobID[0]] = true
	}
	require.Len(t, ids, updatedJobs)

	// HTCondor has exactly these jobs of this namespace, in the queue and in the history, and perhaps clusters whose
	// files never arrived, because the htcd that sent them was ended: they never ran.
	seen := map[string]bool{}
	constraint := fmt.Sprintf("HTCJobNamespace == %q", b.Namespace)
	ads := b.Ads(constraint, "JobStatus", "NumJobStarts", "RemoveReason")
	for _, line := range ads {
		id, what, _ := strings.Cut(line, " ")
		reason, unstarted := strings.CutPrefix(what, "3 0 ")
		if !unstarted || !crosscheck.NeverRan(condor.Job{Status: condor.Removed, RemoveReason: reason}) {
			seen[id] = true
		}
	}
	require.Equal(t, ids, seen, strings.Join(ads, "\n"))
	b.Kubectl("delete", "htcjobs", "--all", "--timeout="+trial.Patience.String())
	require.Empty(t, b.Condor("condor_q", constraint))
}
