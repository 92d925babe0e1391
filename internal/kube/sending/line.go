package sending

import (
	"htc.cern.ch/htcd/internal/artifact"
	"htc.cern.ch/htcd/internal/schedd"
)

// Line names the workers for actions at a schedd. What fetches artifacts, which may take minutes, has workers of its
// own, so that no other submission waits for a registry.
type Line struct {
	At      schedd.Endpoint
	Fetches bool
}

// More is how many workers a line has besides the usual ones: enough to fetch in all places and to tell the others what
// they wait for.
func (l Line) More() int {
	if !l.Fetches {
		return 0
	}
	return artifact.Places
}
