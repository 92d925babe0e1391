package workflow

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/graph"
)

func TestWhatAStepSaysIsWhatItsHTCJobSays(t *testing.T) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[v1alpha1.StepJob]()) {
		if field.Anonymous {
			continue
		}
		t.Run(field.Name, func(t *testing.T) {
			step := v1alpha1.Step{StepWork: v1alpha1.StepWork{Name: "a"}}
			of := reflect.ValueOf(&step.Job).Elem().FieldByIndex(field.Index)
			saying(t, of)
			w := &v1alpha1.HTCWorkflow{Spec: v1alpha1.HTCWorkflowSpec{Steps: []v1alpha1.Step{step}}}
			g, err := graph.New(w.Spec)
			require.NoError(t, err)
			got := reflect.ValueOf(stepJob(w, g, 0).Spec).FieldByName(field.Name)
			require.False(t, got.IsZero(), "stepJob forgets %s", field.Name)
			if got.Type() == of.Type() {
				require.Equal(t, of.Interface(), got.Interface())
			}
		})
	}
}

// saying sets a value to one that says something.
func saying(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("A"), reflect.New(v.Type().Elem()).Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Struct:
		for i := range v.NumField() {
			saying(t, v.Field(i))
		}
	default:
		require.FailNow(t, "a field of an unknown kind", v.Type().String())
	}
}
