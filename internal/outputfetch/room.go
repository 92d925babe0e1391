package outputfetch

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/backend"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
)

// bookings is the room that the fetches under way may still need. Safe for concurrent use.
type bookings struct {
	mu  sync.Mutex
	sum output.Room
}

// The least that a job is taken to need: its directory, its streams, and half a block of each.
var leastOutput = output.Room{Bytes: 64 << 10, Files: 4}

// manyFiles is how many files one job is not expected to leave behind.
const manyFiles = 10_000

// book takes those of some jobs whose output the volume has a place for beside what must stay free and what other
// fetches have booked. Whoever got some calls leave in the end.
func (f *Fetcher) book(ctx context.Context, b batch, wanted []int) (fit []int, leave func(), err error) {
	sizes, err := f.outputSizes(ctx, b, wanted)
	if err != nil {
		return nil, nil, err
	}
	free, reserve, err := f.room()
	if err != nil {
		return nil, nil, volumeError(err)
	}
	f.bookings.mu.Lock()
	defer f.bookings.mu.Unlock()
	left := free.Minus(reserve).Minus(f.bookings.sum)
	var sum output.Room
	for _, proc := range wanted {
		if more := sum.Plus(sizes[proc]); left.Holds(more) {
			fit, sum = append(fit, proc), more
		}
	}
	if len(fit) == 0 {
		return nil, nil, noSpace(free, reserve, sizes[wanted[0]], fmt.Sprintf("%d.%d", b.run.Cluster, wanted[0]))
	}
	f.bookings.sum = f.bookings.sum.Plus(sum)
	return fit, func() {
		f.bookings.mu.Lock()
		defer f.bookings.mu.Unlock()
		f.bookings.sum = f.bookings.sum.Minus(sum)
	}, nil
}

// noSpace says why nothing is fetched, and what helps. How much is free changes all the time, so the text leaves it out.
func noSpace(free, reserve, size output.Room, job string) error {
	left := free.Minus(reserve)
	switch {
	case left.Holds(size):
		return &output.NoSpaceError{Message: fmt.Sprintf("job %s left %d MiB, for which the volume has no room until other fetches are over", job, mebibytes(size))}
	case left.Bytes >= size.Bytes:
		return &output.NoSpaceError{Message: fmt.Sprintf("the volume has no room for more files beside the %d that stay free: %s", reserve.Files, output.MoreRoom)}
	}
	return &output.NoSpaceError{Message: fmt.Sprintf("job %s left %d MiB, for which the volume has no room beside the %d MiB that stay free (--keep-free): %s",
		job, mebibytes(size), mebibytes(reserve), output.MoreRoom)}
}

func mebibytes(r output.Room) int64 { return (r.Bytes + 1<<20 - 1) >> 20 }

// room is what the volume has free, and how much of that output leaves free.
func (f *Fetcher) room() (free, reserve output.Room, err error) {
	free, size, err := f.volume()
	return free, output.Reserve(f.KeepFree, size), err
}

// outputSizes is how much the output of some jobs takes, by HTCondor's word. It is not asked where there is room for
// the most that they may have left behind. How many files they left it does not say: its ScratchDirFileCount counts those
// of an image that was being unpacked, too. A fetch of too many is broken off.
func (f *Fetcher) outputSizes(ctx context.Context, b batch, wanted []int) (map[int]output.Room, error) {
	sizes := map[int]output.Room{}
	free, reserve, err := f.room()
	if err != nil {
		return nil, volumeError(err)
	}
	most := output.Room{Bytes: f.MaxOutput<<20 + leastOutput.Bytes, Files: manyFiles}
	all := output.Room{Bytes: most.Bytes * int64(len(wanted)), Files: most.Files * int64(len(wanted))}
	if f.MaxOutput > 0 && free.Minus(reserve).Minus(f.bookings.now()).Holds(all) {
		for _, proc := range wanted {
			sizes[proc] = most
		}
		return sizes, nil
	}
	id, err := backend.Questioner(ctx, f.Credentials, backend.TargetOf(b.run))
	if err != nil {
		return nil, err
	}
	for _, proc := range wanted {
		sizes[proc] = leastOutput // of one that is not there nothing will come
	}
	err = f.Schedd.Queue(ctx, id, b.of(wanted).Constraint(), func(j schedd.Job) error {
		if j.Cluster == b.run.Cluster && slices.Contains(wanted, j.Proc) {
			sizes[j.Proc] = leastOutput.Plus(output.Room{Bytes: j.BytesSent})
		}
		return nil
	})
	return sizes, err
}

func (b *bookings) now() output.Room {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sum
}

// guardEvery is how often the volume is looked at while a fetch writes to it.
const guardEvery = 50 * time.Millisecond

// guarded runs a fetch and breaks it off before it takes the last of the volume: what HTCondor reported may be less than what
// comes. The half of what stays free is there for the fetches of one moment.
func (f *Fetcher) guarded(ctx context.Context, fetch func(context.Context) error) error {
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
			free, reserve, err := f.room()
			if err != nil || free.Holds(output.Room{Bytes: reserve.Bytes / 2, Files: reserve.Files / 2}) {
				continue
			}
			full := &output.NoSpaceError{Message: "a fetch was broken off: its jobs left more behind than HTCondor reports, and it took of what stays free on the volume (--keep-free)"}
			stop(full)
			<-done
			return full
		}
	}
}
