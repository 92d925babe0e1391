package fetch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// The least that a job is assumed to need: its directory, its streams, and half a block for each.
var leastOutput = output.Room{Bytes: 64 << 10, Files: 4}

// manyFiles is more files than one job is expected to leave.
const manyFiles = 10_000

// book selects those jobs whose output fits on the volume beside what must stay free and what other fetches have
// booked, and within the share of their namespace. HTCondor is not asked for their sizes if there is room for the most
// they may have left. The caller leaves the booking.
func (f *Fetcher) book(ctx context.Context, b batch, wanted []int) (fit []int, booking *output.Booking, err error) {
	if f.MaxOutput > 0 {
		most := output.Room{Bytes: f.MaxOutput<<20 + leastOutput.Bytes, Files: manyFiles}
		n := int64(len(wanted))
		all := output.Room{Bytes: most.Bytes * n, Files: most.Files * n}
		booking, err := f.Shares.Book(b.run.Namespace, func(l output.Left) (output.Room, bool) {
			if !l.Holds(all) {
				return output.Room{}, false
			}
			return all, false
		})
		if booking != nil || err != nil {
			return wanted, booking, volumeError(err)
		}
	}
	sizes, err := f.outputSizes(ctx, b, wanted)
	if err != nil {
		return nil, nil, err
	}
	var last output.Left
	booking, err = f.Shares.Book(b.run.Namespace, func(l output.Left) (sum output.Room, more bool) {
		fit, last = nil, l
		for _, proc := range wanted {
			if with := sum.Plus(sizes[proc]); l.Holds(with) {
				fit, sum = append(fit, proc), with
			}
		}
		return sum, len(fit) < len(wanted)
	})
	if err == nil && booking == nil {
		err = noSpace(last, sizes[wanted[0]], b.run.Namespace, fmt.Sprintf("%d.%d", b.run.Cluster, wanted[0]))
	}
	return fit, booking, volumeError(err)
}

// noSpace says why nothing is fetched and what helps. The free space changes all the time, so the text omits it.
func noSpace(left output.Left, size output.Room, namespace, job string) error {
	switch {
	case left.Free.Holds(size):
		return &output.NoSpaceError{
			Message: fmt.Sprintf(
				"job %s left %d MiB, with which namespace %s %s: %s",
				job,
				mebibytes(size),
				namespace,
				output.OverShare,
				output.MoreRoom,
			),
		}
	case left.Unbooked().Holds(size):
		return &output.NoSpaceError{
			Message: fmt.Sprintf(
				"job %s left %d MiB, for which the volume has no room until other fetches are over",
				job,
				mebibytes(size),
			),
		}
	case left.Free.Bytes >= size.Bytes:
		return &output.NoSpaceError{
			Message: fmt.Sprintf(
				"the volume has no room for more files beside the %d that stay free: %s",
				left.Reserve.Files,
				output.MoreRoom,
			),
		}
	}
	return &output.NoSpaceError{
		Message: fmt.Sprintf(
			"job %s left %d MiB, for which the volume has no room beside the %d MiB that stay free (--keep-free): %s",
			job,
			mebibytes(size),
			mebibytes(left.Reserve),
			output.MoreRoom,
		),
	}
}

func mebibytes(r output.Room) int64 { return (r.Bytes + 1<<20 - 1) >> 20 }

// outputSizes returns how much space the jobs' output needs according to HTCondor. It does not report how many files
// they left: its ScratchDirFileCount also counts those of an image being unpacked. A fetch of too many is aborted.
func (f *Fetcher) outputSizes(ctx context.Context, b batch, wanted []int) (map[int]output.Room, error) {
	sizes := map[int]output.Room{}
	id, err := backend.Questioner(ctx, f.Credentials, backend.TargetOf(b.run))
	if err != nil {
		return nil, err
	}
	for _, proc := range wanted {
		sizes[proc] = leastOutput // nothing will arrive from a job that is not there
	}
	err = f.Schedd.Query(ctx, id, schedd.Query{Where: b.of(wanted).Constraint()}, func(j condor.Job) error {
		if j.Cluster == b.run.Cluster && slices.Contains(wanted, j.Number()) {
			sizes[j.Number()] = leastOutput.Plus(output.Room{Bytes: j.BytesSent})
		}
		return nil
	})
	return sizes, err
}

// guarded runs a fetch and aborts it before it fills the volume, or takes what others are to have: more may arrive than
// HTCondor reported.
func guarded(ctx context.Context, b *output.Booking, fetch func(context.Context) error) error {
	err := b.Guarded(ctx, fetch)
	switch {
	case errors.Is(err, output.ErrTooMuch):
		return &output.NoSpaceError{
			Message: "a fetch was broken off: its jobs left more behind than HTCondor reports, and it took of what stays free on the volume (--keep-free)",
		}
	case errors.Is(err, output.ErrOverShare):
		return &output.NoSpaceError{
			Message: "a fetch was broken off: its jobs left more behind than HTCondor reports, with which their namespace " + output.OverShare + ": " + output.MoreRoom,
		}
	}
	return err
}
