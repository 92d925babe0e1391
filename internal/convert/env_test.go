package convert_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/convert"
)

func TestWhatAPatternMatchesBeginsAsThePatternDoes(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.MkdirAll("data/low", 0o755))
	require.NoError(t, os.WriteFile("data/a.dat", nil, 0o600))
	for pattern, want := range map[string][]string{
		"./data/*.dat": {"./data/a.dat"},
		"data//*.dat":  {"data//a.dat"},
		"./da*":        {"./data/"},
		"d*/a.dat":     {"data/a.dat"},
		"data/*":       {"data/a.dat", "data/low/"},
	} {
		got, err := convert.Here(nil, false).Glob(pattern)
		require.NoError(t, err)
		require.Equal(t, want, got, pattern)
	}
}
