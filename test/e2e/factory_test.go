package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

func TestAtMostSoManyJobsAreInTheQueueAtATime(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	atOnce := func(n int32) func(*v1alpha1.HTCJob) {
		return func(job *v1alpha1.HTCJob) { job.Spec.Parallelism = &n }
	}
	var items []v1alpha1.Item
	for i := range 8 { // four share a file
		long := v1alpha1.ItemValue(strings.Repeat("x", 4000))
		items = append(items, v1alpha1.Item{"N": v1alpha1.ItemValue(fmt.Sprint(i)), "LONG": long, "MORE": long})
	}
	// The first three wait until the others may come.
	b.Script("some", `test $1 -gt 2 || sleep 1000
! ls -A | grep -q own || exit 9
echo job $N ${#MORE}
`, func(job *v1alpha1.HTCJob) { job.Spec.Items = items }, atOnce(3))
	job := b.Until("some", "at work with three", func(job *v1alpha1.HTCJob) bool { return job.Status.Running == 3 })
	require.EqualValues(t, 5, job.Status.Waiting)
	require.Len(t, b.Condor("condor_q", trial.Tagged(job)+" && HTCJobLauncher =!= true", "ProcId"), 3)
	b.Kubectl("patch", "htcjob", "some", "--type=merge", "-p", `{"spec":{"parallelism":5}}`)
	job = b.Until("some", "done with the others", func(job *v1alpha1.HTCJob) bool { return job.Status.Succeeded == 5 })
	require.EqualValues(t, 1, job.Status.Attempt)
	b.Eventually(func() bool {
		text, err := os.ReadFile(filepath.Join(b.Kept(job), "7", "_condor_stdout"))
		return err == nil && string(text) == "job 7 4000\n"
	}, func() string { return "no output of job 7, while others run" })
	b.Kubectl("delete", "htcjob", "some", "--timeout="+trial.Patience.String())
	require.Empty(t, b.Condor("condor_q", trial.Tagged(job), "ProcId"), "the launcher has left, too")
}
