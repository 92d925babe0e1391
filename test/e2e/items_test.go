package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

func list(items ...v1alpha1.Item) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) { job.Spec.Items = items }
}

// points returns what each job of an HTCJob printed, one line each.
func points(b *trial.Bench, job *v1alpha1.HTCJob) (all []string) {
	for proc := range job.Jobs() {
		all = append(all, strings.TrimSuffix(b.Output(job, proc), "\n"))
	}
	return all
}

func TestEachJobSeesTheVariablesOfItsOwnItem(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	odd := v1alpha1.ItemValue("$HOME `id` \"q\" 'a' \\ ä😀 x=1, $(X) ")
	b.Script("items", `[ ! -e .item-$1 ] && ls -A | grep -q item && exit 9
echo "$1|$ENERGY|$SEED|$LIMIT|$ODD|$HTCPROCID"`+"\n", func(job *v1alpha1.HTCJob) {
		job.Spec.Environment = map[string]v1alpha1.EnvironmentValue{"LIMIT": "5", "SEED": "0"}
	}, list(v1alpha1.Item{"ENERGY": "7000", "SEED": "1"}, v1alpha1.Item{"ENERGY": "13000", "SEED": "2", "ODD": odd}, v1alpha1.Item{"LIMIT": "x y"}))
	job := b.Fetched("items")
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase, b.Kubectl("describe", "htcjob", "items"))
	require.Len(t, job.Status.JobID, 3)
	require.Equal(t, []string{"0|7000|1|5||0", "1|13000|2|5|" + string(odd) + "|1", "2||0|x y||2"}, points(b, job), "an item's variable comes before environment's")
	for _, tool := range []string{"condor_q", "condor_history"} {
		args := []string{"-constraint", trial.Tagged(job), "-l"}
		if tool == "condor_q" {
			args = append(args, "-allusers")
		}
		ad, err := b.Lab.Run(t.Context(), tool, args...)
		require.NoError(t, err)
		require.NotContains(t, ad, "13000", "the ad is public")
	}
	for proc := range 3 {
		require.NoFileExists(t, fmt.Sprintf("%s/%d/.item-%d", b.Kept(job), proc, proc))
	}
}

func TestParametersAreCombinedTheLastNameFastest(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("scan", "echo $ENERGY $SEED\n", func(job *v1alpha1.HTCJob) {
		job.Spec.Parameters = map[string]v1alpha1.Parameter{"SEED": {"3", "1", "2"}, "ENERGY": {"7000", "13000"}}
	})
	job := b.Fetched("scan")
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase, b.Kubectl("describe", "htcjob", "scan"))
	require.Equal(t, []string{"7000 3", "7000 1", "7000 2", "13000 3", "13000 1", "13000 2"}, points(b, job))
}

func TestAFailureNamesItsItem(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("fail", `[ "$SEED" != 2 ] || { echo "Traceback" >&2; echo "ValueError: no channel" >&2; exit 1; }`+"\n",
		list(v1alpha1.Item{"ENERGY": "13000", "SEED": "1"}, v1alpha1.Item{"ENERGY": "13000", "SEED": "2"}))
	job := b.Fetched("fail")
	require.Equal(t, v1alpha1.PhaseFailed, job.Status.Phase)
	require.Len(t, job.Status.Failures, 1)
	require.Equal(t, "ENERGY=13000 SEED=2", job.Status.Failures[0].Item)
	require.Equal(t, job.Status.JobID[1], job.Status.Failures[0].JobID)
	said := "ENERGY=13000 SEED=2: exit code 1: ValueError: no channel"
	job = b.Until("fail", "said to have failed at its item", func(job *v1alpha1.HTCJob) bool {
		return strings.Contains(b.Condition(job, v1alpha1.ConditionFailed).Message, said)
	})
	require.Contains(t, b.Kubectl("get", "events"), "ENERGY=13000 SEED=2: exit code 1")

	out, err := b.Lab.Run(t.Context(), "htcd", "logs", "fail", "--all", "--stderr", "-n", b.Namespace)
	require.NoError(t, err)
	require.Equal(t, "[1 ENERGY=13000 SEED=2] Traceback\n[1 ENERGY=13000 SEED=2] ValueError: no channel\n", out)
	file := filepath.Join(t.TempDir(), "fail.json")
	text, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.Kind, "metadata": map[string]any{"name": "again"}, "spec": job.Spec,
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, text, 0o644))
	_, err = b.Lab.Run(t.Context(), "htcd", "submit", file, "--watch", "-n", b.Namespace)
	require.ErrorContains(t, err, ", ENERGY=13000 SEED=2: exit code 1", "--watch ends with the script's own code, and names the item")
}
