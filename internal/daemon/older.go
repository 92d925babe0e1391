package daemon

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// errOlderState ends everything in this process, as the loss of the Lease does (see reexec): what it has seen may never
// have been. A watch that goes on from a version that the apiserver does not have yet says nothing until it has it
// again, and then leaves out what happened before.
var errOlderState = errors.New("the apiserver has an older state than it had: etcd was put back")

const lookAtStateEvery = 10 * time.Second

// watchState asks at each tick for the version that the apiserver has, and returns errOlderState once it goes back, nil
// when ctx ends.
func watchState(
	ctx context.Context, tick <-chan time.Time, version func(ctx context.Context) (string, error),
) error {
	for newest := uint64(0); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick:
		}
		asked, cancel := context.WithTimeout(ctx, lookAtStateEvery)
		text, err := version(asked)
		cancel()
		if err != nil {
			continue // others say so
		}
		now, err := strconv.ParseUint(text, 10, 64)
		switch {
		case err != nil:
		case now < newest:
			return errOlderState
		default:
			newest = now
		}
	}
}
