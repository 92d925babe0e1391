package cache

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestALabHasTheHTCondorThatIsAskedFor(t *testing.T) {
	for asked, want := range map[string]string{"": "23", "23": "23", "25": "25"} {
		got, err := CondorVersion(asked)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := CondorVersion("24")
	require.EqualError(t, err, "CONDOR=24: a lab has HTCondor 23 or 25")
}
