//go:build !releases

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// aStep is an accepted one, with further fields in pairs.
func aStep(name string, pairs ...any) map[string]any {
	s := map[string]any{
		"name": name,
		"job":  map[string]any{"script": map[string]any{"image": "centos", "command": "bash", "source": "exit 0\n"}},
	}
	for i := 0; i < len(pairs); i += 2 {
		s[pairs[i].(string)] = pairs[i+1]
	}
	return s
}

func setSteps(steps ...map[string]any) change {
	var all []any
	for _, s := range steps {
		all = append(all, s)
	}
	return set("steps", all)
}

// stepWith changes a step's job.
func stepWith(field string, value any) change {
	return func(t *testing.T, spec map[string]any) {
		s := aStep("a")
		set("job."+field, value)(t, s)
		spec["steps"] = []any{s}
	}
}

func pull(from, path string) []any { return []any{map[string]any{"from": from, "path": path}} }

// aRule is an accepted one, with further fields in pairs.
func aRule(pairs ...any) map[string]any {
	r := map[string]any{"step": "a", "metric": "chi2", "function": "mean", "when": "value > 2.0", "action": "Finish"}
	for i := 0; i < len(pairs); i += 2 {
		if r[pairs[i].(string)] = pairs[i+1]; pairs[i+1] == nil {
			delete(r, pairs[i].(string))
		}
	}
	return r
}

func withRules(rules ...map[string]any) change {
	return func(t *testing.T, spec map[string]any) {
		all := []any{}
		for _, r := range rules {
			all = append(all, r)
		}
		spec["rules"], spec["steps"] = all, []any{aStep("a")}
	}
}

func withPorts(ports ...any) change { return set("ports", ports) }

func manyRules(n int) (all []map[string]any) {
	for range n {
		all = append(all, aRule())
	}
	return all
}

func numbers(n ...int64) (all []any) {
	for _, i := range n {
		all = append(all, i)
	}
	return all
}

func named(n int) (all []map[string]any) {
	for i := range n {
		all = append(all, aStep(fmt.Sprintf("s%d", i)))
	}
	return all
}

// The apiserver's answers to kubectl apply of an HTCWorkflow: "" if accepted, otherwise words that its refusal must
// contain.
var appliedWorkflows = map[string]answer{
	"one step": {setSteps(aStep("a")), ""},
	"no steps": {
		set("steps", []any{}),
		"spec.steps: Invalid value: 0: spec.steps in body should have at least 1 items",
	},
	"the most steps": {setSteps(named(50)...), ""},
	"more steps": {
		setSteps(named(51)...),
		"spec.steps: Too many: 51: must have at most 50 items",
	},
	"a result on standard output": {set("result", "stdout"), ""},
	"a result in a file":          {set("result", "out/fit.json"), ""},
	"a result beside the script": {
		set("result", "../fit.json"),
		"spec.result: Invalid value: \"../fit.json\": the result must be stdout, or a file's path",
	},
	"a result of no name":      {set("result", ""), "spec.result"},
	"success after the output": {set("completeAfterOutput", true), ""},
	"ports": {withPorts(
		map[string]any{"port": int64(8888), "step": "a"},
		map[string]any{"port": int64(9000), "step": "none", "sequence": int64(99999), "index": int64(99999)}, // htcd ports says so
		map[string]any{"port": int64(65535), "node": "N17"},
	), ""},
	"a port twice":                    {withPorts(map[string]any{"port": int64(80)}, map[string]any{"port": int64(80)}), "spec.ports[1]: Duplicate value"},
	"port 0":                          {withPorts(map[string]any{"port": int64(0)}), "spec.ports[0].port"},
	"a port of no sequence":           {withPorts(map[string]any{"port": int64(80), "sequence": int64(-1)}), "spec.ports[0].sequence"},
	"a port of a bad step":            {withPorts(map[string]any{"port": int64(80), "step": "A"}), "spec.ports[0].step"},
	"two steps of one name":           {setSteps(aStep("a"), aStep("a")), "spec.steps[1]: Duplicate value"},
	"a step without a name":           {setSteps(aStep("")), "spec.steps[0].name"},
	"a step's name with a capital":    {setSteps(aStep("Fit")), "spec.steps[0].name"},
	"a step's name with a slash":      {setSteps(aStep("a/b")), "spec.steps[0].name"},
	"a step's name with a line break": {setSteps(aStep("a\n")), "spec.steps[0].name"},
	"a long name of a step":           {setSteps(aStep(strings.Repeat("a", 64))), "spec.steps[0].name: Too long"},
	"a step without a job": {
		setSteps(map[string]any{"name": "a"}),
		"spec.steps[0].job: Required value",
	},
	"a step without an image": {
		setSteps(
			aStep("a"),
			map[string]any{
				"name": "b",
				"job":  map[string]any{"script": map[string]any{"command": "sh", "source": "exit 0"}},
			},
		),
		"spec.steps: Required value: each step needs script.image",
	},
	"needs": {
		setSteps(aStep("a"), aStep("b"), aStep("c", "needs", []any{"a", "b"})),
		"",
	},
	"needs of nothing":                        {setSteps(aStep("a"), aStep("b", "needs", []any{})), ""},
	"the same need twice, which htcd refuses": {setSteps(aStep("a"), aStep("b", "needs", []any{"a", "a"})), ""},
	"rules": {
		withRules(
			aRule("minCount", int64(20)),
			aRule(
				"step",
				nil,
				"function",
				nil,
				"metric",
				"success",
				"when",
				"value >= 900 || value==3 && value != -1.5e3",
			),
		),
		"",
	},
	"no rules": {
		withRules(),
		"spec.rules: Invalid value: 0: spec.rules in body should have at least 1 items",
	},
	"the most rules": {withRules(manyRules(10)...), ""},
	"more rules":     {withRules(manyRules(11)...), "spec.rules: Too many: 11"},
	"a rule about no step": {
		withRules(aRule("step", nil)),
		"a result of scripts needs step and, except for Repeat, function",
	},
	"a rule about another step": {withRules(aRule("step", "b")), "a rule's step must be one of spec.steps"},
	"a rule about no function": {
		withRules(aRule("function", nil)),
		"without a function metric is success, failure, queued, running or held",
	},
	"another function": {withRules(aRule("function", "median")), "supported values"},
	"another action":   {withRules(aRule("action", "Stop")), "supported values"},
	"growing and shrinking": {
		withRules(aRule("action", "Grow", "by", int64(50), "max", int64(500), "times", int64(3), "backoff", "10m"),
			aRule("action", "Shrink", "by", int64(1), "min", int64(2))),
		"",
	},
	"repeating": {
		withRules(aRule("action", "Repeat", "function", nil, "times", int64(10), "backoff", "10m")),
		"",
	},
	"repeating by a function": {withRules(aRule("action", "Repeat")), "except for Repeat, function"},
	"repeating by a count": {
		withRules(aRule("action", "Repeat", "function", nil, "step", nil, "metric", "success")),
		"except for Repeat, function",
	},
	"repeating too often": {
		withRules(aRule("action", "Repeat", "function", nil, "times", int64(11))),
		"Repeat repeats at most 10 times",
	},
	"repeating what is for all": {func(t *testing.T, spec map[string]any) {
		withRules(aRule("action", "Repeat", "function", nil))(t, spec)
		spec["steps"] = []any{aStep("a", "pairing", "All")}
	}, "Repeat is about a step that runs in each sequence"},
	"finishing twice":   {withRules(aRule("times", int64(2))), "Finish acts once"},
	"finishing by some": {withRules(aRule("by", int64(2))), "by is for Grow and Shrink"},
	"growing to min":    {withRules(aRule("action", "Grow", "min", int64(2))), "min is for Shrink"},
	"shrinking to max":  {withRules(aRule("action", "Shrink", "max", int64(2))), "max is for Grow"},
	"growing by none":   {withRules(aRule("action", "Grow", "by", int64(0))), "spec.rules[0].by"},
	"a backoff of another unit": {
		withRules(aRule("action", "Grow", "backoff", "1d")),
		"spec.rules[0].backoff",
	},
	"a rule's metric with a line break": {withRules(aRule("metric", "a\n")), "spec.rules[0].metric"},
	"a condition on something else": {
		withRules(aRule("when", "chi2 > 2.0")),
		"expected comparisons such as value > 2.0, joined by && or ||",
	},
	"half a condition": {
		withRules(aRule("when", "value > 2.0 &&")),
		"expected comparisons such as value > 2.0",
	},
	"a condition in two lines": {
		withRules(aRule("when", "value > 2.0\n")),
		"expected comparisons such as value > 2.0",
	},
	"a long condition": {
		withRules(aRule("when", strings.Repeat("value > 2.0 && ", 20)+"value > 1")),
		"spec.rules[0].when: Too long",
	},
	"minCount of a count": {
		withRules(aRule("function", nil, "metric", "held", "minCount", int64(2))),
		"minCount is about a result of scripts",
	},
	"pairing": {
		setSteps(aStep("a", "pairing", "ByIndex"), aStep("b", "pairing", "All")),
		"",
	},
	"another pairing": {
		setSteps(aStep("a", "pairing", "Some")),
		`supported values: "ByIndex", "All"`,
	},
	"pull": {setSteps(aStep("a"), aStep("b", "pull", pull("a", "out/*.root"))), ""},
	"a pull without a path": {
		setSteps(aStep("a"), aStep("b", "pull", []any{map[string]any{"from": "a"}})),
		"spec.steps[1].pull[0].path: Required value",
	},
	"a pull from above": {
		setSteps(aStep("a"), aStep("b", "pull", pull("a", "../x"))),
		"the path must be relative to the script's directory",
	},
	"a pull of an absolute path": {
		setSteps(aStep("a"), aStep("b", "pull", pull("a", "/etc/passwd"))),
		"the path must be relative to the script's directory",
	},
	"a pull of the token": {
		setSteps(aStep("a"), aStep("b", "pull", pull("a", "token"))),
		"are htcd's and HTCondor's",
	},
	"a pull with a comma": {
		setSteps(aStep("a"), aStep("b", "pull", pull("a", "x,y"))),
		"the path must be relative",
	},
	"too many pulls": {
		setSteps(
			aStep("a"),
			aStep("b", "pull", several(21, func(i int) any { return pull("a", fmt.Sprint("f", i))[0] })),
		),
		"must have at most 20 items",
	},
	"retries": {
		setSteps(aStep("a", "retries", int64(2), "retryExitCodes", numbers(75))),
		"",
	},
	"too many retries": {setSteps(aStep("a", "retries", int64(1001))), "spec.steps[0].retries"},
	"retry codes without retries": {
		setSteps(aStep("a", "retryExitCodes", numbers(75))),
		"retryExitCodes are for retries: say how many there may be",
	},
	"a retry code that is a success": {
		both(stepWith("successExitCodes", numbers(0, 75)), func(t *testing.T, spec map[string]any) { retry(spec, 75) }),
		"a job that has succeeded is not tried again",
	},
	"a retry code beside those of success": {
		both(stepWith("successExitCodes", numbers(0, 3)), func(t *testing.T, spec map[string]any) { retry(spec, 75) }),
		"",
	},
	"a retry code of 0": {
		setSteps(aStep("a", "retries", int64(2), "retryExitCodes", numbers(0))),
		"should be greater than or equal to 1",
	},
	"forEach": {
		setSteps(aStep("a", "forEach", map[string]any{"count": int64(10_000)})),
		"",
	},
	"forEach of none": {
		setSteps(aStep("a", "forEach", map[string]any{"count": int64(0)})),
		"spec.steps[0].forEach.count",
	},
	"forEach of too many": {
		setSteps(aStep("a", "forEach", map[string]any{"count": int64(10_001)})),
		"spec.steps[0].forEach.count",
	},
	"forEach without a count": {
		setSteps(aStep("a", "forEach", map[string]any{})),
		"spec.steps[0].forEach: Invalid value: count, items and itemsFrom each say which jobs the step has: write one of them",
	},
	"a priority": {setSteps(aStep("a", "priority", int64(5))), ""},
	"a queue in a step": {
		stepWith("script.queue", int64(4)),
		`unknown field "spec.steps[0].job.script.queue"`,
	},
	"an input of a step": {
		stepWith(
			"inputs",
			[]any{map[string]any{"name": "x", "configMapKeyRef": map[string]any{"name": "x", "key": "x"}}},
		),
		"",
	},
	"a credential of a step": {
		stepWith(
			"credentials",
			[]any{
				map[string]any{"name": "x", "secretKeyRef": map[string]any{"name": "x", "key": "x"}, "as": "X509Proxy"},
			},
		),
		"",
	},
	"an output to a url": {
		stepWith("outputs", []any{map[string]any{"path": "a", "url": "https://e/a"}}),
		"",
	},
	"outputs of a step": {
		stepWith("outputs", []any{map[string]any{"path": "a"}, map[string]any{"path": "b/*.root"}}),
		"",
	},
	"an output of a step from above": {
		stepWith("outputs", []any{map[string]any{"path": "../a"}}),
		"an output's path must be relative to the script's directory",
	},
	"a deadline of a step": {
		stepWith("activeDeadlineSeconds", int64(60)),
		"activeDeadlineSeconds of a step is for interactive ones",
	},
	"a deadline of an interactive step": {
		both(stepWith("activeDeadlineSeconds", int64(60)), onStep("interactive", true)),
		"",
	},
	"htcopts of a step": {stepWith("htcopts", "+JobFlavour = \"espresso\"\n"), ""},
	"htcopts of a step with queue": {
		stepWith("htcopts", "queue 100\n"),
		"write how many jobs you want in forEach or spec.sequences",
	},
	"a source of 256 KiB": {stepWith("script.source", strings.Repeat("x", 256<<10)), ""},
	"a source of one byte more": {
		stepWith("script.source", strings.Repeat("x", 256<<10+1)),
		"spec.steps[0].job.script.source: Too long",
	},
	"a blank source": {stepWith("script.source", " \n"), "the script must not be blank"},
	"nothing after":  {stepWith("script.after", map[string]any{"source": "\t"}), "source must not be blank"},
	"an argument with a NUL": {
		stepWith("script.args", []any{"\x00"}),
		"spec.steps[0].job.script.args[0] in body should match",
	},
	"resources of a step": {stepWith("resources", map[string]any{"memory": "2Gi"}), ""},
	"as they can be written": {
		stepWith("resources", map[string]any{"memory": int64(3000000000), "disk": "1e9", "cpus": int64(2)}),
		"",
	},
	"memory in another unit": {
		stepWith("resources", map[string]any{"memory": "4GB"}),
		"spec.steps[0].job.resources.memory: Invalid value: the memory must be 1Mi to 1Pi, written as 500Mi, 4G or 4Gi, and not as 4GB",
	},
	"memory in another unit, after a blank": {
		stepWith("resources", map[string]any{"memory": "4 GB"}),
		"and not as 4GB",
	},
	"memory without a unit": {
		stepWith("resources", map[string]any{"memory": int64(3000)}),
		"a number without a unit is in bytes: for 3000 MiB write 3000Mi",
	},
	"a disk in another unit": {
		stepWith("resources", map[string]any{"disk": "4gb"}),
		"the disk must be 1Mi to 1Pi",
	},
	"memory that cannot be compared": {
		stepWith("resources", map[string]any{"memory": "1e50000000"}),
		"spec.steps[0].job.resources.memory",
	},
	"a memoryRetry in another unit": {
		stepWith("memoryRetry", map[string]any{"maxMemory": "8GB"}),
		"maxMemory must be 1Mi to 1Pi",
	},
	"a memoryRetry of a step": {
		both(
			stepWith("resources", map[string]any{"memory": "2Gi"}),
			onStep("memoryRetry", map[string]any{"maxMemory": "8Gi"}),
		),
		"",
	},
	"variables of a step": {stepWith("environment", variables(128)), ""},
	"a variable that htcd sets": {
		stepWith("environment", map[string]any{"jobid": "x"}),
		"choose another name",
	},
	"a variable that opens containers": {
		stepWith("environment", map[string]any{"APPTAINER_BIND": "/etc"}),
		"choose another name",
	},
	"a variable of two lines": {
		stepWith("environment", map[string]any{"A": "x\ny"}),
		"spec.steps[0].job.environment.A",
	},
	"finally": {
		set("finally", aStep("report", "retries", int64(1), "pull", pull("a", "x"))),
		"",
	},
	"finally with needs": {
		set("finally", aStep("report", "needs", []any{"a"})),
		`unknown field "spec.finally.needs"`,
	},
	"finally with forEach": {
		set("finally", aStep("report", "forEach", map[string]any{"count": int64(2)})),
		`unknown field "spec.finally.forEach"`,
	},
	"a number of sequences": {
		set(
			"sequences",
			map[string]any{"count": int64(1000), "maxConcurrent": int64(200), "complete": int64(900), "prefix": "run-"},
		),
		"",
	},
	"sequences without a number": {set("sequences", map[string]any{"maxConcurrent": int64(1)}), ""},
	"no sequences":               {set("sequences.count", int64(0)), "spec.sequences.count"},
	"too many sequences":         {set("sequences.count", int64(100_001)), "spec.sequences.count"},
	"more to complete than there are": {
		set("sequences", map[string]any{"count": int64(9), "complete": int64(10)}),
		"complete must be at most the number of sequences",
	},
	"more to complete than items": {
		set("sequences", map[string]any{"items": []any{map[string]any{"A": "1"}}, "complete": int64(2)}),
		"complete must be at most the number of sequences",
	},
	"a table may be longer than complete": {
		set(
			"sequences",
			map[string]any{
				"itemsFrom": map[string]any{"configMapKeyRef": map[string]any{"name": "a", "key": "b"}},
				"complete":  int64(900),
			},
		),
		"",
	},
	"a count and items": {
		set("sequences", map[string]any{"items": []any{map[string]any{"A": "1"}}, "count": int64(1)}),
		"count, items and itemsFrom each say how many sequences there are: keep one of them",
	},
	"1,000 items": {
		set("sequences.items", several(1000, func(i int) any { return map[string]any{"SEED": fmt.Sprint(i)} })),
		"",
	},
	"1,001 items": {
		set("sequences.items", several(1001, func(i int) any { return map[string]any{"SEED": fmt.Sprint(i)} })),
		tooMany,
	},
	"items of more than 64 KiB": {
		set("sequences.items", several(22, func(i int) any { return map[string]any{"A": strings.Repeat("x", 3000)} })),
		tooMany,
	},
	"an item without variables": {set("sequences.items", []any{map[string]any{}}), "spec.sequences.items[0]"},
	"an item with an odd name": {
		set("sequences.items", []any{map[string]any{"A-1": "x"}}),
		"a variable's name must be letters, digits and _",
	},
	"an item with a variable that htcd sets": {
		set("sequences.items", []any{map[string]any{"outpath": "x"}}),
		"jobid, outpath, registry, pull_tag and push_tag are set by htcd: choose another name",
	},
	"an item with HTCPROCID": {
		set("sequences.items", []any{map[string]any{"HTCPROCID": "x"}}),
		"choose another name",
	},
	"an item of two lines": {
		set("sequences.items", []any{map[string]any{"A": "x\ny"}}),
		"spec.sequences.items[0].A",
	},
	"a prefix with a slash": {set("sequences.prefix", "a/"), "spec.sequences.prefix"},
	"a prefix with a blank": {set("sequences.prefix", "a b"), "spec.sequences.prefix"},
	"a hidden prefix":       {set("sequences.prefix", "."), "spec.sequences.prefix"},
	"a long prefix": {
		set("sequences.prefix", strings.Repeat("a", 65)),
		"spec.sequences.prefix: Too long",
	},
	"a failure policy":          {set("failurePolicy", "Abort"), ""},
	"another failure policy":    {set("failurePolicy", "Ignore"), `supported values: "Continue", "Abort"`},
	"steps that always succeed": {set("alwaysSucceed", []any{"a", "b"}), ""},
	"a throttle": {
		set(
			"throttle",
			map[string]any{"maxIdle": int64(1000), "maxJobs": int64(5000), "perStep": map[string]any{"a": int64(200)}},
		),
		"",
	},
	"a limit in the step": {onStep("parallelism", int64(2)), ""},
	"a limit in the step and in throttle": {
		func(t *testing.T, spec map[string]any) {
			onStep("parallelism", int64(2))(t, spec)
			spec["throttle"] = map[string]any{"perStep": map[string]any{"a": int64(2)}}
		},
		"spec.throttle: Invalid value: throttle.perStep of a step and its job.parallelism say the same: keep one of them",
	},
	"a limit of none in the step": {onStep("parallelism", int64(0)), "spec.steps[0].job.parallelism"},
	"places for files": {
		onStep("landing", map[string]any{"stdout": "logs/{{item.jobid}}.out", "files": map[string]any{"a": "b/"}}),
		"",
	},
	"a place for files that leads up": {
		onStep("landing", map[string]any{"directory": "../x"}),
		"the place must be a relative path without .. and control characters",
	},
	"a throttle of none": {
		set("throttle", map[string]any{"perStep": map[string]any{"a": int64(0)}}),
		"spec.throttle.perStep.a",
	},
	"a pool":         {set("pool", map[string]any{"name": "short"}), ""},
	"a resume":       {set("resume", "FromFailure"), ""},
	"another resume": {set("resume", "FromStart"), `supported values: "All", "FromFailure"`},
}

// onStep changes the job of the only step.
func onStep(field string, value any) change {
	return func(t *testing.T, spec map[string]any) {
		require.NoError(t, unstructured.SetNestedField(spec["steps"].([]any)[0].(map[string]any), value, "job", field))
	}
}

func retry(spec map[string]any, code int64) {
	s := spec["steps"].([]any)[0].(map[string]any)
	s["retries"], s["retryExitCodes"] = int64(2), numbers(code)
}

func several(n int, one func(int) any) (all []any) {
	for i := range n {
		all = append(all, one(i))
	}
	return all
}

func TestApplyAnswersForWorkflows(t *testing.T) {
	t.Parallel()
	requireAnswers(t, v1alpha1.WorkflowResource, v1alpha1.WorkflowKind, appliedWorkflows, func() map[string]any {
		return map[string]any{"steps": []any{aStep("a")}}
	})
}

func TestAWorkflowCannotChangeWhileItsJobsAreActive(t *testing.T) {
	t.Parallel()
	w := sampleOf(t, v1alpha1.WorkflowResource, map[string]any{"steps": []any{aStep("a"), aStep("b")}})
	status, _, err := unstructured.NestedMap(w.get().Object, "status")
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"phase": "Pending", "reason": "NoStatus", "observedGeneration": int64(0),
		"nodes": map[string]any{
			"total":   int64(0),
			"done":    int64(0),
			"running": int64(0),
			"idle":    int64(0),
			"held":    int64(0),
			"failed":  int64(0),
			"futile":  int64(0),
		},
		"sequences": map[string]any{"total": int64(0), "active": int64(0), "succeeded": int64(0), "failed": int64(0)},
	}, status)

	landing, parallel := aStep("b"), aStep("b")
	landing["job"].(map[string]any)["landing"] = map[string]any{"directory": "."}
	parallel["job"].(map[string]any)["parallelism"] = int64(2)
	const refusal = "spec: Forbidden: the spec cannot change while jobs are active in HTCondor: wait until they end, set spec.suspend to true, or delete this HTCWorkflow"
	_, err = w.patch(`{"spec":{"failurePolicy":"Abort"}}`)
	require.NoError(t, err, "nothing was sent yet")
	for _, phase := range []v1alpha1.Phase{v1alpha1.PhaseSubmitting, v1alpha1.PhaseIdle, v1alpha1.PhaseRunning,
		v1alpha1.PhaseHeld} {
		_, err = w.patch(fmt.Sprintf(`{"status":{"phase":%q}}`, phase), "status")
		require.NoError(t, err)
		for _, edit := range []string{
			`{"spec":{"failurePolicy":"Continue"}}`, `{"spec":{"failurePolicy":null}}`, `{"spec":{"sequences":{"count":2}}}`, `{"spec":{"sequences":{}}}`, `{"spec":{"alwaysSucceed":["a"]}}`,
			`{"spec":{"throttle":{"maxIdle":1}}}`, `{"spec":{"pool":{"name":"x"}}}`,
		} {
			_, err = w.patch(edit)
			require.ErrorContains(t, err, refusal, "%s: %s", phase, edit)
		}
		for _, steps := range [][]map[string]any{{aStep("a")}, {aStep("b"), aStep("a")}, {aStep("a"), aStep("b", "needs", []any{})}, {aStep("a"), aStep("b", "retries", int64(0))}, {aStep("a"), landing}, {aStep("a"), parallel}} {
			text, err := json.Marshal(map[string]any{"spec": map[string]any{"steps": steps}})
			require.NoError(t, err)
			_, err = w.patch(string(text))
			require.ErrorContains(t, err, refusal, "%s: %s", phase, text)
		}
		text, err := json.Marshal(map[string]any{"spec": map[string]any{"finally": aStep("c")}})
		require.NoError(t, err)
		_, err = w.patch(string(text))
		require.ErrorContains(t, err, refusal)
		_, err = w.patch(
			`{"spec":{"suspend":true,"resume":"FromFailure","ttlSecondsAfterFinished":5,"activeDeadlineSeconds":5,"ports":[{"port":80,"step":"a"}],"result":"stdout","completeAfterOutput":true}}`,
		)
		require.NoError(t, err, "these are not sent")
		_, err = w.patch(
			`{"spec":{"suspend":null,"resume":null,"ttlSecondsAfterFinished":null,"activeDeadlineSeconds":null,"ports":null,"result":null,"completeAfterOutput":null}}`,
		)
		require.NoError(t, err)
	}
	for i, phase := range []v1alpha1.Phase{v1alpha1.PhasePending, v1alpha1.PhaseSuspended, v1alpha1.PhaseSucceeded,
		v1alpha1.PhaseFailed, v1alpha1.PhaseRemoved} {
		_, err = w.patch(fmt.Sprintf(`{"status":{"phase":%q}}`, phase), "status")
		require.NoError(t, err)
		_, err = w.patch(fmt.Sprintf(`{"spec":{"sequences":{"count":%d}}}`, 10+i))
		require.NoError(t, err, phase)
	}
}

func TestKubectlGetShowsTheColumnsOfWorkflows(t *testing.T) {
	t.Parallel()
	client, err := kubernetes.NewForConfig(trial.Config(t))
	require.NoError(t, err)
	raw, err := client.RESTClient().Get().
		AbsPath("/apis", v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version, v1alpha1.WorkflowResource).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Raw()
	require.NoError(t, err)
	var table metav1.Table
	require.NoError(t, json.Unmarshal(raw, &table))
	columns := map[bool][]string{}
	for _, column := range table.ColumnDefinitions {
		columns[column.Priority == 0] = append(columns[column.Priority == 0], column.Name)
	}
	require.Equal(
		t,
		[]string{"Name", "Phase", "Done", "Total", "Running", "Idle", "Held", "Failed", "Age"},
		columns[true],
	)
	require.Equal(
		t,
		[]string{"Futile", "Sequences", "Succeeded", "JobID", "Schedd", "Checked", "Reason"},
		columns[false],
	)
}
