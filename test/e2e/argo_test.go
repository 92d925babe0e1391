package e2e

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// Argo's executor reads both conditions as label selectors whose keys are GJSON paths into the object. A step has
// failed if any requirement of the failure condition holds, which is checked first, and succeeded if all of the success
// condition's do (argo-workflows, workflow/executor/resource.go, matchConditions).

// fieldsOf presents an object's fields as labels.
type fieldsOf []byte

func (f fieldsOf) Has(path string) bool   { return gjson.GetBytes(f, path).Exists() }
func (f fieldsOf) Get(path string) string { return gjson.GetBytes(f, path).String() }
func (f fieldsOf) Lookup(path string) (string, bool) {
	return f.Get(path), f.Has(path)
}

// waiting is what a step waits for.
type waiting struct{ success, failure labels.Requirements }

func waitingFor(t *testing.T, success, failure string) (w waiting) {
	t.Helper()
	for condition, into := range map[string]*labels.Requirements{success: &w.success, failure: &w.failure} {
		selector, err := labels.Parse(condition)
		require.NoError(t, err)
		*into, _ = selector.Requirements()
		require.NotEmpty(t, *into)
	}
	return w
}

func (w waiting) holds(object []byte) (succeeded, failed bool) {
	succeeded = true
	for _, r := range w.success {
		succeeded = succeeded && r.Matches(fieldsOf(object))
	}
	for _, r := range w.failure {
		failed = failed || r.Matches(fieldsOf(object))
	}
	return succeeded, failed
}

// argoStep reads the example's first template.
func argoStep(t *testing.T) (waiting, *unstructured.Unstructured) {
	t.Helper()
	text, err := os.ReadFile("../../examples/argo/workflow.yaml")
	require.NoError(t, err)
	workflow := &unstructured.Unstructured{}
	require.NoError(t, yaml.UnmarshalStrict(text, &workflow.Object))
	templates, _, err := unstructured.NestedSlice(workflow.Object, "spec", "templates")
	require.NoError(t, err)
	resource := templates[0].(map[string]any)["resource"].(map[string]any)
	return waitingFor(
		t,
		resource["successCondition"].(string),
		resource["failureCondition"].(string),
	), argoJobs(t, workflow)[0]
}

// argoVariable is what Argo replaces in a template.
var argoVariable = regexp.MustCompile(`\{\{[^}]*\}\}`)

// argoJobs returns the HTCJobs that a workflow's templates create, with x for all variables.
func argoJobs(t *testing.T, workflow *unstructured.Unstructured) (all []*unstructured.Unstructured) {
	t.Helper()
	templates, _, err := unstructured.NestedSlice(workflow.Object, "spec", "templates")
	require.NoError(t, err)
	for _, template := range templates {
		job := &unstructured.Unstructured{}
		if spec, is, _ := unstructured.NestedMap(template.(map[string]any), "plugin", "htcjob"); is {
			job.Object = map[string]any{"metadata": map[string]any{"name": "x"}, "spec": spec}
			job.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))
			all = append(all, job)
		}
		if action, _, _ := unstructured.NestedString(
			template.(map[string]any),
			"resource",
			"action",
		); action == "apply" ||
			action == "create" {
			manifest, _, err := unstructured.NestedString(template.(map[string]any), "resource", "manifest")
			require.NoError(t, err)
			require.NoError(t, yaml.UnmarshalStrict([]byte(argoVariable.ReplaceAllString(manifest, "x")), &job.Object))
			all = append(all, job)
		}
	}
	require.NotEmpty(t, all)
	return all
}

// Checks every version of an HTCJob that the apiserver ever stored, from its creation to its end or deletion.
func TestArgosConditionsThroughEveryStage(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	ctx := t.Context()
	step, manifest := argoStep(t)
	set("script.source", "echo from Argo\n")(t, manifest.Object["spec"].(map[string]any))
	unstructured.RemoveNestedField(manifest.Object, "spec", "retries")  // some of the cases say otherwise
	older := waitingFor(t, "status.succeeded > 0", "status.failed > 0") // correct as long as there is one job
	// The status may learn about it only when a short job is over.
	started := func(b *trial.Bench, name string) {
		running := trial.Tagged(b.Get(name)) + " && JobStatus == 2"
		b.Eventually(
			func() bool { return len(b.Condor("condor_q", running)) == 1 },
			func() string { return name + " never ran" },
		)
	}
	deaf := func(b *trial.Bench, name string) {
		b.Eventually(func() bool {
			out, err := b.Lab.Run(ctx, "htcd", "logs", name, "-n", b.Namespace)
			return err == nil && out == "deaf\n"
		}, func() string { return name + " never ran" })
	}
	condor := func(tool string) func(*trial.Bench, string) {
		return func(b *trial.Bench, name string) {
			_, err := b.Lab.Run(ctx, tool, "-constraint", trial.Tagged(b.Get(name)))
			require.NoError(t, err)
		}
	}
	suspend := func(is bool) func(*trial.Bench, string) {
		return func(b *trial.Bench, name string) {
			_, err := b.Jobs.Patch(
				ctx,
				name,
				types.MergePatchType,
				fmt.Appendf(nil, `{"spec":{"suspend":%v}}`, is),
				metav1.PatchOptions{},
			)
			require.NoError(t, err)
		}
	}
	phase := func(p v1alpha1.Phase) func(*trial.Bench, string) {
		return func(b *trial.Bench, name string) { b.Phase(name, p) }
	}
	wait, open := b.Gate()
	ends := func(*trial.Bench, string) { open() }
	waitToo, openToo := b.Gate()
	endsToo := func(*trial.Bench, string) { openToo() }
	type acts []func(*trial.Bench, string)
	const neither = ""
	cases := map[string]struct {
		spec map[string]any // beside the example's
		acts acts           // what happens after its creation, in order
		end  string
	}{
		"succeeds":              {end: "success"},
		"fails":                 {spec: map[string]any{"script.source": "exit 3\n"}, end: "failure"},
		"refused-by-htcd":       {spec: map[string]any{"htcopts": "executable = /bin/sh\n"}, end: "failure"},
		"refused-by-the-schedd": {spec: map[string]any{"htcopts": "+ProjectName = \"forbidden\"\n"}, end: "failure"},
		"retried-in-vain": {
			spec: map[string]any{"script.source": "exit 5\n", "htcopts": "max_retries = 1\n"},
			end:  "failure",
		},
		"run-twice": {spec: map[string]any{"htcopts": "on_exit_remove = NumJobStarts > 1\n"}, end: "success"},
		"three": {
			spec: map[string]any{"script.source": "sleep $(( $1 * 3 ))\n", "script.queue": int64(3)},
			end:  "success",
		},
		"first-of-three-fails": {
			spec: map[string]any{
				"script.source": "sleep $(( $1 * 3 )); exit $(( $1 == 0 ))\n",
				"script.queue":  int64(3),
			},
			end: "failure",
		},
		"last-of-three-fails": {
			spec: map[string]any{
				"script.source": "sleep $(( $1 * 3 )); exit $(( $1 == 2 ))\n",
				"script.queue":  int64(3),
			},
			end: "failure",
		},
		"removed": {
			spec: map[string]any{"script.source": "sleep 1000\n"},
			acts: acts{started, condor("condor_rm")},
			end:  "failure",
		},
		"held-and-released": {
			spec: map[string]any{"script.source": wait},
			acts: acts{
				started,
				condor("condor_hold"),
				phase(v1alpha1.PhaseHeld),
				condor("condor_release"),
				ends,
			},
			end: "success",
		},
		"suspended-from-the-start": {
			spec: map[string]any{"suspend": true},
			acts: acts{phase(v1alpha1.PhaseSuspended), suspend(false)},
			end:  "success",
		},
		"suspended-while-running": {
			spec: map[string]any{"script.source": waitToo},
			acts: acts{
				started,
				suspend(true),
				phase(v1alpha1.PhaseSuspended),
				suspend(false),
				endsToo,
			},
			end: "success",
		},
		"deleted": {spec: map[string]any{"script.source": "sleep 1000\n"}, acts: acts{started}, end: neither},
		// It stays visible in the queue as removed for a while.
		"deleted-and-slow-to-go": {
			spec: map[string]any{"script.source": "trap '' TERM; echo deaf; while :; do sleep 1; done\n",
				"htcopts": "want_graceful_removal = true\njob_max_vacate_time = 20\n"},
			acts: acts{deaf},
			end:  neither,
		},
	}

	client, err := dynamic.NewForConfig(trial.Config(t))
	require.NoError(t, err)
	jobs := client.Resource(v1alpha1.GroupVersion.WithResource(v1alpha1.Resource)).Namespace(b.Namespace)
	versions := recorded(t, jobs)
	require.True(t, t.Run("acts", func(t *testing.T) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				b := *b
				b.T = t
				job := manifest.DeepCopy()
				job.SetGenerateName("")
				job.SetName(name)
				for path, value := range c.spec {
					set(path, value)(t, job.Object["spec"].(map[string]any))
				}
				_, err := jobs.Create(ctx, job, metav1.CreateOptions{})
				require.NoError(t, err)
				for _, act := range c.acts {
					act(&b, name)
				}
				switch c.end {
				case "success":
					b.Fetched(name)
				case "failure":
					b.Ended(name)
				}
				require.NoError(t, jobs.Delete(ctx, name, metav1.DeleteOptions{}))
			})
		}
	}))

	stored := versions(len(cases))
	for name, c := range cases {
		conditions := map[string]waiting{"the example's": step}
		if c.spec["script.queue"] == nil {
			conditions["older ones"] = older
		}
		for which, w := range conditions {
			last := neither
			for i, version := range stored[name] {
				status := gjson.GetBytes(version, "status").Raw
				succeeded, failed := w.holds(version)
				require.False(t, succeeded && failed, "%s, %s: both at %d: %s", name, which, i, status)
				now := neither
				switch {
				case succeeded:
					now = "success"
				case failed:
					now = "failure"
				}
				if last != neither {
					require.Equal(t, last, now, "%s, %s: taken back at %d: %s", name, which, i, status)
				}
				if now != neither {
					require.EqualValues(
						t,
						0,
						gjson.GetBytes(version, "status.active").Int(),
						"%s, %s: before the end: %s",
						name,
						which,
						status,
					)
				}
				last = now
			}
			require.Equal(t, c.end, last, "%s, %s, after %d versions", name, which, len(stored[name]))
		}
	}
}

// recorded watches from now on. The returned function waits until this many objects are deleted and returns all
// versions.
func recorded(t *testing.T, jobs dynamic.ResourceInterface) func(deleted int) map[string][][]byte {
	t.Helper()
	list, err := jobs.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	w, err := jobs.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	return func(deleted int) map[string][][]byte {
		versions := map[string][][]byte{}
		for event := range w.ResultChan() {
			job, ok := event.Object.(*unstructured.Unstructured)
			require.True(t, ok, "%s %v", event.Type, event.Object)
			text, err := job.MarshalJSON()
			require.NoError(t, err)
			versions[job.GetName()] = append(versions[job.GetName()], text)
			if event.Type == watch.Deleted {
				if deleted--; deleted == 0 {
					return versions
				}
			}
		}
		require.FailNow(t, "the watch ended early")
		return nil
	}
}
