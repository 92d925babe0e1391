package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
)

func TestFurtherSequencesBeginInOneLevelAlone(t *testing.T) {
	completing := func(s ...v1alpha1.Step) error {
		_, err := New(spec{Steps: s, Sequences: &v1alpha1.Sequences{Completions: new(int32(1))}})
		return err
	}
	require.NoError(t, completing(step("probe", all), step("a"), step("b"), step("plot", all)))
	require.ErrorContains(
		t,
		completing(step("a"), step("plot", all), step("late")),
		`spec.sequences.completions: the step "late" runs in each sequence after a step for all of them`,
	)
}
