package outage

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// Output leaves a tenth of the volume's 112 MiB free, and three quarters of the rest are for one namespace, so that
// four files of 16 MB fit.
func TestOutputThatTheVolumeCannotHoldWaitsAndEverythingElseGoesOn(t *testing.T) {
	const size, fit, each = 16_000_000, 4, 4
	o := begin(t, "--reconcile-schedule=@every 5s")
	data := o.Lab.Path("htcd", "data")
	o.mount(data, "size=112m")
	names := []string{"dear", "dropped"}
	for _, name := range names {
		o.Create(name, fmt.Sprintf("head -c %d /dev/zero > big\n", size), trial.Queue(each))
	}
	// The volume is mounted only for the lab's own processes.
	inside := func(script string, args ...string) string {
		out, err := o.Lab.RunAs(t.Context(), "root", "sh", append([]string{"-c", script, "sh"}, args...)...)
		require.NoError(t, err)
		return strings.TrimSpace(out)
	}
	kept := func(name string) int {
		return strings.Count(
			inside(`cd "$1" 2>/dev/null && stat -c %s */big || :`, o.Kept(o.Get(name))),
			fmt.Sprint(size),
		)
	}
	all := func() int { return kept(names[0]) + kept(names[1]) }
	o.Eventually(func() bool { return all() == fit }, func() string { return fmt.Sprintf("%d are kept", all()) })
	var told string
	for _, name := range names {
		job := o.Ended(name)
		require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase)
		if kept(name) == each {
			continue
		}
		told = o.missing(
			name,
			"with which namespace "+o.Namespace+" would have more than three quarters of what the others leave of the volume: delete HTCJobs",
		)
		require.Regexp(t, fmt.Sprintf(`job %d\.\d left 16 MiB`, job.Status.ClusterID), told)
		require.Len(
			t,
			o.Condor("condor_q", trial.Tagged(job)+" && HTCJobFetched =!= true"),
			each-kept(name),
			"what is missing stays in the queue",
		)
	}
	require.NotEmpty(t, told, "eight have no place")
	used, err := strconv.Atoi(strings.TrimSuffix(inside(`df --output=pcent "$1" | tail -n 1`, data), "%"))
	require.NoError(t, err)
	require.LessOrEqual(t, used, 90)

	o.Create("small", "echo small\n", trial.Queue(5))
	o.Create("waiting", "exit 0\n", trial.Queue(200), never)
	require.Equal(t, "small", inside(`cat "$1"/4/_condor_stdout`, o.Kept(o.Fetched("small"))))
	o.once(o.Phase("waiting", v1alpha1.PhaseIdle))
	require.Equal(t, fit, all())
	for _, trouble := range []string{"LedgerUnavailable", "callback not recorded", "the ledger file is"} {
		require.NotContains(t, o.log(), trouble)
	}

	o.Kubectl("delete", "htcjob", "dropped", "--timeout="+trial.Patience.String())
	o.Fetched("dear")
	require.Equal(t, each, kept("dear"))
	o.gone()
}

// missing waits until an HTCJob says that its output does not fit, and why, and returns the message.
func (o outage) missing(name, why string) string {
	o.T.Helper()
	job := o.Until(name, "without a place", func(job *v1alpha1.HTCJob) bool {
		c := meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionOutputFetched)
		return c != nil && c.Reason == "NoSpace" && strings.Contains(c.Message, why)
	})
	return o.Condition(job, v1alpha1.ConditionOutputFetched).Message
}
