package v1alpha1_test

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/yaml"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// editRule is the rule of the generated CRD that refuses edits while jobs are active.
func editRule(t *testing.T, resource string) (rule, message string) {
	t.Helper()
	text, err := os.ReadFile("../../deploy/base/crd/htc.cern.ch_" + resource + ".yaml")
	require.NoError(t, err)
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema struct {
						Rules []struct{ Rule, Message string } `json:"x-kubernetes-validations"`
					} `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	require.NoError(t, yaml.Unmarshal(text, &crd))
	rules := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Rules
	require.Len(t, rules, 1)
	return rules[0].Rule, rules[0].Message
}

func TestWhatIsSentIsWhatMayNotChangeWhileJobsAreActive(t *testing.T) {
	t.Run("HTCJob", func(t *testing.T) {
		guards(t, v1alpha1.Resource, v1alpha1.HTCJobSpec.Sent)
	})
	t.Run("HTCWorkflow", func(t *testing.T) {
		guards(t, v1alpha1.WorkflowResource, v1alpha1.HTCWorkflowSpec.Sent)
	})
}

// guards compares the rule of a kind with what is sent of its spec.
func guards[S any](t *testing.T, resource string, sentOf func(S) S) {
	var full S
	fields := reflect.ValueOf(&full).Elem()
	for _, field := range reflect.VisibleFields(fields.Type()) {
		if !field.Anonymous {
			fields.FieldByIndex(field.Index).Set(something(t, field.Type))
		}
	}
	rule, message := editRule(t, resource)
	sent := reflect.ValueOf(sentOf(full))
	for _, field := range reflect.VisibleFields(fields.Type()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous || name == "managedBy" { // which never changes
			continue
		}
		guarded := regexp.MustCompile(
			`self\.spec\.\??` + name + `\]? == \[?oldSelf\.spec\.\??` + name + `\b`,
		).MatchString(
			rule,
		)
		if sent.FieldByIndex(field.Index).IsZero() {
			require.False(t, guarded, "%s is not sent, and yet the rule refuses its change", name)
			require.Contains(t, message, name, "the refusal names what may change at any time")
			continue
		}
		require.True(t, guarded, "%s is sent: the rule must refuse its change", name)
		require.NotRegexp(t, `\b`+name+`(,| and| may)`, message)
	}
}

func TestWhereAStepsFilesLandIsNotSent(t *testing.T) {
	w := v1alpha1.HTCWorkflow{Spec: v1alpha1.HTCWorkflowSpec{
		Steps: []v1alpha1.Step{{StepWork: v1alpha1.StepWork{Name: "a"}}}, Finally: &v1alpha1.StepWork{Name: "z"},
	}}
	was := w.SpecHash()
	// Another hash of the same spec would run every HTCWorkflow again when htcd is updated.
	require.Equal(t, "cf8bf29e501f3e32006ae89de590acd4", was)
	w.Spec.Steps[0].Job.Landing, w.Spec.Finally.Job.Landing = &v1alpha1.Landing{
		Directory: "x",
	}, &v1alpha1.Landing{
		Stdout: "y",
	}
	require.Equal(t, was, w.SpecHash())
	require.NotNil(t, w.Spec.Steps[0].Job.Landing, "the spec itself is as it was")
	require.NotNil(t, w.Spec.Finally.Job.Landing)
	w.Spec.Steps[0].Job.Parallelism = new(int32(1))
	require.NotEqual(t, was, w.SpecHash())
}

func TestTheHashTellsWhatIsSent(t *testing.T) {
	job := v1alpha1.HTCJob{
		Spec: v1alpha1.HTCJobSpec{
			Script: v1alpha1.Script{Program: v1alpha1.Program{Image: "a", Command: "b", Source: "c"}},
		},
	}
	was := job.SpecHash()
	// Another hash of the same spec would run every HTCJob again when htcd is updated.
	require.Equal(t, "5c5fda5aee9e6aafd1c2df8b89d3a461", was)
	job.Spec.Suspend, job.Spec.TTLSecondsAfterFinished = true, new(int32(5))
	require.Equal(t, was, job.SpecHash())
	job.Spec.Retries = new(int32(0))
	require.NotEqual(t, was, job.SpecHash())
}

// something is a value of that type that is not zero.
func something(t *testing.T, of reflect.Type) reflect.Value {
	t.Helper()
	v := reflect.New(of).Elem()
	switch of.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(of.Elem()))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Map:
		v.Set(reflect.MakeMap(of))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(of, 1, 1))
	case reflect.Struct:
		v.Field(0).Set(something(t, of.Field(0).Type))
	default:
		require.FailNow(t, "a spec field of an unknown kind", of.String())
	}
	return v
}

func TestALongAnnotationIsKnownByItsBeginningAndAHash(t *testing.T) {
	rerun := func(value string) string {
		annotations := map[string]string{v1alpha1.RerunAnnotation: value}
		job, flow := &v1alpha1.HTCJob{}, &v1alpha1.HTCWorkflow{}
		job.Annotations, flow.Annotations = annotations, annotations
		require.Equal(t, job.Rerun(), flow.Rerun())
		return job.Rerun()
	}
	require.Empty(t, rerun(""))
	require.Equal(t, strings.Repeat("a", v1alpha1.MaxRerun), rerun(strings.Repeat("a", v1alpha1.MaxRerun)))
	long := rerun(strings.Repeat("a", 250_000))
	require.Len(t, long, v1alpha1.MaxRerun)
	require.Regexp(t, `^a+\.\.\. \(250000 bytes, sha256 [0-9a-f]{64}\)$`, long)
	require.NotEqual(t, long, rerun(strings.Repeat("a", 249_999)+"b"))
	require.True(t, utf8.ValidString(rerun(strings.Repeat("aä", 250_000))))
}
