package schedd

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

func TestAScheddThatIsNotFoundIsNamedAndSoIsTheCollector(t *testing.T) {
	const nowhere = `case "$*" in *COLLECTOR*) `
	const lost = ` ;; *) echo "ERROR: couldn't locate schedd.test!" >&2; exit 1 ;; esac`
	for name, c := range map[string]struct{ script, words string }{
		"the collector answers": {
			nowhere + `echo 'Command = 60040'` + lost,
			"condor_ping: the collector pool.test has no record of schedd schedd.test: it is stopped, or it has another name",
		},
		"the collector lets nobody in": {
			nowhere + `echo '#SECMAN:2010:Received "DENIED" from server'; exit 1` + lost,
			"has no record of schedd schedd.test",
		},
		"the collector does not answer, either": {
			nowhere + `echo "ERROR: failed to make connection to <127.0.0.1:9618>" >&2; exit 1` + lost,
			"condor_ping: the collector pool.test, which knows where schedd schedd.test is, does not answer: condor_ping: ERROR: failed to make connection",
		},
		"the schedd itself does not answer": {
			`echo "ERROR: failed to make connection to <127.0.0.1:9618>" >&2; exit 1`,
			"condor_ping: schedd schedd.test: ERROR: failed to make connection",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tools(t, long, map[string]string{"condor_ping": c.script}).Ping(t.Context(), Identity{}, Reading)
			require.ErrorContains(t, err, c.words)
			require.Equal(t, condor.Unreachable, condor.KindOf(err))
		})
	}
}
