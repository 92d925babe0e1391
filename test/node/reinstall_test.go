//go:build node

package node

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

// The lab's volume has the reclaim policy Retain. Whoever follows docs/day2.md has an htcd that goes on with its
// ledger.
func TestHTCdGoesOnWithARetainedVolume(t *testing.T) {
	b := newBench(t)
	var steps []string
	for _, block := range trial.Blocks(t, filepath.Join(deployDir(t), "..", "docs", "day2.md")) {
		if strings.Contains(block.NotRun, "test/node runs it, with HTCJobs") {
			steps = append(steps, block.Text)
		}
	}
	require.Len(t, steps, 3)
	follow := func(commands string) {
		t.Helper()
		out, err := b.follow(commands)
		require.NoError(t, err, out)
	}

	b.Script("ended", "echo said\nexit 3\n")
	b.reads("ended", "said\n")
	ended := b.Get("ended")
	waits := func(name string) *v1alpha1.HTCJob {
		b.Script(name, "touch "+name+"-of-"+b.Namespace+"\nuntil [ -e go ]; do sleep 0.2; done\necho meanwhile\n")
		return b.Phase(name, v1alpha1.PhaseRunning)
	}
	runs, deleted := waits("runs"), waits("deleted")
	volume := b.htcd("get", "pvc", "htcd", "-o", "jsonpath={.spec.volumeName}")
	follow(steps[0])
	require.Equal(t, "Released", b.Kubectl("get", "pv", volume, "-o", "jsonpath={.status.phase}"))
	b.letEnd("runs")
	b.Kubectl("delete", "htcjob", "deleted", "--wait=false")
	follow("volume=" + volume + "\n" + steps[1] + steps[2])

	require.Equal(t, volume, b.htcd("get", "pvc", "htcd", "-o", "jsonpath={.spec.volumeName}"))
	b.leader(1, "")
	job := b.Ended("runs")
	require.EqualValues(t, []int32{1, 1, 0}, []int32{job.Status.Attempt, job.Status.Succeeded, job.Status.Failed})
	b.reads("runs", "meanwhile\n")
	b.Kubectl("wait", "--for=delete", "htcjob/deleted", "--timeout="+trial.Patience.String())
	require.Empty(t, b.Condor("condor_q", trial.Tagged(deleted)))
	b.reads("ended", "said\n")
	now := b.Get("ended")
	require.Equal(t, ended.Status.JobID, now.Status.JobID)
	require.Equal(
		t,
		[]any{ended.Status.Attempt, ended.Status.Phase, *ended.Status.ExitCode},
		[]any{now.Status.Attempt, now.Status.Phase, *now.Status.ExitCode},
	)
	var sent []string
	for _, line := range b.Ads(fmt.Sprintf("HTCJobNamespace == %q", b.Namespace)) {
		sent = append(sent, strings.TrimSpace(line))
	}
	require.ElementsMatch(
		t,
		[]string{ended.Status.JobID[0], runs.Status.JobID[0], deleted.Status.JobID[0]},
		sent,
		"nothing was sent again",
	)
}

// letEnd has a script go on that waits for a file.
func (b bench) letEnd(name string) {
	b.T.Helper()
	var scratch string
	b.Eventually(func() bool {
		scratch = b.ScratchWith(name + "-of-" + b.Namespace)
		return scratch != ""
	}, func() string { return name + " never ran" })
	require.NoError(b.T, os.WriteFile(filepath.Join(scratch, "go"), nil, 0o644))
}
