package feed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unique"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd"
)

// Options are the files of a schedd, and whose jobs are mirrored.
type Options struct {
	Spool   string // the schedd's SPOOL, in which job_queue.log is
	History string // its HISTORY; empty: history in its spool
	Owners  Owners
	Most    int // bytes of ads, about; 0: 512 MiB
	Now     func() time.Time
}

const (
	defaultMost = 512 << 20
	pollEvery   = 25 * time.Millisecond
	againAfter  = 5 * time.Second // files that could not be read
)

// Mirror holds what the files of a schedd say about htcd's jobs.
type Mirror struct {
	o    Options
	file file

	mu      sync.RWMutex
	queue   *queue // nil: it could not be read yet
	history history
	problem string
	polled  time.Time     // when the files were read last
	moved   chan struct{} // closed when something has changed
}

// State is what a mirror says about itself.
type State struct {
	Mark     string `json:"mark"`     // up to which job_queue.log has been read
	Size     int64  `json:"size"`     // of job_queue.log, in bytes
	Modified int64  `json:"modified"` // when it was, in Unix seconds
	Now      int64  `json:"now"`      // the mirror's clock
	Behind   int64  `json:"behind"`   // how many seconds ago the files were read
	Jobs     int    `json:"jobs"`     // in the queue, of htcd
	Left     int    `json:"left"`     // in the history, of htcd
	Held     int    `json:"held"`     // bytes of their ads, about
	Problem  string `json:"problem,omitempty"`
}

// NewMirror returns a mirror, which is empty until Run has read the files.
func NewMirror(o Options) *Mirror {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Most, o.History = cmp.Or(o.Most, defaultMost), cmp.Or(o.History, filepath.Join(o.Spool, "history"))
	return &Mirror{
		o:       o,
		file:    file{path: filepath.Join(o.Spool, "job_queue.log")},
		history: history{path: o.History, owners: o.Owners},
		moved:   make(chan struct{}),
		problem: "job_queue.log has not been read yet",
	}
}

// Run follows the files until ctx ends. What is wrong with them is in State, and told.
func (m *Mirror) Run(ctx context.Context, told func(problem string)) {
	defer m.close()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	last := ""
	for {
		m.poll()
		if now := m.State().Problem; now != last {
			last = now
			told(now)
		}
		wait := tick.C
		if last != "" {
			wait = time.After(againAfter)
		}
		select {
		case <-ctx.Done():
			return
		case <-wait:
		}
	}
}

func (m *Mirror) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.file.close()
	m.history.close()
	m.queue = nil
}

// poll reads what is new in the files.
func (m *Mirror) poll() {
	err := m.pollQueue()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.problem = ""
	// The schedd writes a job into the history before it takes it out of the queue, so what has left the queue is in
	// the history here, too.
	if err = errors.Join(err, m.history.follow()); err != nil {
		m.problem = explain(err)
	}
	m.polled = m.o.Now()
}

func explain(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return err.Error() + ": run htcd feed as the account of the condor daemons, or as root"
	}
	return err.Error()
}

func (m *Mirror) pollQueue() error {
	m.mu.Lock()
	before := m.queue
	var replaced bool
	var err error
	if before != nil {
		was := before.mark
		if replaced, err = m.file.follow(before); was != before.mark {
			m.move()
		}
	}
	m.mu.Unlock()
	if err == nil && (replaced || before == nil) {
		// While this takes its time, what is there is still shown. Nobody else writes to it.
		now, opened, wrong := load(m.file.path, before, m.o.Owners, m.o.Most)
		if err = wrong; err == nil {
			m.mu.Lock()
			m.file.close()
			m.queue, m.file = now, opened
			m.move()
			m.mu.Unlock()
		}
	}
	if err != nil { // what was applied half is read again from the beginning
		m.mu.Lock()
		m.file.close()
		m.queue = nil
		m.mu.Unlock()
	}
	return err
}

func (m *Mirror) move() {
	close(m.moved)
	m.moved = make(chan struct{})
}

// State returns what the mirror is.
func (m *Mirror) State() State {
	m.mu.RLock()
	defer m.mu.RUnlock()
	s := State{Now: m.o.Now().Unix(), Left: len(m.history.jobs), Problem: m.problem}
	s.Size, s.Modified = m.file.size()
	s.Behind = int64(m.o.Now().Sub(m.polled).Seconds())
	if m.queue != nil {
		s.Mark, s.Held, s.Jobs = m.queue.mark.String(), m.queue.jobs.held, m.queue.jobs.procs
	}
	return s
}

// Changes returns the jobs whose state has changed after a mark, as "cluster.proc", or "cluster.-1" for all jobs of
// one, the present mark, and a channel that is closed when there may be more. ok is false if it is not known what has
// changed after the mark; the zero mark is now.
func (m *Mirror) Changes(after Mark) (all []string, now Mark, more <-chan struct{}, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.queue == nil {
		return nil, after, m.moved, true
	}
	if now = m.queue.mark; after == (Mark{}) {
		return nil, now, m.moved, true
	}
	numbers, ok := m.queue.changed(after, true)
	for _, n := range numbers {
		all = append(all, n.String())
	}
	return all, now, m.moved, ok
}

// The errors of Answer.
var (
	errUnread  = errors.New("the mirror cannot read the schedd's files now")
	errTooOld  = errors.New("it is not known what has changed after that mark: ask for everything")
	errRefused = errors.New("the question cannot be answered")
)

// Asked is a question of a client.
type Asked struct {
	schedd.Question
	After  Mark   // only jobs that have changed, or left the queue, after it; zero: all
	Owners Owners // whose jobs the client may see
}

// inOneGo is how many jobs are looked at while the mirror is not updated.
const inOneGo = 500

// Answer calls fn with the ad of each matching job, in JSON: of those in the queue in the order of their numbers, of
// those that have left the last first.
func (m *Mirror) Answer(ctx context.Context, q Asked, fn func(ad []byte) error) error {
	c, err := compile(q.Constraint, m.o.Now)
	if err != nil {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	a := &answer{
		Asked:      q,
		constraint: c,
		server:     attribute{name: nameOf("ServerTime"), shown: unique.Make("ServerTime")},
		fn:         fn,
	}
	a.server.value = fmt.Sprint(m.o.Now().Unix())
	for word := range strings.SplitSeq(q.Attributes, ",") {
		if word != "" {
			a.attributes = append(a.attributes, nameOf(word))
		}
	}
	if q.Left {
		return m.left(ctx, a)
	}
	return m.queued(ctx, a)
}

func (m *Mirror) queued(ctx context.Context, a *answer) error {
	numbers, err := m.numbers(a.After)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(numbers, inOneGo) {
		m.mu.RLock()
		q := m.queue
		if q == nil {
			m.mu.RUnlock()
			return errUnread
		}
		for _, n := range some {
			if own, there := q.jobs.ads[n]; there {
				a.take(own, q.jobs.ads[number{n.cluster, clusterAd}], true)
			}
		}
		m.mu.RUnlock()
		if err := errors.Join(a.flush(), ctx.Err()); err != nil || a.full() {
			return err
		}
	}
	return nil
}

// numbers returns the jobs in the queue, those alone that have changed after a mark unless that is zero.
func (m *Mirror) numbers(after Mark) (all []number, err error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.queue == nil {
		return nil, errUnread
	}
	wanted := func(number) bool { return true }
	if after != (Mark{}) {
		changed, ok := m.queue.changed(after, false)
		if !ok {
			return nil, errTooOld
		}
		is := map[number]bool{}
		for _, n := range changed {
			is[n] = true
		}
		wanted = func(n number) bool { return is[n] || is[number{n.cluster, clusterAd}] }
	}
	for n := range m.queue.jobs.ads {
		if n.proc != clusterAd && wanted(n) {
			all = append(all, n)
		}
	}
	slices.SortFunc(
		all,
		func(a, b number) int { return cmp.Or(cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.proc, b.proc)) },
	)
	return all, nil
}

func (m *Mirror) left(ctx context.Context, a *answer) error {
	m.mu.RLock()
	jobs, changed := m.history.jobs, map[number]bool(nil)
	if a.After != (Mark{}) {
		var all []number
		var ok bool
		if m.queue != nil {
			all, ok = m.queue.changed(a.After, true)
		}
		changed = map[number]bool{}
		for _, n := range all {
			changed[n] = true
		}
		if !ok {
			m.mu.RUnlock()
			return errTooOld
		}
	}
	m.mu.RUnlock()
	for i := len(jobs) - 1; i >= 0 && !a.full(); i-- {
		l := jobs[i]
		if l.String() == a.Since {
			break
		}
		if changed != nil && !changed[l.number] {
			continue
		}
		if err := a.takeLeft(l); err != nil {
			return fmt.Errorf("the history: %w", err)
		}
		if err := errors.Join(a.flush(), ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// answer is one in the making.
type answer struct {
	Asked
	constraint constraint
	attributes []name // empty: all
	server     attribute
	fn         func([]byte) error
	shown      int
	ready      [][]byte
}

func (a *answer) full() bool { return a.Limit > 0 && a.shown >= a.Limit }

func (a *answer) flush() error {
	for _, text := range a.ready {
		if err := a.fn(text); err != nil {
			return err
		}
	}
	a.ready = a.ready[:0]
	return nil
}

// take prints a job if it matches and may be seen.
func (a *answer) take(own, shared ad, queued bool) {
	look := func(n name) (attribute, bool) {
		if queued && n == a.server.name {
			return a.server, true
		}
		if i := own.find(n); i >= 0 {
			return own[i], true
		}
		if i := shared.find(n); i >= 0 {
			return shared[i], true
		}
		return attribute{}, false
	}
	who, _ := look(owner)
	account, _ := valueOf(who, true).Str()
	if a.full() || !a.Owners.Has(account) || !a.constraint.matches(look) {
		return
	}
	a.shown++
	var all ad
	if len(a.attributes) > 0 {
		for _, n := range a.attributes {
			if at, has := look(n); has {
				all = append(all, at)
			}
		}
	} else {
		all = slices.Clone(own)
		for _, at := range shared {
			if own.find(at.name) < 0 {
				all = append(all, at)
			}
		}
		if queued {
			all = append(all, a.server)
		}
	}
	a.ready = append(a.ready, all.json())
}

// takeLeft is take for a job in the history, whose ad is read if more than a part of it is needed.
func (a *answer) takeLeft(l left) error {
	var whole ad
	var wrong error
	all := func() ad {
		if whole == nil && wrong == nil {
			whole, wrong = l.ad()
		}
		return whole
	}
	match := a.constraint.matches(func(n name) (attribute, bool) {
		from := l.known
		if !slices.Contains(heldOfLeft, n) {
			from = all()
		}
		if i := from.find(n); i >= 0 {
			return from[i], true
		}
		return attribute{}, false
	})
	if match && a.Owners.Has(l.known.text(owner)) {
		a.take(all(), nil, false)
	}
	return wrong
}

// json prints an ad as condor_q -json does, on one line. Attributes that are too long are named in another,
// schedd.LeftOut.
func (a ad) json() []byte {
	b := []byte{'{'}
	var cut []string
	for _, at := range a {
		if at.cut {
			cut = append(cut, at.shown.Value())
			continue
		}
		b = appendAttribute(b, at.shown.Value(), classad.ParseValue(at.value))
	}
	if cut != nil {
		b = appendAttribute(b, schedd.LeftOut, classad.StringValue(strings.Join(cut, ",")))
	}
	return append(b, '}')
}

func appendAttribute(b []byte, shown string, v classad.Value) []byte {
	if len(b) > 1 {
		b = append(b, ", "...)
	}
	return classad.AppendJSON(append(classad.AppendJSONString(b, shown), ": "...), v)
}
