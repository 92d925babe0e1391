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
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/internal/aggregate"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
)

// Schedd is what a Reader asks of HTCondor.
type Schedd interface {
	Queue(ctx context.Context, id schedd.Identity, constraint string, fn func(schedd.Job) error) error
	Tail(ctx context.Context, id schedd.Identity, t schedd.Tail, w io.Writer) error
}

// Options configure a Reader.
type Options struct {
	HTCJobs cache.Store
	Ledger  interface {
		Read(ctx context.Context, fn func(*ledger.Tx) error) error
	}
	Schedd Schedd
	// Identity returns the account and schedd for questions about a run.
	Identity func(ctx context.Context, run ledger.Run) (schedd.Identity, error)
	Store    output.Store
	Dir      string        // for copies, and data that a slow reader has not taken yet
	KeepFree int64         // bytes that these leave free on its volume
	Places   int           // most readers from nodes at once
	Wait     time.Duration // how long a condor_tail may take to show existing output
	Pause    time.Duration // between two looks at the job's row in the ledger
	Fresh    time.Duration // between two questions to the schedd about it
}

// Limits of reading from a node, where every byte costs the starter's time.
const (
	mostLive    = 256 << 20      // a longer stream is shown when the job has ended
	mostBehind  = 256 << 20      // what a slow reader may leave unread
	followGrows = 16 << 20       // between two looks of condor_tail
	mostFollow  = 24 * time.Hour // one condor_tail; another continues
)

// Reader answers users' requests for their jobs' output.
type Reader struct {
	o      Options
	places *shares
	room   *room
}

// New returns a reader. It starts nothing.
func New(o Options) *Reader {
	return &Reader{o: o, places: newShares(int64(o.Places)), room: &room{dir: o.Dir, keepFree: o.KeepFree, bytes: newShares(mostCopied)}}
}

var _ aggregate.Source = (*Reader)(nil)

// find looks up the requested run. The attempt is that of the ledger if there is one.
func (r *Reader) find(ctx context.Context, q aggregate.Query) (job *v1alpha1.HTCJob, run *ledger.Run, proc *ledger.Proc, err error) {
	object, there, err := r.o.HTCJobs.GetByKey(q.Namespace + "/" + q.Name)
	if err != nil {
		return nil, nil, nil, err
	}
	if !there {
		return nil, nil, nil, notFound(q, "there is no HTCJob %s in namespace %s", q.Name, q.Namespace)
	}
	job = object.(*v1alpha1.HTCJob)
	err = r.o.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		run, proc = nil, nil
		latest, err := latest(tx, string(job.UID), q.Attempt)
		if errors.Is(err, ledger.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		run = &latest
		p, err := tx.Proc(latest.UID, latest.Attempt, q.Proc)
		if errors.Is(err, ledger.ErrNotFound) {
			return nil
		}
		proc = &p
		return err
	})
	if err != nil {
		return nil, nil, nil, fmt.Errorf("ask the ledger: %w", err)
	}
	if run == nil && q.Attempt > 0 {
		return nil, nil, nil, notFound(q, "HTCJob %s has no attempt %d", q.Name, q.Attempt)
	}
	jobs := job.Queue()
	if run != nil {
		jobs = run.Procs
	}
	if q.Proc >= jobs {
		return nil, nil, nil, notFound(q, "HTCJob %s has no job %d: they are numbered 0 to %d", q.Name, q.Proc, jobs-1)
	}
	return job, run, proc, nil
}

func latest(tx *ledger.Tx, uid string, attempt int) (ledger.Run, error) {
	if attempt > 0 {
		return tx.Run(uid, attempt)
	}
	return tx.LatestRun(uid)
}

// Log finds one stream of one job.
func (r *Reader) Log(ctx context.Context, q aggregate.Query) (*aggregate.Answer, error) {
	f := &following{Reader: r, q: q}
	if err := f.look(ctx); err != nil {
		return nil, err
	}
	if f.at.place == waiting && f.run != nil && f.proc != nil && f.proc.Status == ledger.StatusOpen {
		if err := f.ask(ctx); err == nil { // the ledger is some seconds behind
			f.at = f.seen
		}
	}
	switch {
	case f.at.place == never:
		return nil, notFound(q, "%s", f.at.why)
	case (f.at.place == waiting || f.at.place == ending) && !q.Follow:
		return nil, absent(q, f.at)
	}
	answer := &aggregate.Answer{Write: f.write, Close: f.close}
	if f.run != nil {
		answer.Attempt = f.run.Attempt
		f.q.Attempt = f.run.Attempt // later attempts are not shown
	}
	if err := f.begin(ctx); err != nil {
		f.close()
		return nil, err
	}
	answer.Offset = f.offset
	return answer, nil
}

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
	if f.offset = min(f.q.Offset, f.size); f.offset == 0 {
		f.offset, err = from(f.file, f.size, f.q.TailLines)
	}
	return err
}

// following is one reader's way through the places.
type following struct {
	*Reader
	q aggregate.Query

	at   whereabouts
	job  *v1alpha1.HTCJob
	run  *ledger.Run
	proc *ledger.Proc

	seen   whereabouts // from the schedd
	starts int         // how often HTCondor had started it then

	place  bool     // holds one of Reader.places
	copied *backlog // what a running job had written at the start
	file   *os.File // what existed at the start: fetched, or that copy
	size   int64
	offset int64 // what the user already has
}

func (f *following) close() {
	f.drop()
	if f.place {
		f.places.give(f.party(), 1)
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

func (f *following) party() party { return party{f.q.User, f.q.Namespace} }

// sit takes a place, if one is free.
func (f *following) sit() bool {
	if !f.place {
		f.place = f.places.take(f.party(), 1)
	}
	return f.place
}

// look asks the ledger where the output is.
func (f *following) look(ctx context.Context) (err error) {
	if f.job, f.run, f.proc, err = f.find(ctx, f.q); err == nil {
		f.at = where(f.job, f.run, f.proc)
	}
	return err
}

// ask asks the schedd whether the job runs.
func (f *following) ask(ctx context.Context) error {
	id, err := f.o.Identity(ctx, *f.run)
	if err != nil {
		return err
	}
	f.seen = whereabouts{waiting, fmt.Sprintf("job %s is on its way to HTCondor or back", f.proc.JobID())}
	one := fmt.Sprintf("ClusterId == %d && ProcId == %d", f.proc.Cluster, f.proc.Proc)
	return f.o.Schedd.Queue(ctx, id, one, func(j schedd.Job) error {
		if j.Spooling() {
			return nil
		}
		proc := *f.proc
		proc.JobStatus = int(j.Status)
		f.seen = where(f.job, f.run, &proc)
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
	a := output.Attempt{Namespace: f.q.Namespace, Name: f.q.Name, Number: f.run.Attempt}
	file, err := f.o.Store.Open(a, f.q.Proc, name)
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
	if !f.sit() {
		return apierrors.NewTooManyRequests(fmt.Sprintf("the output of running jobs may be read by %d at once, "+
			"and your share of that, or that of namespace %s, is used up", f.places.most, f.q.Namespace), 5)
	}
	id, err := f.o.Identity(ctx, *f.run)
	if err != nil {
		return err
	}
	if err := f.ask(ctx); err != nil { // how often it was started
		return apierrors.NewServiceUnavailable("HTCondor did not answer: " + err.Error())
	}
	if f.seen.place == ending { // the ledger is some seconds behind
		if f.q.Follow {
			return nil
		}
		return absent(f.q, f.seen)
	}
	copied, err := newBacklog(f.room, f.party(), mostLive)
	if err != nil {
		return err
	}
	tailing, stop := f.whileItRuns(ctx)
	defer stop()
	err = f.o.Schedd.Tail(tailing, id, schedd.Tail{
		Cluster: f.proc.Cluster, Proc: f.proc.Proc, Stderr: f.q.Stderr, MaxBytes: mostLive, Timeout: f.o.Wait,
	}, copied)
	if err != nil && tailing.Err() != nil && ctx.Err() == nil && f.q.Follow { // it has just ended
		return copied.Close()
	}
	f.copied, f.file, f.size = copied, copied.file, copied.written
	if copied.broken != nil {
		return apierrors.NewServiceUnavailable(fmt.Sprintf("job %s runs, but what it has written cannot be copied now: %v; "+
			"it can be read when the job has ended", f.proc.JobID(), copied.broken))
	}
	if err != nil {
		return apierrors.NewServiceUnavailable(fmt.Sprintf("job %s runs, but its node could not be asked for what it has written (%v); "+
			"it can be read when the job has ended", f.proc.JobID(), err))
	}
	if f.size == mostLive {
		return notYet(f.q, "job %s has written more than %d MiB: that can be read when it has ended", f.proc.JobID(), mostLive>>20)
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
			if err := f.ask(ctx); err != nil {
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
	if !f.sit() { // the user has waited: too late for a refusal
		return nil // perhaps the next time
	}
	id, err := f.o.Identity(ctx, *f.run)
	if err != nil {
		return nil // as above
	}
	behind, err := newBacklog(f.room, f.party(), mostBehind)
	if err != nil {
		return err
	}
	defer behind.Close()
	tailing, stop := f.whileItRuns(ctx)
	defer stop()
	tail := schedd.Tail{
		Cluster: f.proc.Cluster, Proc: f.proc.Proc, Stderr: f.q.Stderr, Follow: true,
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

// Archive finds the files of ended jobs.
func (r *Reader) Archive(ctx context.Context, q aggregate.Query) (*aggregate.Answer, error) {
	one := q
	if q.AllProcs {
		one.Proc = 0
	}
	job, run, proc, err := r.find(ctx, one)
	if err != nil {
		return nil, err
	}
	at := where(job, run, proc)
	if run == nil {
		return nil, absent(q, at)
	}
	a := output.Attempt{Namespace: q.Namespace, Name: q.Name, Number: run.Attempt}
	procs := []int{q.Proc}
	switch {
	case q.AllProcs:
		if procs, err = r.kept(a, q.Proc); err != nil {
			return nil, err
		}
		if len(procs) == 0 && q.Proc == 0 && at.place != kept {
			return nil, absent(q, at)
		}
	case at.place == never:
		return nil, notFound(q, "%s", at.why)
	case at.place != kept:
		return nil, absent(q, at)
	default:
		if have, err := r.kept(a, q.Proc); err != nil || len(have) == 0 || have[0] != q.Proc {
			return nil, errors.Join(err, notFound(q, "the output of job %s is no longer kept", proc.JobID()))
		}
	}
	return &aggregate.Answer{
		Attempt: run.Attempt, Jobs: run.Procs, Close: func() {},
		Write: func(ctx context.Context, w io.Writer) error {
			if len(procs) == 0 { // which Store.Archive would treat as all
				return nil
			}
			return r.o.Store.Archive(ctx, w, a, procs...)
		},
	}, nil
}

// kept are the jobs of an attempt, from one on, whose output was fetched.
func (r *Reader) kept(a output.Attempt, from int) ([]int, error) {
	all, err := r.o.Store.Procs(a)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for i, proc := range all {
		if proc >= from {
			return all[i:], nil
		}
	}
	return nil, nil
}
