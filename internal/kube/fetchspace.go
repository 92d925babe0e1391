package kube

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
)

// reasonNoSpace is a reason of the condition OutputFetched.
const reasonNoSpace = "NoSpace"

// noSpaceError says that the volume has no place for output.
type noSpaceError struct{ message string }

func (e *noSpaceError) Error() string { return e.message }

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
// fetches have booked. Whoever got some calls release in the end.
func (c *Controller) book(ctx context.Context, b batch, wanted []int) (fit []int, release func(), err error) {
	sizes, err := c.outputSizes(ctx, b, wanted)
	if err != nil {
		return nil, nil, err
	}
	free, reserve, err := c.volume()
	if err != nil {
		return nil, nil, placeError(err)
	}
	c.bookings.mu.Lock()
	defer c.bookings.mu.Unlock()
	left := free.Minus(reserve).Minus(c.bookings.sum)
	var sum output.Room
	for _, proc := range wanted {
		if more := sum.Plus(sizes[proc]); left.Holds(more) {
			fit, sum = append(fit, proc), more
		}
	}
	if len(fit) == 0 {
		return nil, nil, noSpace(free, reserve, c.bookings.sum, sizes[wanted[0]], fmt.Sprintf("%d.%d", b.run.Cluster, wanted[0]))
	}
	c.bookings.sum = c.bookings.sum.Plus(sum)
	return fit, func() {
		c.bookings.mu.Lock()
		defer c.bookings.mu.Unlock()
		c.bookings.sum = c.bookings.sum.Minus(sum)
	}, nil
}

// noSpace says why nothing is fetched, and what helps.
func noSpace(free, reserve, booked, size output.Room, job string) error {
	const cure = "delete HTCJobs whose output is not needed any more, or have the volume enlarged"
	if free.Minus(reserve).Minus(booked).Bytes >= size.Bytes {
		return &noSpaceError{fmt.Sprintf("job %s left %d files or so, the volume has room for %d more, of which %d stay free: %s",
			job, size.Files, free.Files, reserve.Files, cure)}
	}
	others := ""
	if booked.Bytes > 0 {
		others = fmt.Sprintf(", %d MiB are being fetched", booked.Bytes>>20)
	}
	return &noSpaceError{fmt.Sprintf("job %s left %d MiB; the volume has %d MiB free, of which %d MiB stay free (--keep-free)%s: %s",
		job, (size.Bytes+1<<20-1)>>20, free.Bytes>>20, reserve.Bytes>>20, others, cure)}
}

// volume is what the volume has free, and how much of that output leaves free.
func (c *Controller) volume() (free, reserve output.Room, err error) {
	free, size, err := c.Output.Volume()
	return free, output.Reserve(c.KeepFree, size), err
}

// outputSizes is how much the output of some jobs takes, by HTCondor's word. It is not asked where there is room for
// the most that they may have left behind.
func (c *Controller) outputSizes(ctx context.Context, b batch, wanted []int) (map[int]output.Room, error) {
	sizes := map[int]output.Room{}
	free, reserve, err := c.volume()
	if err != nil {
		return nil, placeError(err)
	}
	most := output.Room{Bytes: c.Site.MaxOutput<<20 + leastOutput.Bytes, Files: manyFiles}
	all := output.Room{Bytes: most.Bytes * int64(len(wanted)), Files: most.Files * int64(len(wanted))}
	if c.Site.MaxOutput > 0 && free.Minus(reserve).Minus(c.bookings.now()).Holds(all) {
		for _, proc := range wanted {
			sizes[proc] = most
		}
		return sizes, nil
	}
	id, err := c.questioner(ctx, homeOf(b.run))
	if err != nil {
		return nil, err
	}
	for _, proc := range wanted {
		sizes[proc] = leastOutput // of one that is not there nothing will come
	}
	const block = 4 << 10
	err = c.Schedd.Queue(ctx, id, b.of(wanted).Constraint(), func(j schedd.Job) error {
		if j.Cluster == b.run.Cluster && slices.Contains(wanted, j.Proc) {
			sizes[j.Proc] = leastOutput.Plus(output.Room{Bytes: j.BytesSent + block*j.ScratchFiles, Files: j.ScratchFiles})
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
func (c *Controller) guarded(ctx context.Context, fetch func(context.Context) error) error {
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
			free, reserve, err := c.volume()
			if err != nil || free.Holds(output.Room{Bytes: reserve.Bytes / 2, Files: reserve.Files / 2}) {
				continue
			}
			full := &noSpaceError{"a fetch was broken off: its jobs left more behind than HTCondor reports, and the volume has only " +
				strconv.FormatInt(free.Bytes>>20, 10) + " MiB and " + strconv.FormatInt(free.Files, 10) + " files left"}
			stop(full)
			<-done
			return full
		}
	}
}
