package submit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

func TestProcsMayHaveNumbersOfTheirOwn(t *testing.T) {
	d := description()
	d.Queue, d.Numbers, d.Items = 3, []int{3, 7, 8}, []string{"A=1\n", "A=2\n", "A=3\n"}
	d.Inputs = []Input{{Name: "in", OfProc: true}}
	s, err := d.Render()
	require.NoError(t, err)
	require.Equal(t, 3, s.Procs)
	text := textOf(s, FileSubmit)
	require.NotContains(t, text, "$(ProcId)")
	require.Contains(t, text, "\narguments = $(HTCJobProc)\n")
	require.Contains(t, text, ".in/$(HTCJobProc)/, .own-$(HTCJobProc)\n")
	require.True(
		t,
		strings.HasSuffix(text, "\nMy.HTCJobProc = $(HTCJobProc)\nqueue HTCJobProc from (\n3\n7\n8\n)\n"),
		text,
	)
	dir := t.TempDir()
	require.NoError(t, Stage(dir, s, "tok"))
	got, err := os.ReadFile(filepath.Join(dir, ".own-7"))
	require.NoError(t, err)
	require.Equal(t, "tok\n\nA=2\n", string(got))
	procs, err := StagedProcs(dir)
	require.NoError(t, err)
	require.Equal(t, 3, procs)

	for name, numbers := range map[string][]int{"too few": {1, 2}, "not in order": {3, 2, 4}, "one twice": {2, 2, 3}, "negative": {-1, 2, 3}} {
		d.Numbers = numbers
		_, err := d.Render()
		require.Equal(t, condor.Refused, condor.KindOf(err), name)
	}
}
