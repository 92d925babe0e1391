package outage

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// A schedd that dies within a second of a submit may keep the cluster half-spooled indefinitely, discard it, have it
// completely, or, on a slow machine, have it in part (see below). The moments cover the submit itself, the spooling
// after it and the following second.
func TestAScheddKilledAroundASubmitLeavesOneCluster(t *testing.T) {
	o := begin(t, "--reconcile-schedule=@every 5s")
	var moments []time.Duration
	for after := time.Duration(0); after <= 1500*time.Millisecond; after += 125 * time.Millisecond {
		moments = append(moments, after)
	}
	var names []string
	for _, after := range trial.Sample(5, moments...) {
		name := fmt.Sprintf("killed-after-%d", after.Milliseconds())
		names = append(names, name)
		o.Create(name, "exit 0\n", trial.Queue(2))
		time.Sleep(after) // the moment matters
		o.do(o.part("schedd").Kill)
		o.do(o.part("schedd").Start)
	}
	for _, name := range names {
		if job := o.Ended(name); job.Status.Phase == v1alpha1.PhaseFailed {
			o.ranInPart(job)
		} else {
			o.succeeded(name)
		}
	}
	o.gone()
}

// ranInPart checks that an HTCJob was sent once, that some of its procs succeeded, and that the others never ran.
func (o outage) ranInPart(job *v1alpha1.HTCJob) {
	o.T.Helper()
	require.EqualValues(o.T, 1, job.Status.Attempt, job.Name)
	require.Positive(o.T, job.Status.Succeeded, job.Name)
	require.EqualValues(o.T, job.Jobs(), job.Status.Succeeded+job.Status.Failed, job.Name)
	require.Len(o.T, job.Status.Failures, int(job.Status.Failed), job.Name)
	for _, f := range job.Status.Failures {
		require.Equal(o.T, "StagingFailed", f.Reason)
		require.Contains(o.T, f.Message, "it never ran")
	}
	require.Equal(
		o.T,
		map[string]int{fmt.Sprint(job.Status.ClusterID): int(job.Status.Succeeded)},
		o.clusters(job),
		job.Name,
	)
}

// The schedd receives a cluster's files together and then marks its procs as spooled one by one. Killed in between, it
// leaves some that run and others that never will: of a cluster of 1,500, 90 ran when it was killed as the first were
// marked (tried by hand). Here the same is achieved by editing the ads.
func TestAClusterThatRanInPartIsNotRunTwice(t *testing.T) {
	o := begin(t, "--reconcile-schedule=@every 5s")
	wait, end := o.Gate()
	o.Create("part", wait+"exit 0\n", trial.Queue(3))
	o.running("part")
	cluster := fmt.Sprint(o.Get("part").Status.ClusterID)
	never := []string{cluster + ".1", cluster + ".2"}
	o.condor("condor_hold", never...)
	o.condor("condor_qedit", append(never, "StageInFinish", "undefined", "HoldReasonCode", "16", "QDate", "1")...)
	end()

	job := o.Phase("part", v1alpha1.PhaseFailed)
	require.Equal(t, []int32{0, 1, 2}, []int32{job.Status.Active, job.Status.Succeeded, job.Status.Failed})
	require.Equal(t, never, []string{job.Status.Failures[0].JobID, job.Status.Failures[1].JobID})
	o.ranInPart(job)
	o.gone()
}

func (o outage) condor(command string, args ...string) {
	o.T.Helper()
	_, err := o.Lab.Run(o.T.Context(), command, args...)
	require.NoError(o.T, err)
}
