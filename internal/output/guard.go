package output

import (
	"context"
	"errors"
	"time"
)

// ErrTooMuch is the error of a fetch that was broken off since it took of what stays free.
var ErrTooMuch = errors.New("the volume is about to be full")

// guardEvery is how often the volume is checked while a fetch writes to it.
const guardEvery = 50 * time.Millisecond

// Guarded runs a fetch and aborts it, with ErrTooMuch, before it fills the volume. Half of what stays free is left for concurrent fetches.
func Guarded(ctx context.Context, room func() (free, reserve Room, err error), fetch func(context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	look := time.NewTicker(guardEvery)
	defer look.Stop()
	done := make(chan error, 1)
	go func() { done <- fetch(ctx) }()
	for {
		select {
		case err := <-done:
			return err
		case <-look.C:
			free, reserve, err := room()
			if err != nil || free.Holds(Room{Bytes: reserve.Bytes / 2, Files: reserve.Files / 2}) {
				continue
			}
			stop(ErrTooMuch)
			<-done
			return ErrTooMuch
		}
	}
}
