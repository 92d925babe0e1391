package output

import (
	"context"
	"errors"
	"io"
	"time"
)

// The errors of a fetch that was broken off.
var (
	ErrTooMuch   = errors.New("the volume is about to be full")
	ErrOverShare = errors.New("it brought more than its namespace may keep here")
)

const (
	// guardEvery is how often the volume is checked while a fetch writes to it.
	guardEvery = 50 * time.Millisecond
	// measureEvery is how often, at most, what it has brought is measured.
	measureEvery = time.Second
)

// Guarded runs a fetch into the booking's directory and aborts it, with ErrTooMuch, before it fills the volume, and
// with ErrOverShare, before it takes of what others are to have. Half of what stays free is left for concurrent
// fetches.
func (b *Booking) Guarded(ctx context.Context, fetch func(context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	look := time.NewTicker(guardEvery)
	defer look.Stop()
	done := make(chan error, 1)
	go func() { done <- fetch(ctx) }()
	var measured time.Time
	before, _, unknown := b.of.Volume()
	for {
		select {
		case err := <-done:
			return err
		case now := <-look.C:
			free, size, err := b.of.Volume()
			if err != nil {
				continue
			}
			reserve := b.of.Reserve(size)
			var why error
			switch {
			case !free.Holds(Room{Bytes: reserve.Bytes / 2, Files: reserve.Files / 2}):
				why = ErrTooMuch
			// others may have taken it
			case unknown != nil || b.most.Holds(before.Minus(free)) || now.Sub(measured) < measureEvery:
				continue
			default:
				measured = now
				if b.most.Holds(Taken(b.dir)) {
					continue
				}
				why = ErrOverShare
			}
			stop(why)
			<-done
			return why
		}
	}
}

// WhileNeeded is a reader that fails once ctx has ended, such as that of Guarded.
func WhileNeeded(ctx context.Context, from io.Reader) io.Reader { return whileNeeded{ctx, from} }

type whileNeeded struct {
	ctx  context.Context
	from io.Reader
}

func (r whileNeeded) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.from.Read(p)
}
