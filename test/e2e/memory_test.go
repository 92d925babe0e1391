package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// takes is a Python script that needs 300 MiB, and if given less, keeps them until the machine's policy notices: how
// soon depends on HTCondor's release and the machine's load.
const takes = `import re, time
x = bytearray(300 << 20)
for i in range(0, len(x), 4096): x[i] = 1
given = int(re.search("^Memory = ([0-9]+)$", open(".machine.ad").read(), re.M).group(1))
time.sleep(600 if given < 400 else 0)
`

func memory(first, most string, times int32) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) {
		job.Spec.Script.Image, job.Spec.Script.Command = "python", "python3"
		job.Spec.HTCOpts = "+JobDescription = \"memory is watched\"\n"
		// Of a slot that a job before it has left, the schedd would use one with more memory.
		job.Spec.Requirements = "TARGET.PartitionableSlot =?= true || TARGET.Memory < 2 * RequestMemory"
		job.Spec.Resources = &v1alpha1.Resources{Memory: new(resource.MustParse(first))}
		job.Spec.MemoryRetry = &v1alpha1.MemoryRetry{MaxMemory: resource.MustParse(most), MaxRetries: times}
	}
}

func TestAJobThatRanOutOfMemoryGetsMore(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("grows", takes, memory("128Mi", "1Gi", 3))
	job := b.Ended("grows")
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase, b.Kubectl("describe", "htcjob", "grows"))
	ads := b.Ads(trial.Tagged(job), "RequestMemory")
	require.Contains(t, ads, job.Status.JobID[0]+" 512")
}

func TestAJobGetsNoMoreMemoryThanItsMost(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("bounded", takes, memory("128Mi", "200Mi", 3))
	b.Until("bounded", "held twice", func(job *v1alpha1.HTCJob) bool {
		held := b.Condor(
			"condor_q",
			trial.Tagged(job)+" && JobStatus == 5 && NumHoldsByReason.StartdHeldJob == 2",
			"RequestMemory",
		)
		return job.Status.Phase == v1alpha1.PhaseHeld && len(held) == 1 && held[0] == job.Status.JobID[0]+" 200"
	})
}
