package schedd

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

func TestAPoolTakesJobsOfSeveralNodesOfTheScheddThatItsMachinesName(t *testing.T) {
	ours, other := "DedicatedScheduler@a.example.org", "DedicatedScheduler@b.example.org"
	require.NoError(t, takesNodes("a.example.org", []string{other, strings.ToUpper(ours)}))
	require.NoError(t, takesNodes("", []string{other}), "the schedd's name is not known")
	for _, schedulers := range [][]string{nil, {other}, {"a.example.org"}} {
		err := takesNodes("a.example.org", schedulers)
		require.Equal(t, condor.Refused, condor.KindOf(err))
		require.ErrorContains(
			t,
			err,
			`spec.nodes: no machine of the pool takes jobs of several nodes from this schedd (DedicatedScheduler = "DedicatedScheduler@a.example.org")`,
		)
	}
}
