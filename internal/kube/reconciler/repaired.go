package reconciler

import (
	"github.com/rs/zerolog"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/ledger/procset"
)

// LogRepaired writes a line about all rows of a run that were repaired alike.
func LogRepaired(line *zerolog.Event, repaired crosscheck.Alike) {
	line.Str("numbers", lifecycle.Shorten(procset.Of(repaired.Numbers).String(), lifecycle.MaxListed)).
		Int("was", int(repaired.First.Was.Status)).
		Int("is", int(repaired.First.Is.Status)).
		Str("kind", string(repaired.Kind)).
		Msg("repaired")
}
