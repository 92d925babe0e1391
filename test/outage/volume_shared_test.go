package outage

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// A job with an item is a file of its own until HTCondor has it. Of the volume's 1,200 inodes submissions leave 60
// free.
func TestANamespaceThatFillsTheVolumeWithStagedFilesDoesNotStopOthers(t *testing.T) {
	greedy := begin(t, "--command-timeout=10m") // a schedd on a busy machine takes minutes for 1,000 jobs
	data := greedy.Lab.Path("htcd", "data")
	greedy.mount(data, "size=96m,nr_inodes=1200")
	victim := outage{Bench: trial.New(t)}
	// The volume is mounted only for the lab's own processes.
	inside := func(script, dir string) string {
		out, err := greedy.Lab.RunAs(t.Context(), "root", "sh", "-c", script, "sh", dir)
		require.NoError(t, err)
		return strings.TrimSpace(out)
	}
	items := func(n int) func(*v1alpha1.HTCJob) {
		return func(job *v1alpha1.HTCJob) {
			for i := range n {
				job.Spec.Items = append(job.Spec.Items, v1alpha1.Item{"SEED": v1alpha1.ItemValue(fmt.Sprint(i))})
			}
		}
	}
	var large []string
	for i := range 2 {
		large = append(large, fmt.Sprintf("large-%d", i))
		greedy.Create(large[i], "exit 0\n", items(1000), never)
	}
	for _, name := range large {
		said := greedy.says(name, v1alpha1.ConditionSubmitted, "NoSpace")
		require.Regexp(
			t,
			`the files to be submitted, [0-9]+ KiB in 10[0-9][0-9] files, wait for room: with them namespace `+greedy.Namespace+
				` would have more than three quarters of what the others leave of the volume; make it several smaller ones`,
			said,
		)
	}
	// Together they are more than the inodes of the volume.
	var fit []string
	for i := range 3 {
		fit = append(fit, fmt.Sprintf("fits-%d", i))
		greedy.Create(fit[i], "exit 0\n", items(500), never)
	}
	victim.Create("victim", "echo here\n")
	require.Equal(t, "here", inside(`cat "$1"/0/_condor_stdout`, victim.Kept(victim.Fetched("victim"))))
	for _, name := range fit {
		greedy.once(greedy.Phase(name, v1alpha1.PhaseIdle))
	}
	require.Empty(t, inside(`ls "$1"`, data+"/staging"), "HTCondor has them")

	_, err := greedy.Lab.RunAs(
		context.WithoutCancel(t.Context()),
		"root",
		"mount",
		"-o",
		"remount,nr_inodes=20000",
		data,
	)
	require.NoError(t, err)
	for _, name := range large {
		greedy.once(greedy.Phase(name, v1alpha1.PhaseIdle))
	}
	require.Empty(t, inside(`ls "$1"`, data+"/staging"))
	for _, trouble := range []string{"LedgerUnavailable", "callback not recorded", "no space left"} {
		require.NotContains(t, greedy.log(), trouble)
	}
	victim.gone()
	greedy.gone()
}
