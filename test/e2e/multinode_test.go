package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/test/trial"
)

// withOpenMPI gives an HTCJob Debian's Open MPI, which leaves out the loopback, the lab's only network.
func withOpenMPI(b *trial.Bench) func(*v1alpha1.HTCJob) {
	b.T.Helper()
	image := b.Image("openmpi")
	return func(job *v1alpha1.HTCJob) {
		job.Spec.Script.Image = image
		job.Spec.Environment = map[string]v1alpha1.EnvironmentValue{"OMPI_MCA_btl_tcp_if_include": "lo"}
	}
}

// Each rank says on which node it is, and what the sum of all ranks is, which they find out together. One of them takes
// more memory than its machine has, for long enough to be seen.
const hello = `echo here is $1
[ "$HTC_NODE" = 0 ] || exec sleep infinity
mpirun.openmpi python3 -c '
import os, time
from mpi4py import MPI
all = MPI.COMM_WORLD
taken = b"x" * (300 << 20) * (all.rank == 0)
time.sleep(8)
print("rank", all.rank, "of", all.size, "on node", os.environ["HTC_NODE"], "sum", all.allreduce(all.rank), flush=True)
'
echo result >file
`

func TestAJobOfSeveralNodes(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("hello", hello, nodes(3), withOpenMPI(b), func(job *v1alpha1.HTCJob) {
		job.Spec.Script.Args = []string{"{{node}} of {{proc}}"}
	})
	job := b.Fetched("hello")
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase)
	said := "\n" + b.Output(job, 0)
	for node := range 3 {
		require.Contains(t, said, fmt.Sprintf("\nrank %d of 3 on node %d sum 3\n", node, node))
	}
	for _, line := range []string{"here is 0 of 0", "1: here is 1 of 0", "2: here is 2 of 0"} {
		require.Contains(t, said, "\n"+line+"\n")
	}
	require.Equal(t, "result\n", b.File(job, 0, "file"))

	// The second one gets the machines of the first, though it says nothing of memory, and 23.9's default would ask for
	// what that took.
	b.Script("fails", `[ "$HTC_NODE" = 1 ] || exec sleep 600
echo I am wrong >&2
exit 7
`, nodes(3), trial.Unpacked)
	job = b.Ended("fails")
	require.Equal(t, v1alpha1.PhaseFailed, job.Status.Phase)
	require.Equal(t, "exit code 7", job.Status.Failures[0].Message)
	require.Contains(t, b.File(job, 0, output.Stderr), "1: I am wrong\n")
	busy := func() string {
		out, err := b.Lab.Run(
			t.Context(),
			"condor_status",
			"-constraint",
			`JobId == "`+job.Status.JobID[0]+`"`,
			"-af",
			"Name",
		)
		require.NoError(t, err)
		return out
	}
	b.Eventually(func() bool { return busy() == "" }, busy)
}

func TestAStepOfSeveralNodes(t *testing.T) {
	t.Parallel()
	f := newFlow(t, "flow", `
  steps:
  - name: several
    job:
      nodes: 2
      resources: {disk: 100Mi}
      htcopts: |
        job_lease_duration = 60
      outputs: [{path: file}]
      script:
        image: /opt/image/busybox
        command: sh
        source: |
          echo here
          [ "$HTC_NODE" = 0 ] || exec sleep 600
          sleep 2
          echo "$HTC_NODES of $jobid" >file
  - name: after
    pull: [{from: several, path: file}]
    job: {script: {image: centos, command: sh, source: cat file}}
`)
	w := f.ended()
	require.Equal(t, v1alpha1.PhaseSucceeded, w.Status.Phase, w.Status)
	said := "\n" + f.output(w, "several/job_0", output.Stdout)
	require.Contains(t, said, "\nhere\n")
	require.Contains(t, said, "\n1: here\n")
	require.Equal(t, "2 of job_0\n", f.output(w, "several/job_0", "file"))
	require.Equal(t, "2 of job_0\n", f.output(w, "after/job_0", output.Stdout))
	f.gone(w)
}

// By default HTCondor 25 asks for 1 GiB of disk, which not every machine of the lab has for jobs of several nodes. When
// the schedd gives a claim back and the startd does not answer within 2 s, the startd learns it when it asks, after a
// third of the last job's lease.
func nodes(n int32) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) {
		job.Spec.Nodes = &n
		job.Spec.HTCOpts = "job_lease_duration = 60"
		job.Spec.Resources = &v1alpha1.Resources{Disk: new(resource.MustParse("100Mi"))}
	}
}
