package outage

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// Which jobs an attempt sends is in the ledger before anything is sent: whenever htcd is killed, those jobs become one
// cluster.
func TestHtcdKilledWhileItSendsSomeJobsSendsTheseOnce(t *testing.T) {
	o := begin(t)
	const jobs = 40
	var names []string
	for moment, reached := range []func(tag string) bool{
		func(string) bool { return true },
		func(tag string) bool { return len(o.processes("staging")) > 0 || len(o.Ads(tag)) > 0 },
		func(tag string) bool { return len(o.Ads(tag)) > 0 },
	} {
		name := fmt.Sprintf("part-%d", moment)
		names = append(names, name)
		o.Create(name, "echo $1\ntest $(($1 % 2)) = 0\n", trial.Queue(jobs), trial.Unpacked)
		job := o.Fetched(name)
		require.EqualValues(t, jobs/2, job.Status.Failed)
		o.Kubectl("annotate", "htcjob", name, v1alpha1.RerunAnnotation+"=1", v1alpha1.RerunProcsAnnotation+"=failed")
		o.staged(job, 2)
		o.Eventually(
			func() bool { return reached(trial.Tagged(job) + " && HTCJobAttempt == 2") },
			func() string { return "never sent" },
		)
		o.killHtcd()
		o.do(o.part("htcd").Start)
	}
	for _, name := range names {
		job := o.Until(name, "ended again", func(job *v1alpha1.HTCJob) bool {
			return job.Status.Attempt == 2 && job.Status.Phase == v1alpha1.PhaseFailed && job.Status.OutputFetched
		})
		require.Equal(t, []int32{jobs / 2, jobs / 2}, []int32{job.Status.Succeeded, job.Status.Failed})
		// Of clusters that were taken back before all files had arrived none has started.
		ads := o.Ads(trial.Tagged(job)+" && HTCJobAttempt == 2 && NumJobStarts > 0", "HTCJobProc")
		require.Len(t, ads, jobs/2)
		for i := range jobs / 2 {
			require.Contains(t, ads, fmt.Sprintf("%d.%d %d", job.Status.ClusterID, i, 2*i+1))
		}
		for _, proc := range []int{0, 1, jobs - 1} {
			require.Equal(t, fmt.Sprintln(proc), o.Output(job, proc))
		}
	}
	o.gone()
}
