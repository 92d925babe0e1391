package follow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// begin opens what exists, and finds out where the user wants to start.
func (f *following) begin(ctx context.Context) (err error) {
	f.offset = f.q.Offset
	switch f.at.place {
	case running:
		err = f.snapshot(ctx)
	case kept:
		err = f.open()
	}
	if err != nil || f.file == nil {
		return err
	}
	if f.at.place == running && f.q.Follow && f.q.Offset > f.size { // cut short, or the job has been started again
		f.drop()
		return nil
	}
	if f.offset = min(f.q.Offset, f.size); f.offset == 0 {
		f.offset, err = from(f.file, f.size, f.q.TailLines)
	}
	return err
}

// following is one reader's way through the places.
type following struct {
	*Reader
	q aggregate.Query

	find func(ctx context.Context) (found, error)
	kept func(file string) (*os.File, error) // opens what was fetched
	found

	seen   whereabouts // from the schedd
	starts int         // how often HTCondor had started it then

	counted bool     // holds one of Reader.followers
	place   bool     // holds one of Reader.places
	copied  *backlog // what a running job had written at the start
	file    *os.File // what existed at the start: fetched, or that copy
	size    int64
	offset  int64 // what the user already has
}

func (f *following) close() {
	f.drop()
	if f.place {
		f.places.give(f.requester(), 1)
	}
	if f.counted {
		f.followers.give(f.requester(), 1)
	}
}

// drop closes what existed at the start.
func (f *following) drop() {
	if f.copied != nil {
		_ = f.copied.Close()
	} else if f.file != nil {
		_ = f.file.Close() // only read
	}
	f.copied, f.file = nil, nil
}

func (f *following) requester() requester { return requester{f.q.User, f.q.Namespace} }

// takePlace takes a place, if one is free.
func (f *following) takePlace() bool {
	if !f.place {
		f.place = f.places.take(f.requester(), 1)
	}
	return f.place
}

// look asks the ledger where the output is.
func (f *following) look(ctx context.Context) error {
	now, err := f.find(ctx)
	if err == nil {
		f.found = now
	}
	return err
}

// ask asks the schedd whether the job runs. Without patience it fails if another question does not fit in now.
func (f *following) ask(ctx context.Context, patience time.Duration) error {
	return f.question(ctx, f.requester(), patience, func() error { return f.askSchedd(ctx) })
}

func (f *following) askSchedd(ctx context.Context) error {
	id, err := f.o.Identity(ctx, *f.run)
	if err != nil {
		return err
	}
	f.seen = whereabouts{waiting, fmt.Sprintf("job %s is on its way to HTCondor or back", f.proc.JobID())}
	cluster, place := f.proc.Place()
	return f.o.Schedd.Query(ctx, id, schedd.Query{Where: condor.OneJob(cluster, place)}, func(j condor.Job) error {
		if j.Spooling() {
			return nil
		}
		proc := *f.proc
		proc.JobStatus = int(j.Status)
		f.seen = where(f.object, f.run, &proc)
		f.starts = j.NumJobStarts
		return nil
	})
}

// open opens fetched output.
func (f *following) open() error {
	name := output.Stdout
	if f.q.Stderr {
		name = output.Stderr
	}
	file, err := f.kept(name)
	if errors.Is(err, fs.ErrNotExist) {
		return notFound(f.q, "the output of job %s is no longer kept", f.proc.JobID())
	}
	if err != nil {
		return err
	}
	f.drop()
	f.file = file
	info, err := file.Stat()
	if err == nil {
		f.size = info.Size()
	}
	return err
}

// snapshot copies what a running job has written so far.
func (f *following) snapshot(ctx context.Context) error {
	if !f.takePlace() {
		return apierrors.NewTooManyRequests(fmt.Sprintf("the output of running jobs may be read by %d at once, "+
			"and your share of that, or the share of namespace %s, is used up", f.places.most, f.q.Namespace), 5)
	}
	id, err := f.o.Identity(ctx, *f.run)
	if err != nil {
		return err
	}
	err = f.ask(ctx, f.o.Wait) // how often it was started
	if apierrors.IsTooManyRequests(err) {
		return err
	}
	if err != nil {
		return apierrors.NewServiceUnavailable("HTCondor did not answer: " + err.Error())
	}
	if f.seen.place == ending { // the ledger is some seconds behind
		if f.q.Follow {
			return nil
		}
		return absent(f.q, f.seen)
	}
	copied, err := newBacklog(f.room, f.requester(), mostLive)
	if err != nil {
		return err
	}
	tailing, stop := f.whileItRuns(ctx)
	defer stop()
	cluster, place := f.proc.Place()
	err = f.o.Schedd.Tail(tailing, id, schedd.Tail{
		Cluster: cluster, Proc: place, Stderr: f.q.Stderr, MaxBytes: mostLive, Timeout: f.o.Wait,
	}, copied)
	nowhere := errors.Is(err, schedd.ErrNoNode)
	if err != nil && (tailing.Err() != nil || nowhere) && ctx.Err() == nil &&
		f.q.Follow { // it has just ended, or will run elsewhere
		return copied.Close()
	}
	f.copied, f.file, f.size = copied, copied.file, copied.written
	if nowhere {
		return notYet(
			f.q,
			"the node of job %s has gone, and it will get another: there is no output yet",
			f.proc.JobID(),
		)
	}
	if copied.broken != nil {
		return apierrors.NewServiceUnavailable(
			fmt.Sprintf("job %s runs, but what it has written cannot be copied now: %v; "+
				"it can be read when the job has ended", f.proc.JobID(), copied.broken),
		)
	}
	if err != nil {
		return apierrors.NewServiceUnavailable(
			fmt.Sprintf("job %s runs, but its node could not be asked for what it has written (%v); "+
				"it can be read when the job has ended", f.proc.JobID(), err),
		)
	}
	if f.size == mostLive {
		return notYet(
			f.q,
			"job %s has written more than %d MiB: that can be read when it has ended",
			f.proc.JobID(),
			mostLive>>20,
		)
	}
	return nil
}

// write sends what exists, and with Follow what is added, until the job has ended.
func (f *following) write(ctx context.Context, w io.Writer) error {
	if f.file != nil {
		n, err := io.Copy(w, io.NewSectionReader(f.file, f.offset, f.size-f.offset))
		f.offset += n
		if err != nil || f.at.place == kept || !f.q.Follow {
			return err
		}
		f.drop()
	}
	asked := time.Time{}
	for {
		if err := f.look(ctx); err != nil {
			return err
		}
		switch f.at.place {
		case kept:
			if err := f.open(); err != nil {
				return err
			}
			if f.offset > f.size { // it ended in another run of the job than the one that was seen
				f.offset = 0
			}
			_, err := io.Copy(w, io.NewSectionReader(f.file, f.offset, f.size-f.offset))
			return err
		case never:
			return nil
		case running, waiting:
			if f.proc == nil || f.proc.Status != ledger.StatusOpen || time.Since(asked) < f.o.Fresh {
				break
			}
			before := f.starts
			if err := f.ask(ctx, 0); err != nil {
				break // it may answer next time; the ledger knows when it has ended
			}
			asked = time.Now()
			if f.seen.place != running {
				break
			}
			if before != 0 && f.starts != before {
				f.offset = 0
			}
			if err := f.live(ctx, w); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(f.o.Pause):
		}
	}
}

// live follows a job while it runs, as far as that is known: its last output is in the fetched file.
func (f *following) live(ctx context.Context, w io.Writer) error {
	if !f.takePlace() { // the user has waited: too late for a refusal
		return nil // perhaps the next time
	}
	id, err := f.o.Identity(ctx, *f.run)
	if err != nil {
		return nil // as above
	}
	behind, err := newBacklog(f.room, f.requester(), mostBehind)
	if err != nil {
		return err
	}
	defer behind.Close()
	tailing, stop := f.whileItRuns(ctx)
	defer stop()
	cluster, place := f.proc.Place()
	tail := schedd.Tail{
		Cluster: cluster, Proc: place, Stderr: f.q.Stderr, Follow: true,
		MaxBytes: mostLive + followGrows, Timeout: mostFollow,
	}
	rest := &skipping{behind, f.offset}
	tailed := make(chan struct{})
	go func() {
		defer close(tailed)
		_ = f.o.Schedd.Tail(tailing, id, tail, rest) // in any case the missing part will be fetched at the end
		behind.end()
	}()
	n, err := io.Copy(w, behind)
	f.offset += n
	stop()
	<-tailed
	return err
}

// whileItRuns ends when the ledger knows that the job has ended: condor_tail itself does not report it.
func (f *following) whileItRuns(ctx context.Context) (context.Context, context.CancelFunc) {
	running, stop := context.WithCancel(ctx)
	ours := *f
	go func() {
		defer stop()
		for ours.look(running) == nil && ours.proc != nil && ours.proc.Status == ledger.StatusOpen {
			select {
			case <-running.Done():
			case <-time.After(ours.o.Pause):
			}
		}
	}()
	return running, stop
}

// skipping drops what the user already has.
type skipping struct {
	to  io.Writer
	had int64
}

func (s *skipping) Write(p []byte) (int, error) {
	left := int(min(s.had, int64(len(p))))
	s.had -= int64(left)
	n, err := s.to.Write(p[left:])
	return left + n, err
}
