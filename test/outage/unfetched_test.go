package outage

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// Nothing fits while so much must stay free: output waits in the queue.
const nothingFetched = "--keep-free=1Pi"

// A job that ended by itself waits in the queue with its output. Only the queue knows about it if htcd ends at a bad
// moment or the ledger is lost.
func TestWhatWaitsWithItsOutputIsFoundAgain(t *testing.T) {
	o := begin(t, "--reconcile-schedule=@every 5s", nothingFetched)
	htcd := o.part("htcd")
	o.Create("ended", "echo \"I am $1\"; exit $1\n", trial.Queue(2))
	for _, name := range []string{"suspended", "kept"} {
		o.Create(name, "echo \"I am $1\"; [ $1 = 0 ] || sleep 600\n", trial.Queue(2))
		o.Until(name, "ended in part", func(job *v1alpha1.HTCJob) bool { return job.Status.Succeeded == 1 })
		_, err := o.Jobs.Patch(
			t.Context(),
			name,
			types.MergePatchType,
			[]byte(`{"spec":{"suspend":true}}`),
			metav1.PatchOptions{},
		)
		require.NoError(t, err)
		o.Phase(name, v1alpha1.PhaseSuspended)
	}
	o.Ended("ended")
	before := map[string]v1alpha1.HTCJobStatus{}
	for name, waiting := range map[string]int{"ended": 2, "suspended": 1, "kept": 1} {
		o.missing(name, "no room")
		job := o.Get(name)
		before[name] = job.Status
		require.Len(t, o.Condor("condor_q", trial.Tagged(job)+" && JobStatus == 4"), waiting)
	}

	// The transaction that records it was htcd's last.
	o.do(htcd.Stop)
	kept := o.Get("kept")
	o.SQL(
		fmt.Sprintf(
			"UPDATE htcjobs SET fetched = 1 WHERE proc = 0 AND run = (SELECT id FROM runs WHERE uid = '%s')",
			kept.UID,
		),
	)
	o.do(htcd.Start)
	o.Eventually(func() bool { return len(o.Condor("condor_q", trial.Tagged(kept)+" && JobStatus == 4")) == 0 },
		func() string {
			return fmt.Sprint(o.Condor("condor_q", trial.Tagged(kept), "JobStatus", "HTCJobFetched"))
		})
	o.Kubectl("delete", "htcjob", "kept", "--timeout="+trial.Patience.String())

	o.do(htcd.Stop)
	for path := range o.ledgerFiles() {
		require.NoError(t, os.Remove(path))
	}
	o.do(func(ctx context.Context) error {
		return htcd.Restart(ctx, "--reconcile-schedule=@every 5s")
	})
	ended := o.Fetched("ended")
	for proc := range 2 {
		require.Equal(t, fmt.Sprintf("I am %d\n", proc), o.Output(ended, proc))
	}
	suspended := o.Get("suspended")
	require.Equal(t, "I am 0\n", o.waited(suspended, 0))
	for _, name := range []string{"ended", "suspended"} {
		job := o.Get(name)
		require.Equal(t, before[name].Phase, job.Status.Phase)
		require.Equal(t, before[name].Succeeded, job.Status.Succeeded)
		require.Equal(t, before[name].Failed, job.Status.Failed)
		require.Equal(t, before[name].ClusterID, job.Status.ClusterID)
		o.Eventually(func() bool { return len(o.Condor("condor_q", trial.Tagged(job)+" && JobStatus == 4")) == 0 },
			func() string {
				return fmt.Sprint(o.Condor("condor_q", trial.Tagged(job), "JobStatus", "HTCJobFetched"))
			})
	}
	o.gone()
}

// waited reads what a job of a suspended HTCJob wrote, as soon as it has been fetched.
func (o outage) waited(job *v1alpha1.HTCJob, proc int) string {
	o.T.Helper()
	var text []byte
	o.Eventually(func() bool {
		var err error
		text, err = os.ReadFile(o.Kept(job) + fmt.Sprintf("/%d/_condor_stdout", proc))
		return err == nil
	}, func() string { return "never fetched:\n" + o.Kubectl("describe", "htcjob", job.Name) })
	return string(text)
}
