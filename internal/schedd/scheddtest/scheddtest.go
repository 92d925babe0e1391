// Package scheddtest provides an in-memory schedd for testing users of schedd.Client. It has the same methods; the test
// plays the pool: it starts, ends, holds and loses jobs, and makes commands fail.
package scheddtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Name is what ScheddName returns.
const Name = "schedd.test"

// Schedd is a queue and a history. Use New; the zero value is not usable.
type Schedd struct {
	mu      sync.Mutex
	now     func() time.Time
	next    int
	started int64
	born    int64
	queue   []condor.Job
	history []condor.Job // newest last
	faults  map[string][]Fault
	calls   map[string]int
	files   map[string]map[string]string // output that jobs leave, by their id
	maxJobs map[int]int                  // by cluster

	factories map[int]*factory // by the clusters of their launchers
}

// Fault makes one call of a command fail. With After, the command takes effect first, like a condor_submit killed after
// the schedd had everything.
type Fault struct {
	Err   error
	After bool
	// Block, if set, blocks the call until it is closed or the context ends.
	Block <-chan struct{}
	// First, if set, is what happens just before the call.
	First func()
}

// setUp is when the queue of a new Schedd was set up, in Unix seconds: long ago.
const setUp = 1_000

// New returns an empty schedd whose next cluster is 1.
func New() *Schedd {
	return &Schedd{
		now:       time.Now,
		next:      1,
		started:   time.Now().Unix(),
		born:      setUp,
		faults:    map[string][]Fault{},
		calls:     map[string]int{},
		maxJobs:   map[int]int{},
		factories: map[int]*factory{},
	}
}

// Names of the commands for Fail and Calls.
const (
	Submit     = "Submit"
	Queue      = "Queue"
	History    = "History"
	Remove     = "Remove"
	ScheddName = "ScheddName"
	Account    = "Account"
	Answers    = "Answers"
	TakesNodes = "TakesNodes"
)

// Fail makes the next calls of a command meet these faults, one each, in order.
func (s *Schedd) Fail(command string, faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[command] = append(s.faults[command], faults...)
}

// Clock makes the schedd take its times from now.
func (s *Schedd) Clock(now func() time.Time) { s.now = now }

// Down makes every call of the commands (of all, if none is named) fail from now on; a nil error ends it.
func (s *Schedd) Down(err error, commands ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(commands) == 0 {
		commands = []string{
			Submit,
			Queue,
			Changed,
			Daemon,
			History,
			Remove,
			Account,
			Answers,
			TakesNodes,
			Transfer,
			Release,
		}
	}
	for _, c := range commands {
		delete(s.faults, "down "+c)
		if err != nil {
			s.faults["down "+c] = []Fault{{Err: err}}
		}
	}
}

// Calls returns how often a command was called.
func (s *Schedd) Calls(command string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[command]
}

// Jobs returns a copy of the queue.
func (s *Schedd) Jobs() []condor.Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.queue)
}

// Gone returns a copy of the history, oldest first.
func (s *Schedd) Gone() []condor.Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.history)
}

// Forget empties the history, as its limits do in time.
func (s *Schedd) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history = nil
}

// Edit changes the jobs of a cluster in the queue; proc -1 means all.
func (s *Schedd) Edit(cluster, proc int, f func(*condor.Job)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.edit(cluster, proc, func(j *condor.Job) {
		j.EnteredCurrentStatus = s.now().Unix()
		f(j)
	})
}

// Quietly is Edit without a change of EnteredCurrentStatus.
func (s *Schedd) Quietly(cluster, proc int, f func(*condor.Job)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.edit(cluster, proc, f)
}

func (s *Schedd) edit(cluster, proc int, f func(*condor.Job)) {
	for i := range s.queue {
		if j := &s.queue[i]; j.Cluster == cluster && (proc < 0 || j.Proc == proc) {
			f(j)
		}
	}
}

// Run starts the jobs.
func (s *Schedd) Run(cluster, proc int) {
	s.Edit(cluster, proc, func(j *condor.Job) {
		j.LastStatus, j.Status = j.Status, condor.Running
		j.NumJobStarts++
		j.RemoteHost = "slot1@node.test"
	})
}

// Complete ends the jobs with an exit code; they stay in the queue.
func (s *Schedd) Complete(cluster, proc, code int) {
	s.Edit(cluster, proc, func(j *condor.Job) {
		exited := false
		j.LastStatus, j.Status = j.Status, condor.Completed
		j.ExitBySignal, j.ExitCode, j.ExitSignal = &exited, &code, nil
		j.RemoteHost = ""
	})
}

// Hold holds the jobs.
func (s *Schedd) Hold(cluster, proc, code int, reason string) {
	s.Edit(cluster, proc, func(j *condor.Job) {
		j.LastStatus, j.Status = j.Status, condor.Held
		j.HoldReasonCode, j.HoldReason = code, reason
	})
}

// Leave moves the jobs from the queue to the history, as they are.
func (s *Schedd) Leave(cluster, proc int) { s.take(cluster, proc, true) }

// Lose drops the jobs without a trace.
func (s *Schedd) Lose(cluster, proc int) { s.take(cluster, proc, false) }

func (s *Schedd) take(cluster, proc int, keep bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = slices.DeleteFunc(s.queue, func(j condor.Job) bool {
		hit := j.Cluster == cluster && (proc < 0 || j.Proc == proc)
		if hit && keep {
			s.history = append(s.history, j)
		}
		return hit
	})
}

// Put adds jobs to the queue, as if another operator had sent them.
func (s *Schedd) Put(jobs ...condor.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range jobs {
		s.queue = append(s.queue, j)
		s.next = max(s.next, j.Cluster+1)
	}
}

// call counts a call and returns the fault it meets.
func (s *Schedd) call(ctx context.Context, command string) Fault {
	s.mu.Lock()
	s.calls[command]++
	var f Fault
	if fs := s.faults[command]; len(fs) > 0 {
		f, s.faults[command] = fs[0], fs[1:]
	} else if fs := s.faults["down "+command]; len(fs) > 0 {
		f = fs[0]
	}
	s.mu.Unlock()
	if f.First != nil {
		f.First()
	}
	if f.Block != nil {
		select {
		case <-f.Block:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil && f.Err == nil {
		f.Err = ctx.Err()
	}
	return f
}

var (
	tagLine      = regexp.MustCompile(`(?mi)^My\.(HTCJob\w+|HTCPool|HTCWorkflowNodes|HTCWorkflowRepeats)\s*=\s*(.*)$`)
	launcherLine = regexp.MustCompile(`(?m)^My\.HTCJobLauncher = true$`)
	poolLine     = regexp.MustCompile(`(?m)^My\.HTCPool = "(.*)"$`)
	mostLine     = regexp.MustCompile(`(?m)^most=(\d+)$`)
	queueLine    = regexp.MustCompile(`(?m)^queue (\d+)$`)

	queueNumbers = regexp.MustCompile(`(?m)^queue HTCJobProc from \(\n((?:\d+\n)+)\)$`)
)

// Submit reads tag and queue from dir's job.sub; the new jobs are idle and spooled.
func (s *Schedd) Submit(ctx context.Context, id schedd.Identity, dir string) (condor.Cluster, error) {
	f := s.call(ctx, Submit)
	if f.Err != nil && !f.After {
		return condor.Cluster{}, f.Err
	}
	text, err := os.ReadFile(filepath.Join(dir, "job.sub")) // #nosec G304 -- for tests only
	if err != nil {
		return condor.Cluster{}, err
	}
	n, own := queued(text)
	if n == 0 {
		return condor.Cluster{}, fmt.Errorf("%s/job.sub: no queue line", dir)
	}
	var tag condor.Tag
	for _, m := range tagLine.FindAllSubmatch(text, -1) {
		v := string(m[2])
		if u, err := strconv.Unquote(v); err == nil {
			v = u
		}
		switch string(m[1]) {
		case "HTCJobUID":
			tag.UID = v
		case "HTCJobAttempt":
			tag.Attempt, _ = strconv.Atoi(v)
		case "HTCJobNamespace":
			tag.Namespace = v
		case "HTCJobName":
			tag.Name = v
		case "HTCJobSpecHash":
			tag.SpecHash = v
		case "HTCPool":
			tag.Pool = v
		case "HTCWorkflowNodes":
			tag.Nodes = v
		case "HTCWorkflowRepeats":
			tag.Repeats = v
		}
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	c := condor.Cluster{ID: s.next, Procs: n}
	s.next++
	now := s.now().Unix()
	for p := range n {
		s.queue = append(s.queue, condor.Job{
			Cluster:              c.ID,
			Proc:                 p,
			Own:                  own[p],
			Tag:                  tag,
			Owner:                account(id),
			Status:               condor.Idle,
			LastStatus:           condor.Held,
			QDate:                now,
			StageInFinish:        now,
			EnteredCurrentStatus: now,
		})
	}
	if launcherLine.Match(text) {
		if err := s.launch(c.ID, dir); err != nil {
			return condor.Cluster{}, err
		}
	}
	return c, f.Err
}

// queued returns how many jobs a submit description has, and their own numbers.
func queued(text []byte) (n int, own []*int) {
	if q := queueNumbers.FindSubmatch(text); q != nil {
		for word := range strings.FieldsSeq(string(q[1])) {
			number, _ := strconv.Atoi(word)
			own = append(own, &number)
		}
		return len(own), own
	}
	if q := queueLine.FindSubmatch(text); q != nil {
		n, _ = strconv.Atoi(string(q[1]))
	}
	return n, make([]*int, n)
}

// Query implements condor_q and condor_history. The Node of a job is what Put gave it.
func (s *Schedd) Query(ctx context.Context, _ schedd.Identity, q schedd.Query, fn condor.JobFunc) error {
	switch {
	case q.Factories:
		return s.made(ctx, q.Where, fn)
	case q.Changed != nil:
		return s.changed(ctx, q.Where, *q.Changed, fn)
	case q.Left != nil:
		return s.left(ctx, q.Where, *q.Left, fn)
	}
	if f := s.call(ctx, Queue); f.Err != nil {
		return f.Err
	}
	now := s.now().Unix()
	return each(s.Jobs(), q.Where, func(j condor.Job) error {
		j.ServerTime = now
		return fn(j)
	})
}

// left is condor_history, newest first.
func (s *Schedd) left(
	ctx context.Context,
	constraint condor.Constraint,
	b schedd.HistoryBounds,
	fn condor.JobFunc,
) error {
	if f := s.call(ctx, History); f.Err != nil {
		return f.Err
	}
	gone := s.Gone()
	slices.Reverse(gone)
	if i := slices.IndexFunc(gone, func(j condor.Job) bool { return j.ID() == b.Since }); i >= 0 {
		gone = gone[:i]
	}
	if b.ScanLimit > 0 && len(gone) > b.ScanLimit {
		gone = gone[:b.ScanLimit]
	}
	n := 0
	return each(gone, constraint, func(j condor.Job) error {
		if n++; b.Limit > 0 && n > b.Limit {
			return nil
		}
		return fn(j)
	})
}

// Robot is the account of an identity that names no other.
const Robot = "robot"

// account returns the name that an identity has in place of a ticket cache.
func account(id schedd.Identity) string {
	if id.CCache == "" || filepath.IsAbs(id.CCache) {
		return Robot
	}
	return id.CCache
}

// remove moves the matching jobs to the history as condor_rm does: only those of the same account, silently passing
// over the others.
func (s *Schedd) remove(ctx context.Context, id schedd.Identity, c schedd.Remove) error {
	f := s.call(ctx, Remove)
	if f.Err != nil && !f.After {
		return f.Err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var rest []condor.Job
	for _, j := range s.queue {
		hit, err := match(j, c.Where)
		if err != nil {
			return err
		}
		if !hit || j.Owner != "" && j.Owner != account(id) {
			rest = append(rest, j)
			continue
		}
		j.LastStatus, j.Status = j.Status, condor.Removed
		j.RemoveReason = c.Reason + " (by user " + j.Owner + ")"
		j.EnteredCurrentStatus = s.now().Unix()
		s.history = append(s.history, j)
	}
	s.queue = rest
	for _, f := range s.factories {
		if hit, err := match(f.job, c.Where); (err != nil || hit) && f.removed.IsZero() {
			f.removed = s.now()
		}
	}
	return f.Err
}

// ScheddName returns Name.
func (s *Schedd) ScheddName(ctx context.Context, _ schedd.Identity) (string, error) {
	if f := s.call(ctx, ScheddName); f.Err != nil {
		return "", f.Err
	}
	return Name, nil
}

func each(jobs []condor.Job, constraint condor.Constraint, fn condor.JobFunc) error {
	for _, j := range jobs {
		hit, err := match(j, constraint)
		if err != nil {
			return err
		}
		if hit {
			j.Reasoned = true
			if err := fn(j); err != nil {
				return err
			}
		}
	}
	return nil
}

// Ping succeeds unless a fault is set, and returns the account as which Submit would let this identity submit.
func (s *Schedd) Ping(ctx context.Context, id schedd.Identity, p schedd.Permission) (string, error) {
	if p == schedd.Reading {
		return "", s.call(ctx, Answers).Err
	}
	if f := s.call(ctx, Account); f.Err != nil {
		return "", f.Err
	}
	return account(id), nil
}

// TakesNodes succeeds unless a fault is set.
func (s *Schedd) TakesNodes(ctx context.Context, _ schedd.Identity) error {
	return s.call(ctx, TakesNodes).Err
}
