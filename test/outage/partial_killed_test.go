package outage

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// Which jobs an attempt sends is in the ledger before anything is sent: whenever htcd is killed, those jobs become one cluster.
func TestHtcdKilledWhileItSendsSomeJobsSendsTheseOnce(t *testing.T) {
	o := begin(t)
	const jobs = 40
	var names []string
	for _, after := range []time.Duration{0, 100, 300} {
		name := fmt.Sprintf("part-%d", after)
		names = append(names, name)
		o.Create(name, "echo $1\ntest $(($1 % 2)) = 0\n", trial.Queue(jobs), trial.Unpacked)
		job := o.Fetched(name)
		require.EqualValues(t, jobs/2, job.Status.Failed)
		o.Kubectl("annotate", "htcjob", name, v1alpha1.RerunAnnotation+"=1", v1alpha1.RerunProcsAnnotation+"=failed")
		o.Eventually(func() bool {
			_, err := os.Stat(o.Lab.Path("htcd", "data", "staging", string(job.UID)+"-2", "job.sub"))
			return err == nil
		}, func() string { return "never staged" })
		time.Sleep(after * time.Millisecond) // the moment matters
		o.killHtcd()
		o.do(o.part("htcd").Start)
	}
	for _, name := range names {
		job := o.Until(name, "ended again", func(job *v1alpha1.HTCJob) bool {
			return job.Status.Attempt == 2 && job.Status.Phase == v1alpha1.PhaseFailed && job.Status.OutputFetched
		})
		require.Equal(t, []int32{jobs / 2, jobs / 2}, []int32{job.Status.Succeeded, job.Status.Failed})
		var ads []string // of clusters that were taken back before all files had arrived none has started
		for _, tool := range []string{"condor_q", "condor_history"} {
			ads = append(ads, o.Condor(tool, trial.Tagged(job)+" && HTCJobAttempt == 2 && NumJobStarts > 0", "HTCJobProc")...)
		}
		slices.Sort(ads)
		ads = slices.Compact(ads) // what has left the queue between the questions is in both
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
