package follow

import (
	"fmt"

	"htc.cern.ch/htcd/internal/output"
)

// mostCopied bounds the copies of all readers together.
const mostCopied = 2 << 30

// noRoomError explains why a copy cannot be made or cannot grow.
type noRoomError struct{ why string }

func (e *noRoomError) Error() string { return e.why }

// room is the space for copies of running jobs' output. It is on the ledger's volume, which must not fill up.
type room struct {
	dir      string
	keepFree int64 // bytes of the volume; 0: see output.Reserve
	bytes    *shares
}

// take lets p use n more bytes.
func (r *room) take(p requester, n int64) error {
	free, size, err := output.Volume(r.dir)
	if err != nil {
		return err
	}
	if reserve := output.Reserve(r.keepFree, size); free.Bytes-n < reserve.Bytes {
		return &noRoomError{
			fmt.Sprintf(
				"htcd's volume has %d MiB left, and %d MiB stay free (--keep-free)",
				free.Bytes>>20,
				reserve.Bytes>>20,
			),
		}
	}
	if !r.bytes.take(p, n) {
		return &noRoomError{
			fmt.Sprintf("your share of the %d MiB that htcd has for copies is used up", r.bytes.most>>20),
		}
	}
	return nil
}
