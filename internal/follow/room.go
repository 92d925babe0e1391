package follow

import (
	"fmt"

	"htc.cern.ch/htcd/internal/output"
)

// mostCopied bounds the copies of all readers together.
const mostCopied = 2 << 30

// noRoomError says why a copy cannot be made or cannot grow.
type noRoomError struct{ why string }

func (e *noRoomError) Error() string { return e.why }

// room is where copies of what running jobs have written lie. It is on the ledger's volume, which must not fill.
type room struct {
	dir      string
	keepFree int64 // bytes of the volume
	bytes    *shares
}

// take has p use n bytes more.
func (r *room) take(p party, n int64) error {
	free, _, err := output.Volume(r.dir)
	if err != nil {
		return err
	}
	if free-n < r.keepFree {
		return &noRoomError{fmt.Sprintf("htcd's volume has %d MiB left, and %d MiB stay free (--keep-free)", free>>20, r.keepFree>>20)}
	}
	if !r.bytes.take(p, n) {
		return &noRoomError{fmt.Sprintf("your share of the %d MiB that htcd has for copies is used up", r.bytes.most>>20)}
	}
	return nil
}
