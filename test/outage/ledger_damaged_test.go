package outage

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// The ledger is rebuilt from the HTCJobs' statuses and, for jobs that were sent but had not reached a status, from the
// jobs' tags.
func TestALostOrDamagedLedgerIsRebuilt(t *testing.T) {
	o := begin(t, "--reconcile-schedule=@every 5s")
	htcd := o.part("htcd")
	o.Create("ended", "exit $1\n", trial.Queue(2))
	o.Ended("ended")
	o.Create("waiting", "exit 0\n", trial.Queue(3), never)
	waiting := o.Phase("waiting", v1alpha1.PhaseIdle)
	o.once(waiting)

	garbage := func(context.Context) error {
		// In place, so that the open ledger's file is damaged.
		return os.WriteFile(o.Lab.Ledger(), bytes.Repeat([]byte("no database "), 4000), 0o600)
	}
	lost := func(context.Context) error { return os.Remove(o.Lab.Ledger()) }
	type damage struct {
		name    string
		do      func(context.Context) error
		stopped bool
		aside   int
	}
	for i, damage := range trial.Sample(2,
		damage{"damaged while htcd is down", garbage, true, 1},
		damage{"damaged at work", garbage, false, 1},
		damage{"lost while htcd is down", lost, true, 0},
		damage{"lost at work", lost, false, 0},
	) {
		before := o.Get("ended").Status
		asides := o.aside()
		running := fmt.Sprintf("running-%d", i)
		wait, end := o.Gate()
		o.Create(running, wait+"exit 0\n")
		o.running(running)
		pid := o.status("htcd").Pid
		if damage.stopped {
			o.do(htcd.Stop)
			// As if htcd had ended between condor_submit and the status.
			_, err := o.Jobs.Patch(
				t.Context(),
				"waiting",
				types.MergePatchType,
				[]byte(`{"status":null}`),
				metav1.PatchOptions{},
				"status",
			)
			require.NoError(t, err)
		}
		o.do(damage.do)
		end()
		if damage.stopped {
			o.do(htcd.Start)
		}
		fresh := fmt.Sprintf("fresh-%d", i)
		o.Create(fresh, "exit 0\n")
		o.succeeded(running, fresh)
		require.Len(t, o.aside(), len(asides)+damage.aside, damage.name)
		if !damage.stopped {
			require.Equal(t, pid, o.status("htcd").Pid, "%s: it restarts by itself", damage.name)
		}

		job := o.Until("waiting", "found again", func(job *v1alpha1.HTCJob) bool { return job.Status.Idle == 3 })
		require.Equal(t, waiting.Status.JobID, job.Status.JobID, damage.name)
		o.once(job)
		after := o.Get("ended").Status
		require.Equal(t, before.JobID, after.JobID)
		require.Equal(t, before.Failures, after.Failures)
		require.EqualValues(t, []int32{0, 1, 1}, []int32{after.Active, after.Succeeded, after.Failed})
		require.Equal(t, "7 4", o.SQL(fmt.Sprintf(
			"SELECT group_concat(status, ' ') FROM (SELECT status FROM htcjobs WHERE jobId LIKE '%d.%%' ORDER BY proc DESC)",
			after.ClusterID,
		)))
	}
	for _, file := range o.aside() {
		require.Contains(t, o.log(), file)
	}
	o.gone()
}

func (o outage) aside() []string {
	o.T.Helper()
	found, err := filepath.Glob(o.Lab.Ledger() + ".damaged-*Z")
	require.NoError(o.T, err)
	return found
}
