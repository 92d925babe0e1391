//go:build !releases

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
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
	b.Script("items", `! ls -A | grep -q own || exit 9
echo "$1|$ENERGY|$SEED|$LIMIT|$ODD|$HTCPROCID"`+"\n", func(job *v1alpha1.HTCJob) {
		job.Spec.Environment = map[string]v1alpha1.EnvironmentValue{"LIMIT": "5", "SEED": "0"}
	}, list(v1alpha1.Item{"ENERGY": "7000", "SEED": "1"}, v1alpha1.Item{"ENERGY": "13000", "SEED": "2", "ODD": odd}, v1alpha1.Item{"LIMIT": "x y"}))
	job := b.Fetched("items")
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase, b.Kubectl("describe", "htcjob", "items"))
	require.Len(t, job.Status.JobID, 3)
	require.Equal(
		t,
		[]string{"0|7000|1|5||0", "1|13000|2|5|" + string(odd) + "|1", "2||0|x y||2"},
		points(b, job),
		"an item's variable comes before environment's",
	)
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
		require.NoFileExists(t, fmt.Sprintf("%s/%d/.own-%d", b.Kept(job), proc, proc))
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
	b.Event("fail", "ENERGY=13000 SEED=2: exit code 1")

	out, err := b.Lab.Run(t.Context(), "htcd", "logs", "fail", "--all", "--stderr", "-n", b.Namespace)
	require.NoError(t, err)
	require.Equal(t, "[1 ENERGY=13000 SEED=2] Traceback\n[1 ENERGY=13000 SEED=2] ValueError: no channel\n", out)
	file := filepath.Join(t.TempDir(), "fail.json")
	text, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(),
		"kind":       v1alpha1.Kind,
		"metadata":   map[string]any{"name": "again"},
		"spec":       job.Spec,
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, text, 0o644))
	_, err = b.Lab.Run(t.Context(), "htcd", "submit", file, "--watch", "-n", b.Namespace)
	require.ErrorContains(
		t,
		err,
		", ENERGY=13000 SEED=2: exit code 1",
		"--watch ends with the script's own code, and names the item",
	)
}

func table(name, key string) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) {
		job.Spec.ItemsFrom = &v1alpha1.ItemsFrom{ConfigMapKeyRef: v1alpha1.KeyRef{Name: name, Key: key}}
	}
}

func TestItemsAreTakenFromATableOnceAndAwaited(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	const script = "echo $ENERGY/$SEED/$FAST\n"
	b.Script("csv", script, table("points", "csv"))
	b.Script("json", script, table("points", "json"))
	waits := b.Until(
		"csv",
		"waiting for the table",
		func(job *v1alpha1.HTCJob) bool { return job.Status.Reason == "ConfigMapNotFound" },
	)
	require.Equal(
		t,
		"itemsFrom: there is no configmap points in this namespace",
		b.Condition(waits, v1alpha1.ConditionInputsReady).Message,
	)
	b.Event("csv", "there is no configmap points")

	b.Kubectl("create", "configmap", "points", "--from-literal=csv=ENERGY,SEED\n7000,1\n13000,2\n13000,3\n")
	b.Kubectl(
		"patch",
		"configmap",
		"points",
		"-p",
		`{"data":{"csv":"ENERGY,SEED\n7000,1\n13000,2\n13000,3\n","json":"[{\"ENERGY\": 1e3, \"FAST\": true},\n {\"SEED\": \"4\"}]"}}`,
	)
	csv, asJSON := b.Fetched("csv"), b.Fetched("json")
	require.Equal(t, []string{"7000/1/", "13000/2/", "13000/3/"}, points(b, csv), "they went on by themselves")
	require.Equal(t, []string{"1e3//true", "/4/"}, points(b, asJSON))
	require.Regexp(t, "^sha256:[0-9a-f]{64}$", csv.Status.ItemsDigest)
	require.EqualValues(t, "True", b.Condition(csv, v1alpha1.ConditionInputsReady).Status)

	// A table that changes later changes nothing, until the HTCJob runs again.
	b.Kubectl("patch", "configmap", "points", "-p", `{"data":{"csv":"ENERGY,SEED\n1,1\n"}}`)
	require.Equal(t, csv.Status.ItemsDigest, b.Get("csv").Status.ItemsDigest)
	b.Kubectl("annotate", "htcjob", "csv", v1alpha1.RerunAnnotation+"=1")
	again := b.Until(
		"csv",
		"run again",
		func(job *v1alpha1.HTCJob) bool { return job.Status.Attempt == 2 && job.Status.Phase.Terminal() },
	)
	require.Len(t, again.Status.JobID, 1)
	require.NotEqual(t, csv.Status.ItemsDigest, again.Status.ItemsDigest)
}

func TestABadTableIsRefusedWithItsLine(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Kubectl(
		"create",
		"configmap",
		"bad",
		"--from-literal=csv=A,B\n1,2\n3",
		"--from-literal=json=[{\"A\": [1]}]",
		"--from-literal=taken=HOME,A\n1,2",
		"--from-literal=empty=",
	)
	b.Kubectl("patch", "configmap", "bad", "-p", `{"data":{"csv":"A,B\n1,2\n3\n","taken":"HOME,A\n1,2\n"}}`)
	for key, words := range map[string]string{
		"csv":   "spec.itemsFrom: configmap bad, key csv: line 3: expected 2 fields (A,B), found 1",
		"json":  `spec.itemsFrom: configmap bad, key json: line 1: row 1: "A": expected a string, a number, true or false, found a list`,
		"taken": "line 1: column 1: expected the names of the variables in the first line, separated by commas: the variable HOME is set by htcd, HTCondor or apptainer",
		"empty": "the table is empty",
	} {
		b.Script(key, "true\n", table("bad", key))
		job := b.Phase(key, v1alpha1.PhaseFailed)
		require.Equal(t, "Refused", job.Status.Reason)
		require.Contains(t, b.Condition(job, v1alpha1.ConditionSubmitted).Message, words)
		require.Empty(t, job.Status.JobID, "nothing was sent")
	}
	b.Script("other", "true\n", table("bad", "none"))
	b.Until(
		"other",
		"waiting for the key",
		func(job *v1alpha1.HTCJob) bool { return job.Status.Reason == "ConfigMapKeyNotFound" },
	)
}

func itemsOf(n int, variables ...string) []any {
	items := make([]any, n)
	for i := range items {
		item := map[string]any{}
		for j, name := range variables {
			item[name] = fmt.Sprintf("%d%d", i, j)
		}
		items[i] = item
	}
	return items
}

func valuesOf(n int) []any {
	values := make([]any, n)
	for i := range values {
		values[i] = fmt.Sprint(i)
	}
	return values
}

const tooMany = "items must be at most 1,000, and 2,000 variables and 64 KiB together: put them into a ConfigMap and name it in itemsFrom"

// The apiserver's answers about the fields that say how many jobs there are, and what each gets.
var appliedItems = map[string]answer{
	"items": {set("items", itemsOf(3, "ENERGY", "SEED")), ""},
	"items of different variables": {
		set("items", []any{map[string]any{"A": "1"}, map[string]any{"B": "2", "PATH": "/x"}}),
		"",
	},
	"1,000 items":                    {set("items", itemsOf(1000, "ENERGY", "SEED")), ""},
	"1,001 items":                    {set("items", itemsOf(1001, "A")), tooMany},
	"10,000 items":                   {set("items", itemsOf(10_000, "A")), tooMany},
	"40,000 variables":               {set("items", itemsOf(10_000, "A0", "A1", "A2", "A3")), tooMany},
	"1,000 items of three variables": {set("items", itemsOf(1000, "A0", "A1", "A2")), tooMany},
	"no items":                       {set("items", []any{}), "spec.items in body should have at least 1 items"},
	"an item of nothing":             {set("items", []any{map[string]any{}}), "should have at least 1 properties"},
	"an item of numbers":             {set("items", []any{map[string]any{"A": int64(1)}}), "must be of type string"},
	"an item that is nested": {
		set("items", []any{map[string]any{"A": map[string]any{"B": "1"}}}),
		"unknown field",
	},
	"an item with an odd name": {
		set("items", []any{map[string]any{"A": "1"}, map[string]any{"A-B": "1"}}),
		"a variable's name must be letters, digits and _",
	},
	"a first item with an odd name": {
		set("items", []any{map[string]any{"1A": "1"}}),
		"a variable's name must be letters, digits and _",
	},
	"an item that htcd sets": {
		set("items", []any{map[string]any{"A": "1"}, map[string]any{"HTCPROCID": "1"}}),
		"choose another name",
	},
	"an item that opens containers": {
		set("items", []any{map[string]any{"APPTAINER_BIND": "/etc"}}),
		"choose another name",
	},
	"an item of two lines":          {set("items", []any{map[string]any{"A": "1\n2"}}), "spec.items[0].A"},
	"an item that is too long":      {set("items", []any{map[string]any{"A": strings.Repeat("x", 4097)}}), "Too long"},
	"large items":                   {set("items", large(15)), ""},
	"items that are too large":      {set("items", large(16)), tooMany},
	"an item of too many variables": {set("items", []any{many(17)}), "must have at most 16 items"},
	"an item of many variables":     {set("items", []any{many(16)}), ""},
	"items and a number": {
		both(set("items", itemsOf(3, "A")), set("script.queue", int64(3))),
		"queue, items, itemsFrom and parameters each say how many jobs there are: keep one of them",
	},
	"items and an older number": {both(set("items", itemsOf(3, "A")), set("queue", int64(3))), "keep one of them"},
	"items and parameters": {
		both(set("items", itemsOf(3, "A")), set("parameters.A", valuesOf(2))),
		"keep one of them",
	},
	"a table": {
		set("itemsFrom.configMapKeyRef", map[string]any{"name": "points", "key": "a.csv"}),
		"",
	},
	"a table and items": {
		both(
			set("itemsFrom.configMapKeyRef", map[string]any{"name": "points", "key": "a.csv"}),
			set("items", itemsOf(1, "A")),
		),
		"keep one of them",
	},
	"a table of another namespace": {
		set("itemsFrom.configMapKeyRef", map[string]any{"name": "points", "key": "a", "namespace": "other"}),
		`unknown field "spec.itemsFrom.configMapKeyRef.namespace"`,
	},
	"a table without a key": {
		set("itemsFrom.configMapKeyRef", map[string]any{"name": "points"}),
		"key: Required value",
	},
	"a table from nowhere": {
		set("itemsFrom", map[string]any{}),
		"a table is in one place: write configMapKeyRef, jobRef or step",
	},
	"parameters": {
		both(set("parameters.ENERGY", valuesOf(2)), set("parameters.SEED", valuesOf(3))),
		"",
	},
	"1,000,000 combinations": {both(set("parameters.A", valuesOf(2500)), set("parameters.B", valuesOf(400))), ""},
	"more combinations": {
		both(set("parameters.A", valuesOf(2500)), set("parameters.B", valuesOf(401))),
		"parameters must make at most 1000000 combinations",
	},
	"3,000 values": {set("parameters.A", valuesOf(3000)), ""},
	"3,001 values": {
		set("parameters.A", valuesOf(3001)),
		"the values of parameters must be at most 3,000, and 64 KiB, together",
	},
	"a parameter without values": {set("parameters.A", []any{}), "should have at least 1 items"},
	"a parameter with an odd name": {
		set("parameters", map[string]any{"A.B": valuesOf(1)}),
		"a variable's name must be letters, digits and _",
	},
	"a parameter that htcd sets": {set("parameters.HOME", valuesOf(1)), "choose another name"},
	"a parameter of two lines":   {set("parameters.A", []any{"1\n2"}), "spec.parameters.A[0]"},
	"parameters that are too large": {
		set("parameters.A", longValues(16)),
		"the values of parameters must be at most 3,000, and 64 KiB, together",
	},
}

func large(n int) (items []any) {
	for range n {
		items = append(items, map[string]any{"A": strings.Repeat("x", 4096)})
	}
	return items
}

func longValues(n int) (values []any) {
	for range n {
		values = append(values, strings.Repeat("x", 4096))
	}
	return values
}

func many(n int) map[string]any {
	item := map[string]any{}
	for i := range n {
		item[fmt.Sprint("V", i)] = "1"
	}
	return item
}

func TestApplyAnswersAboutItems(t *testing.T) {
	t.Parallel()
	requireAnswers(t, v1alpha1.Resource, v1alpha1.Kind, appliedItems, func() map[string]any {
		return map[string]any{"script": map[string]any{"image": "centos", "command": "bash", "source": "exit 0\n"}}
	})
}
