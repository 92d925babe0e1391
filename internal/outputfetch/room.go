package outputfetch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"htc.cern.ch/htcd/internal/backend"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
)

// bookings is the space that fetches under way may still need. Safe for concurrent use.
type bookings struct {
	mu  sync.Mutex
	sum output.Room
}

// The least that a job is assumed to need: its directory, its streams, and half a block for each.
var leastOutput = output.Room{Bytes: 64 << 10, Files: 4}

// manyFiles is more files than one job is expected to leave.
const manyFiles = 10_000

// book selects those jobs whose output fits on the volume beside what must stay free and what other fetches have booked. If
// it returns any, the caller calls leave at the end.
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

// noSpace says why nothing is fetched and what helps. The free space changes all the time, so the text omits it.
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

// room returns what is free on the volume, and how much of that output must leave free.
func (f *Fetcher) room() (free, reserve output.Room, err error) {
	free, size, err := f.volume()
	return free, output.Reserve(f.KeepFree, size), err
}

// outputSizes returns how much space the jobs' output needs according to HTCondor, which is not asked if there is room for
// the most they may have left. HTCondor does not report how many files they left: its ScratchDirFileCount also counts those
// of an image being unpacked. A fetch of too many is aborted.
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
		sizes[proc] = leastOutput // nothing will arrive from a job that is not there
	}
	err = f.Schedd.Queue(ctx, id, b.of(wanted).Constraint(), func(j schedd.Job) error {
		if j.Cluster == b.run.Cluster && slices.Contains(wanted, j.Number()) {
			sizes[j.Number()] = leastOutput.Plus(output.Room{Bytes: j.BytesSent})
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

// guarded runs a fetch and aborts it before it fills the volume: more may arrive than HTCondor reported.
func (f *Fetcher) guarded(ctx context.Context, fetch func(context.Context) error) error {
	err := output.Guarded(ctx, f.room, fetch)
	if errors.Is(err, output.ErrTooMuch) {
		return &output.NoSpaceError{Message: "a fetch was broken off: its jobs left more behind than HTCondor reports, and it took of what stays free on the volume (--keep-free)"}
	}
	return err
}
