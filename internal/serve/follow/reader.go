package follow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"htc.cern.ch/htcd/api/items"
	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/apiserver"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// Schedd is what a Reader asks of HTCondor.
type Schedd interface {
	Query(ctx context.Context, id schedd.Identity, q schedd.Query, fn condor.JobFunc) error
	Tail(ctx context.Context, id schedd.Identity, t schedd.Tail, w io.Writer) error
}

// Options configure a Reader.
type Options struct {
	HTCJobs   apiserver.Lookup[*v1alpha1.HTCJob]
	Workflows apiserver.Lookup[*v1alpha1.HTCWorkflow]
	// Attempt returns those of a workflow's DAGs, given in order, that belong to an attempt, 0 for the newest, and its
	// number; none if there is no such attempt.
	Attempt func(dags []ledger.Run, attempt int) (of []ledger.Run, number int)
	Ledger  ledger.Readable
	Schedd  Schedd
	// Identity returns the account and schedd for questions about a run.
	Identity func(ctx context.Context, run ledger.Run) (schedd.Identity, error)
	Store    output.Store
	Nodes    output.Store  // of workflows
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

// Limits of asking. The apiserver has none of its own for logs.
const (
	mostFollowers = 512 // at once, each of which asks the ledger once a Pause
	mostReaders   = 128 // at once who do not follow, each of whom keeps a page of a list while reading slowly
	mostQuestions = 8   // to HTCondor at once
)

// Reader answers users' requests for their jobs' output.
type Reader struct {
	o         Options
	places    *shares
	followers *shares
	readers   *shares
	questions *shares
	room      *room
	reports   singleflight.Group // of usage
}

// New returns a reader. It starts nothing.
func New(o Options) *Reader {
	return &Reader{
		o:         o,
		places:    newShares(int64(o.Places)),
		followers: newShares(mostFollowers),
		readers:   newShares(mostReaders),
		questions: newShares(mostQuestions),
		room:      &room{dir: o.Dir, keepFree: o.KeepFree, bytes: newShares(mostCopied)},
	}
}

var _ aggregate.Source = (*Reader)(nil)

// Place counts those who follow elsewhere.
func (r *Reader) Place(q aggregate.Query) (give func(), err error) {
	p := requester{q.User, q.Namespace}
	switch {
	case q.Follow:
		return func() {}, nil
	case !r.readers.take(p, 1):
		return nil, apierrors.NewTooManyRequests(fmt.Sprintf("htcd answers %d readers at once, and your share of that, "+
			"or the share of namespace %s, is used up", mostReaders, q.Namespace), 5)
	}
	return func() { r.readers.give(p, 1) }, nil
}

// found is what is known about a job.
type found struct {
	object object
	run    *ledger.Run  // nil: nothing was sent
	proc   *ledger.Proc // nil: HTCondor has not got it, as far as is known
	at     whereabouts
}

// find looks up the requested run. The attempt is that of the ledger if there is one.
func (r *Reader) find(ctx context.Context, q aggregate.Query) (f found, err error) {
	job, err := r.job(ctx, q)
	if err != nil {
		return f, err
	}
	var run *ledger.Run
	var proc *ledger.Proc
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
		return f, fmt.Errorf("ask the ledger: %w", err)
	}
	if run == nil && q.Attempt > 0 {
		return f, notFound(q, "HTCJob %s has no attempt %d", q.Name, q.Attempt)
	}
	jobs := job.Queue() // 0: not known until the table was read
	if run != nil {
		jobs = run.All()
	}
	if jobs > 0 && q.Proc >= jobs {
		return f, notFound(q, "HTCJob %s has no job %d: they are numbered 0 to %d", q.Name, q.Proc, jobs-1)
	}
	o := objectOf(job)
	return found{o, run, proc, where(o, run, proc)}, nil
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
	f.find = func(ctx context.Context) (found, error) { return r.find(ctx, f.q) }
	f.kept = func(file string) (*os.File, error) { return r.o.Store.Open(attemptOf(*f.run), q.Proc, file) }
	answer, err := f.answer(ctx)
	if err == nil && f.run != nil {
		answer.Attempt = f.run.Attempt
		answer.Item = r.item(ctx, *f.run, q.Proc)
		f.q.Attempt = f.run.Attempt // later attempts are not shown
	}
	return answer, err
}

// answer finds out where to begin.
func (f *following) answer(ctx context.Context) (*aggregate.Answer, error) {
	if f.q.Follow {
		if !f.followers.take(f.requester(), 1) {
			return nil, apierrors.NewTooManyRequests(fmt.Sprintf("the output of jobs may be followed by %d at once, "+
				"and your share of that, or the share of namespace %s, is used up", mostFollowers, f.q.Namespace), 5)
		}
		f.counted = true
	}
	answer, err := f.begun(ctx)
	if err != nil {
		f.close()
	}
	return answer, err
}

func (f *following) begun(ctx context.Context) (*aggregate.Answer, error) {
	if err := f.look(ctx); err != nil {
		return nil, err
	}
	if f.at.place == waiting && f.run != nil && f.proc != nil && f.proc.Status == ledger.StatusOpen {
		if err := f.ask(ctx, 0); err == nil { // the ledger is some seconds behind
			f.at = f.seen
		}
	}
	switch {
	case f.at.place == never:
		return nil, notFound(f.q, "%s", f.at.why)
	case (f.at.place == waiting || f.at.place == ending) && !f.q.Follow:
		return nil, absent(f.q, f.at)
	}
	if err := f.begin(ctx); err != nil {
		return nil, err
	}
	return &aggregate.Answer{Offset: f.offset, Write: f.write, Close: f.close}, nil
}

// item names the variables that only this job has. Output is shown without them if the ledger cannot be read now.
func (r *Reader) item(ctx context.Context, run ledger.Run, proc int) (label string) {
	_ = r.o.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		item, err := tx.Item(run.UID, run.Attempt, proc)
		label = items.Label(item)
		return err
	})
	return label
}

// Archive finds the files of ended jobs.
func (r *Reader) Archive(ctx context.Context, q aggregate.Query) (*aggregate.Answer, error) {
	return r.kept(ctx, q, func(ctx context.Context, w io.Writer, a output.Attempt, procs []int) error {
		if len(procs) == 0 { // which Store.Archive would treat as all
			return nil
		}
		if q.File != "" {
			return r.o.Store.ArchiveFile(ctx, w, a, q.File, procs...)
		}
		return r.o.Store.Archive(ctx, w, a, procs...)
	})
}

// Files finds the names and sizes of the files that Archive would send.
func (r *Reader) Files(ctx context.Context, q aggregate.Query) (*aggregate.Answer, error) {
	return r.kept(ctx, q, func(ctx context.Context, w io.Writer, a output.Attempt, procs []int) error {
		lines := json.NewEncoder(w)
		return r.o.Store.Files(ctx, a, procs, func(proc int, path string, size int64) error {
			return lines.Encode(aggregate.File{Job: proc, Path: path, Size: size})
		})
	})
}

// kept answers about those of the jobs asked for whose output is kept.
func (r *Reader) kept(
	ctx context.Context,
	q aggregate.Query,
	write func(context.Context, io.Writer, output.Attempt, []int) error,
) (*aggregate.Answer, error) {
	run, procs, err := r.ended(ctx, q)
	if err != nil {
		return nil, err
	}
	a := attemptOf(*run)
	return &aggregate.Answer{
		Attempt: run.Attempt, Jobs: run.All(), Close: func() {},
		Write: func(ctx context.Context, w io.Writer) error { return write(ctx, w, a, procs) },
	}, nil
}

func attemptOf(run ledger.Run) output.Attempt {
	return output.Attempt{Namespace: run.Namespace, Name: run.Name, Number: run.Attempt}
}

// ended finds the run and those of the jobs asked for whose output is kept.
func (r *Reader) ended(ctx context.Context, q aggregate.Query) (*ledger.Run, []int, error) {
	one := q
	if q.AllProcs {
		one.Proc = 0
	}
	f, err := r.find(ctx, one)
	if err != nil {
		return nil, nil, err
	}
	run, proc, at := f.run, f.proc, f.at
	if run == nil {
		return nil, nil, absent(q, at)
	}
	a := attemptOf(*run)
	procs := []int{q.Proc}
	switch {
	case q.AllProcs:
		if procs, err = r.from(a, q.Proc); err != nil {
			return nil, nil, err
		}
		if len(procs) == 0 && q.Proc == 0 && at.place != kept {
			return nil, nil, absent(q, at)
		}
	case at.place == never:
		return nil, nil, notFound(q, "%s", at.why)
	case at.place != kept:
		return nil, nil, absent(q, at)
	default:
		if have, err := r.from(a, q.Proc); err != nil || len(have) == 0 || have[0] != q.Proc {
			return nil, nil, errors.Join(err, notFound(q, "the output of job %s is no longer kept", proc.JobID()))
		}
	}
	return run, procs, nil
}

// from returns the jobs of an attempt, from one on, whose output was fetched.
func (r *Reader) from(a output.Attempt, from int) ([]int, error) {
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
