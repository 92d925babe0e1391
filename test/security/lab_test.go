package security

import (
	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/trial"
)

// port returns the port on which a part listens on loopback.
func port(b *trial.Bench, part string) int {
	b.T.Helper()
	event, err := b.Lab.Ask(b.T.Context(), lab.Request{Op: lab.OpStatus}, nil)
	require.NoError(b.T, err)
	for _, p := range event.Parts {
		if p.Part == part {
			return p.Port
		}
	}
	require.FailNow(b.T, "no part "+part)
	return 0
}
