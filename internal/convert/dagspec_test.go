package convert

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
)

func TestAStepHasWhatAnHTCJobHasUnderTheSameName(t *testing.T) {
	fields := reflect.TypeFor[v1alpha1.StepJob]()
	var written []string
	for i := range fields.NumField() {
		field := fields.Field(i)
		same, has := reflect.TypeFor[v1alpha1.HTCJobSpec]().FieldByName(field.Name)
		require.True(t, has, field.Name)
		if same.Type != field.Type {
			written = append(written, field.Name)
		}
	}
	require.ElementsMatch(t, []string{"Script", "Environment", "Outputs"}, written, "these stepJob names one by one")
}
