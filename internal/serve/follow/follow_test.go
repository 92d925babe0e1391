package follow

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/apiserver"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// node is a pool with one job on one node, whose starter condor_tail asks.
type node struct {
	mu      sync.Mutex
	more    sync.Cond
	status  condor.JobStatus
	starts  int
	written string
	err     error
	tails   int
	short   int // what a condor_tail that does not follow leaves out
	ad      condor.Job
	silent  error // of condor_q
}

func (n *node) set(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
	n.more.Broadcast()
}

func (n *node) Query(_ context.Context, _ schedd.Identity, _ schedd.Query, fn func(condor.Job) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.status == 0 || n.silent != nil {
		return n.silent
	}
	ad := n.ad
	ad.Cluster, ad.Status, ad.NumJobStarts = 7, n.status, n.starts
	return fn(ad)
}

// Tail behaves as the real one: it returns by itself only if it has followed a job until its end.
func (n *node) Tail(ctx context.Context, _ schedd.Identity, t schedd.Tail, w io.Writer) error {
	defer context.AfterFunc(ctx, func() { n.set(func() {}) })()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tails++
	n.more.Broadcast()
	if n.err != nil {
		return n.err
	}
	start := 0 // the one being followed; the next has another starter
	for sent := 0; ; n.more.Wait() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if t.Follow && start != 0 && (n.status != condor.Running || n.starts != start) {
			return nil
		}
		if n.status != condor.Running {
			continue
		}
		start = n.starts
		sent = min(sent, len(n.written))
		end := len(n.written)
		if !t.Follow {
			end -= n.short
		}
		if _, err := io.WriteString(w, n.written[sent:end]); err != nil {
			return err
		}
		if sent = len(n.written); !t.Follow {
			return nil
		}
	}
}

// world is one HTCJob of one job, whose output a Reader finds.
type world struct {
	t *testing.T
	*Reader
	*node
	book  *ledger.Ledger
	store output.Store
	job   *v1alpha1.HTCJob
}

func newWorld(t *testing.T) *world {
	dir := t.TempDir()
	book, err := ledger.Open(t.Context(), filepath.Join(dir, "ledger"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, book.Close()) })
	w := &world{t: t, node: &node{}, book: book, store: output.Store{Root: filepath.Join(dir, "out")}}
	w.more.L = &w.mu
	w.job = &v1alpha1.HTCJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "zero", UID: "u"}}
	w.job.Status.Phase = v1alpha1.PhasePending
	w.Reader = New(Options{
		HTCJobs: only(w.job), Ledger: book, Schedd: w.node, Store: w.store, Dir: filepath.Join(dir, "following"),
		Identity: func(context.Context, ledger.Run) (schedd.Identity, error) { return schedd.Identity{}, nil },
		Places:   4, Wait: 10 * time.Second, Pause: time.Millisecond, Fresh: 2 * time.Millisecond,
	})
	return w
}

// only finds one object.
func only[O metav1.Object](there O) apiserver.Lookup[O] {
	return func(_ context.Context, namespace, name string) (O, bool, error) {
		return there, namespace == there.GetNamespace() && name == there.GetName(), nil
	}
}

// sent records that an attempt was.
func (w *world) sent(attempt int) {
	w.write(func(tx *ledger.Tx) error {
		run := ledger.Run{
			UID:       "u",
			Attempt:   attempt,
			Namespace: "ns",
			Name:      "zero",
			State:     ledger.Submitted,
			Cluster:   7,
			Procs:     1,
			OutputDir: "/out",
			Submitted: time.Now(),
		}
		return errors.Join(tx.InsertRun(run), tx.InsertProcs(run, 1))
	})
}

func (w *world) write(fn func(*ledger.Tx) error) {
	require.NoError(w.t, w.book.Write(w.t.Context(), fn))
}

// proc changes what the ledger has of the job.
func (w *world) proc(change func(*ledger.Proc)) {
	w.write(func(tx *ledger.Tx) error {
		p, err := tx.Proc("u", 1, 0)
		change(&p)
		return errors.Join(err, tx.UpdateProc(p))
	})
}

// runs makes the job run.
func (w *world) runs() {
	w.set(func() { w.status, w.starts = condor.Running, w.starts+1 })
	w.proc(func(p *ledger.Proc) { p.JobStatus = int(condor.Running) })
}

// tailed waits until n condor_tails have begun.
func (w *world) tailed(times int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.tails < times {
		w.more.Wait()
	}
}

// ends makes the job end and its output be fetched.
func (w *world) ends() {
	w.set(func() { w.status = condor.Completed })
	w.proc(func(p *ledger.Proc) { p.Status, p.JobStatus = ledger.StatusSucceeded, int(condor.Completed) })
	dir, err := w.store.ProcDir(output.Attempt{Namespace: "ns", Name: "zero", Number: 1}, 0)
	require.NoError(w.t, err)
	require.NoError(w.t, os.MkdirAll(dir, 0o700))
	require.NoError(w.t, os.WriteFile(filepath.Join(dir, output.Stdout), []byte(w.written), 0o600))
	w.proc(func(p *ledger.Proc) { p.Fetched = ledger.IsFetched })
}

func asks(change ...func(*aggregate.Query)) aggregate.Query {
	q := aggregate.Query{Namespace: "ns", Name: "zero", TailLines: -1}
	for _, f := range change {
		f(&q)
	}
	return q
}

func toTheEnd(q *aggregate.Query) { q.Follow = true }

func (w *world) reads(change ...func(*aggregate.Query)) (string, error) {
	a, err := w.Log(w.t.Context(), asks(change...))
	if err != nil {
		return "", err
	}
	defer a.Close()
	var b bytes.Buffer
	err = a.Write(w.t.Context(), &b)
	return b.String(), err
}

// reader is a follower.
type reader struct {
	w    *world
	mu   sync.Mutex
	text strings.Builder
	done chan error
}

func (r *reader) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *reader) has() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

func (r *reader) sees(text string) {
	r.w.t.Helper()
	require.Eventually(r.w.t, func() bool { return r.has() == text }, 5*time.Second, time.Millisecond, "%q", r.has())
}

func (w *world) follows(change ...func(*aggregate.Query)) *reader {
	a, err := w.Log(w.t.Context(), asks(append(change, toTheEnd)...))
	require.NoError(w.t, err)
	r := &reader{w: w, done: make(chan error, 1)}
	go func() {
		err := a.Write(w.t.Context(), r)
		a.Close()
		r.done <- err
	}()
	return r
}

func TestWhoFollowsGetsEveryByteOnce(t *testing.T) {
	w := newWorld(t)
	r := w.follows()
	w.sent(1)
	w.set(func() { w.status = condor.Idle })
	w.runs()
	w.set(func() { w.written = "one\n" })
	r.sees("one\n")
	late := w.follows(func(q *aggregate.Query) { q.TailLines = 0 })
	w.set(func() { w.written += "two\n" })
	r.sees("one\ntwo\n")
	late.sees("two\n")
	w.set(func() { w.written += "the last words, which no condor_tail shows\n"; w.status = condor.Completed })
	w.ends()
	require.NoError(t, <-r.done)
	require.NoError(t, <-late.done)
	require.Equal(t, w.written, r.has())
	require.Equal(t, strings.TrimPrefix(w.written, "one\n"), late.has())

	text, err := w.reads(toTheEnd)
	require.NoError(t, err)
	require.Equal(t, w.written, text)
	require.Zero(t, w.places.held)
	require.Zero(t, w.room.bytes.held)
}

func TestWhoComesBackGetsTheRest(t *testing.T) {
	w := newWorld(t)
	w.sent(1)
	w.runs()
	w.set(func() { w.written = "one\ntwo\n" })
	rest := func(q *aggregate.Query) { q.Offset, q.Attempt = 4, 1 }
	text, err := w.reads(rest)
	require.NoError(t, err)
	require.Equal(t, "two\n", text)
	r := w.follows(rest)
	r.sees("two\n")
	w.ends()
	require.NoError(t, <-r.done)
	require.Equal(t, "two\n", r.has())

	w.write(func(tx *ledger.Tx) error { // the next attempt is independent
		return tx.InsertRun(
			ledger.Run{UID: "u", Attempt: 2, Namespace: "ns", Name: "zero", State: ledger.Intent, Procs: 1},
		)
	})
	text, err = w.reads(rest)
	require.NoError(t, err)
	require.Equal(t, "two\n", text)
}

func TestWhoComesBackSeesNothingTwiceIfTheNodeSendsLess(t *testing.T) {
	w := newWorld(t)
	w.sent(1)
	w.runs()
	w.set(func() { w.written, w.short = "one\ntwo\n", 6 })
	r := w.follows(func(q *aggregate.Query) { q.Offset, q.Attempt = 8, 1 })
	w.tailed(2)
	w.set(func() { w.written += "three\n" })
	r.sees("three\n")
	w.ends()
	require.NoError(t, <-r.done)
	require.Equal(t, "three\n", r.has())
}

func TestAJobThatBeginsAnewIsShownAnew(t *testing.T) {
	w := newWorld(t)
	w.sent(1)
	w.runs()
	w.set(func() { w.written = "first run\n" })
	r := w.follows()
	r.sees("first run\n")
	w.tailed(2) // what existed, and what follows
	w.set(func() { w.status = condor.Idle })
	w.proc(func(p *ledger.Proc) { p.JobStatus = int(condor.Idle) })
	w.set(func() { w.written = "second\n" })
	w.runs()
	r.sees("first run\nsecond\n")
	w.ends()
	require.NoError(t, <-r.done)
	require.Equal(t, "first run\nsecond\n", r.has())
}

func TestAnInterruptedReaderLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.sent(1)
	w.runs()
	w.set(func() { w.written = "a\n" })
	ctx, leave := context.WithCancel(t.Context())
	a, err := w.Log(ctx, asks(toTheEnd))
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		err := a.Write(ctx, io.Discard)
		a.Close()
		done <- err
	}()
	w.tailed(2)
	leave()
	require.ErrorIs(t, <-done, context.Canceled)
	require.Zero(t, w.places.held)
	left, err := os.ReadDir(w.Reader.o.Dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestOnlySoManyReadFromNodes(t *testing.T) {
	w := newWorld(t)
	w.sent(1)
	w.runs()
	first, second := w.follows(), w.follows()
	_, err := w.reads()
	require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
	w.ends()
	require.NoError(t, <-first.done)
	require.NoError(t, <-second.done)
	_, err = w.reads()
	require.NoError(t, err)
}

func TestWhatEndedAMomentAgoIsToBeAskedForAgain(t *testing.T) {
	w := newWorld(t)
	w.sent(1)
	w.runs()
	w.set(func() { w.written, w.status = "all\n", condor.Completed })
	onItsWay := func() {
		t.Helper()
		_, err := w.reads()
		require.True(t, apierrors.IsConflict(err), "%v", err)
		seconds, later := apierrors.SuggestsClientDelay(err)
		require.True(t, later)
		require.Equal(t, 1, seconds)
	}
	onItsWay() // the ledger has it running
	r := w.follows()
	w.proc(func(p *ledger.Proc) { p.Status, p.JobStatus = ledger.StatusSucceeded, int(condor.Completed) })
	onItsWay()
	w.ends()
	require.NoError(t, <-r.done)
	require.Equal(t, "all\n", r.has())

	text, err := w.reads()
	require.NoError(t, err)
	require.Equal(t, "all\n", text)
	w.sent(2)
	w.set(func() { w.status = condor.Idle })
	_, err = w.reads()
	_, later := apierrors.SuggestsClientDelay(err)
	require.False(t, later, "a job that waits may wait for days: %v", err)
}

func TestAJobWhoseNodeHasGoneIsReadFromItsNext(t *testing.T) {
	w := newWorld(t)
	w.sent(1)
	w.runs()
	w.set(func() { w.err = schedd.ErrNoNode })
	_, err := w.reads()
	require.True(t, apierrors.IsConflict(err))
	require.ErrorContains(t, err, "the node of job 7.0 has gone, and it will get another")
	r := w.follows()
	w.tailed(2)
	w.set(func() { w.written, w.err = "one\n", nil })
	r.sees("one\n")
	w.ends()
	require.NoError(t, <-r.done)
	require.Equal(t, "one\n", r.has())
	require.Zero(t, w.places.held)
}

func TestANodeThatCannotBeReached(t *testing.T) {
	w := newWorld(t)
	w.sent(1)
	w.runs()
	w.set(func() { w.err = errors.New("Failed to connect to starter") })
	_, err := w.reads()
	require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
	require.ErrorContains(t, err, "it can be read when the job has ended")
}

func TestNobodyFollowsAsManyJobsAsAreLeftForTheOthers(t *testing.T) {
	w := newWorld(t)
	w.followers = newShares(4)
	anna, bert := func(q *aggregate.Query) { q.User = "anna" }, func(q *aggregate.Query) { q.User = "bert" }
	readers := []*reader{w.follows(anna), w.follows(anna)}
	_, err := w.Log(t.Context(), asks(anna, toTheEnd))
	require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
	_, err = w.reads(anna)
	require.True(t, apierrors.IsConflict(err), "who does not follow waits for nothing: %v", err)
	readers = append(readers, w.follows(bert))
	w.sent(1)
	w.proc(func(p *ledger.Proc) { p.Status, p.JobStatus = ledger.StatusFailed, int(condor.Removed) })
	for _, r := range readers {
		require.NoError(t, <-r.done)
	}
	_, err = w.Log(t.Context(), asks(anna, toTheEnd))
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	require.Zero(t, w.followers.held)
}

func TestHoweverManyJobsAUserAsksAboutHTCondorHasTimeForOthers(t *testing.T) {
	w := newWorld(t)
	w.Reader.o.Pause, w.Reader.o.Wait = time.Hour, 0
	w.sent(1)
	w.runs()
	anna, bert := requester{"anna", "a"}, requester{"bert", "b"}
	asked := 0
	ask := func(p requester) error {
		return w.question(t.Context(), p, 0, func() error { asked++; return nil })
	}
	for ask(anna) == nil {
	}
	require.Equal(t, mostQuestions/2, asked)
	_, err := w.Usage(t.Context(), asks(func(q *aggregate.Query) { q.User = "anna" }))
	require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
	_, err = w.reads(func(q *aggregate.Query) { q.User = "anna" })
	require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
	require.NoError(t, ask(bert))
	w.Reader.o.Pause = 0
	require.NoError(t, w.question(t.Context(), requester{"carl", "c"}, 0, func() error { return nil }))
	require.Eventually(t, func() bool { // its place is given back
		w.questions.mu.Lock()
		defer w.questions.mu.Unlock()
		return w.questions.by[byUser("carl")] == 0
	}, 5*time.Second, time.Millisecond)
}
