package e2e

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// evictions are the ways in which a job loses its machine.
var evictions = map[string]func(b *trial.Bench, wrapper int, job string){
	"condor_vacate_job": func(b *trial.Bench, _ int, job string) {
		_, err := b.Lab.RunAs(b.T.Context(), "admin", "condor_vacate_job", job)
		require.NoError(b.T, err)
	},
	"condor_vacate_job -fast": func(b *trial.Bench, _ int, job string) {
		_, err := b.Lab.RunAs(b.T.Context(), "admin", "condor_vacate_job", "-fast", job)
		require.NoError(b.T, err)
	},
	"the starter killed": func(b *trial.Bench, wrapper int, _ string) {
		_, parent, _ := strings.Cut(ofProcess(b, wrapper, "status"), "\nPPid:\t")
		parent, _, _ = strings.Cut(parent, "\n")
		pid := 0
		_, err := fmt.Sscan(parent, &pid)
		require.NoError(b.T, err)
		require.NoError(b.T, syscall.Kill(pid, syscall.SIGKILL))
	},
}

func ofProcess(b *trial.Bench, pid int, file string) string {
	text, err := os.ReadFile(fmt.Sprint("/proc/", pid, "/", file))
	require.NoError(b.T, err)
	return string(text)
}

// A script that computes a unit in each execution. After its checkpoint it is begun again where it was, and waits for
// its eviction.
const computes = `set -e
n=0
[ ! -f state/n ] || n=$(cat state/n)
grep -q pass secret
if [ -e here ]; then touch %[1]s-$n; sleep 600; fi
touch here
n=$((n + 1))
echo unit $n
mkdir -p state
echo $n >state/n
[ $n -gt %[2]d ] || exit 85
echo $n >result
exit 3
`

func TestAJobGoesOnFromItsLastCheckpointWhereverItIsEvicted(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	marked(b, "m", "secret=pass")
	job := "job-" + b.Namespace
	b.Script(
		"job",
		fmt.Sprintf(computes, job, len(evictions)),
		inputs(fromSecret("secret", "m", "secret")),
		func(job *v1alpha1.HTCJob) {
			job.Spec.Checkpoint = &v1alpha1.Checkpoint{ExitCode: 85, Files: []v1alpha1.CheckpointFile{"state"}}
			job.Spec.SuccessExitCodes, job.Spec.Retries = []int32{3}, new(int32(2))
			job.Spec.Outputs = []v1alpha1.Output{{Path: "result"}}
		},
	)
	node := "node-" + b.Namespace
	source := strings.ReplaceAll(
		strings.ReplaceAll(fmt.Sprintf(computes, node, 1), "grep -q pass secret\n", ""),
		"\n",
		"\\n",
	)
	flow := flowIn(
		b,
		"flow",
		"  steps: [{name: go, job: {checkpoint: {exitCode: 85, files: [state]}, successExitCodes: [3], outputs: [{path: result}], script: {image: centos, command: bash, source: \""+source+"\"}}}]",
	)
	left := "left-" + b.Namespace
	b.Script("left", fmt.Sprintf(`cat state/n && exit 0
trap 'mkdir state; echo stored >state/n; exit' TERM
touch %s-1
sleep 600 & wait
`, left), func(job *v1alpha1.HTCJob) {
		job.Spec.Checkpoint = &v1alpha1.Checkpoint{OnEviction: true}
		job.Spec.Outputs = []v1alpha1.Output{{Path: "state"}}
	})
	wrapper(b, left+"-1")
	evictions["condor_vacate_job"](b, 0, b.Get("left").Status.JobID[0])
	n := 0
	for way, evict := range evictions {
		n++
		at := wrapper(b, fmt.Sprint(job, "-", n))
		t.Log(way)
		evict(b, at, b.Get("job").Status.JobID[0])
	}
	at := wrapper(b, node+"-1")
	ad := ofProcess(b, at, "cwd/.job.ad")
	evictions["condor_vacate_job"](b, at, field(ad, "ClusterId")+"."+field(ad, "ProcId"))

	kept := b.Fetched("left")
	require.Equal(t, "stored\n", b.Output(kept, 0))
	require.Equal(t, "stored\n", b.File(kept, 0, "state/n"))

	ended := b.Fetched("job")
	require.Equal(t, v1alpha1.PhaseSucceeded, ended.Status.Phase, "%+v", ended.Status)
	var units string
	for n := range len(evictions) + 1 {
		units += fmt.Sprintf("unit %d\n", n+1)
	}
	require.Equal(t, units, b.Output(ended, 0), "none is computed twice")
	require.Equal(t, fmt.Sprintln(len(evictions)+1), b.File(ended, 0, "result"))
	require.ElementsMatch(t, []string{"_condor_stderr", "_condor_stdout", "result"}, b.Files(ended, 0))
	require.Equal(t, v1alpha1.PhaseSucceeded, flow.ended().Status.Phase)
}

func field(ad, name string) string {
	_, value, _ := strings.Cut("\n"+ad, "\n"+name+" = ")
	value, _, _ = strings.Cut(value, "\n")
	return value
}
