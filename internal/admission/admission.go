package admission

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Admission is the gates of all pools. Set its fields before its first use.
type Admission struct {
	// Rules returns those of a pool as they are now.
	Rules func(pool string) Rules
	// Usage adds up what is in use of a pool, without Sent.
	Usage func(ctx context.Context, pool string) (Usage, error)
	// Recent lists, by pool, what was sent within the last minute, but before this process began.
	Recent func(ctx context.Context) (map[string][]Sent, error)
	Now    func() time.Time
	// Go lets an HTCJob ask again, because it may be sent, or never can be.
	Go func(key string)
	// Tell is called when what an HTCJob waits for has changed since it asked.
	Tell func(key string, what *Waits)
	// Later is called when Pass should be called for a pool.
	Later func(pool string, after time.Duration)

	mu    sync.Mutex
	gates map[string]*gate
	at    map[string]*gate // where an HTCJob waits, or was let go

	recalling sync.Mutex
	recalled  map[string][]Sent // what Recent said
}

// Waits is the error of an HTCJob that waits for its turn.
type Waits struct{ Reason, Message string }

func (w *Waits) Error() string { return w.Message }

// The reasons of Waits.
const (
	ReasonPoolLimit      = "PoolLimit"
	ReasonNamespaceLimit = "NamespaceLimit" // of the pool that is made of flags
	ReasonPoolDraining   = "PoolDraining"
	ReasonPoolSuspended  = "PoolSuspended"
)

// InLine reports whether a reason is one of Waits.
func InLine(reason string) bool {
	switch reason {
	case ReasonPoolLimit, ReasonNamespaceLimit, ReasonPoolDraining, ReasonPoolSuspended:
		return true
	}
	return false
}

var reasons = map[Why]string{
	Sends:     ReasonPoolLimit,
	Limited:   ReasonPoolLimit,
	Draining:  ReasonPoolDraining,
	Suspended: ReasonPoolSuspended,
}

// Load is how full a pool is, and why nothing is sent at present.
type Load struct {
	Open, Idle, Running, Held int // Idle has those that nobody has seen running yet
	HeldByPool                int // as in Usage
	Waiting                   int // HTCJobs
	Namespaces                []NamespaceLoad
	Reason, Message           string // Reason is empty if the next HTCJob would be sent
}

// NamespaceLoad is the part of one namespace.
type NamespaceLoad struct {
	Name    string
	Open    int
	Waiting int // HTCJobs
}

func byOpen(a, b NamespaceLoad) int {
	return cmp.Or(-cmp.Compare(a.Open, b.Open), -cmp.Compare(a.Waiting, b.Waiting), cmp.Compare(a.Name, b.Name))
}

// Waits adds an HTCJob that waits elsewhere than in the line.
func (l *Load) Waits(namespace string) {
	l.Waiting++
	i := slices.IndexFunc(l.Namespaces, func(n NamespaceLoad) bool { return n.Name == namespace })
	if i < 0 {
		i, l.Namespaces = len(l.Namespaces), append(l.Namespaces, NamespaceLoad{Name: namespace})
	}
	l.Namespaces[i].Waiting++
	slices.SortFunc(l.Namespaces, byOpen)
}

var loadReasons = map[Why]string{Limited: "LimitReached", Draining: "Draining", Suspended: "Suspended"}

// errLeft is the error of an HTCJob that has left the line while it asked.
var errLeft = errors.New("it no longer waited to be sent")

// Ask returns nil if an HTCJob may be sent, or can never be; a *Waits if it has to wait: Go is called when it need no
// longer. It may be asked again at any time, as it is shortly before the intent is written, when the number of jobs is
// known and the pool may have changed.
func (a *Admission) Ask(ctx context.Context, pool string, w Waiter) error {
	rules := a.Rules(pool)
	if may := a.enter(rules, pool, w); may {
		return nil
	}
	if err := a.read(ctx, rules, pool); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.gate(pool)
	a.pass(g, rules, w.Key)
	if _, may := g.going[w.Key]; may {
		return nil
	}
	w, waits := g.line.of[w.Key]
	if !waits {
		return errLeft
	}
	return g.tell(w, g.line.place(w))
}

// enter puts an HTCJob into the line, unless it may go.
func (a *Admission) enter(rules Rules, pool string, w Waiter) (may bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.gate(pool)
	if before := a.at[w.Key]; before != nil && before != g {
		a.leave(before, w.Key)
	}
	was, may := g.going[w.Key]
	if !may {
		was = g.line.of[w.Key]
	}
	if w.Demand = w.orAs(was.Demand); rules.None() || rules.Refuse(w.Demand) != nil {
		a.leave(g, w.Key)
		return true
	}
	a.at[w.Key] = g
	switch {
	case may && was.Demand == w.Demand && rules.open():
		return true
	case may:
		g.stop(was)
		g.line.goBack(w)
	default:
		g.line.enter(w)
	}
	return false
}

// gate returns that of a pool; a.mu is locked.
func (a *Admission) gate(pool string) *gate {
	if a.gates == nil {
		a.gates, a.at = map[string]*gate{}, map[string]*gate{}
	}
	if a.gates[pool] == nil {
		a.gates[pool] = &gate{pool: pool, going: map[string]Waiter{}, told: map[string]told{}}
	}
	return a.gates[pool]
}

// pass makes a pass and lets everybody go but the one that is asking.
func (a *Admission) pass(g *gate, rules Rules, asking string) {
	now := a.Now()
	for _, w := range g.pass(rules, now) {
		if w.Key != asking {
			a.Go(w.Key)
		}
	}
	if len(g.line.of) > 0 {
		a.Later(g.pool, g.again(now))
	}
}

// read adds up what is in use, unless the last sum is recent enough.
func (a *Admission) read(ctx context.Context, rules Rules, pool string) error {
	a.mu.Lock()
	g := a.gate(pool)
	a.mu.Unlock()
	if !rules.open() {
		return nil // nothing is sent in any case
	}
	g.reading.Lock()
	defer g.reading.Unlock()
	began := a.Now()
	a.mu.Lock()
	recall := !g.recalled && rules.Limits.NewPerMinute != nil
	recent := began.Before(g.until) && !recall
	g.begun = nil
	a.mu.Unlock()
	if recent {
		return nil
	}
	u, err := a.Usage(ctx, pool)
	if err != nil {
		return err
	}
	if recall {
		if u.Sent, err = a.recall(ctx, pool); err != nil {
			return err
		}
		g.recalled = true
	}
	ended := a.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	g.take(u, ended.Add(min(9*ended.Sub(began), maxRest)))
	return nil
}

// recall returns what was sent by way of a pool shortly before this process began. Recent is called once for all pools:
// what is recorded later is also reported by Sent.
func (a *Admission) recall(ctx context.Context, pool string) ([]Sent, error) {
	a.recalling.Lock()
	defer a.recalling.Unlock()
	if a.recalled == nil {
		all, err := a.Recent(ctx)
		if err != nil {
			return nil, err
		}
		a.recalled = all
	}
	return a.recalled[pool], nil
}

// maxRest bounds how old the sum of what is in use may be.
const maxRest = time.Second

// Pass lets everybody go who may, and tells the others what they wait for now.
func (a *Admission) Pass(ctx context.Context, pool string) error {
	if !a.Awaited(pool) {
		return nil
	}
	rules := a.Rules(pool)
	if err := a.read(ctx, rules, pool); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.gate(pool)
	a.pass(g, rules, "")
	for key, what := range g.retell(a.Now()) {
		a.Tell(key, what)
	}
	return nil
}

// Waits reports whether an HTCJob is in a line.
func (a *Admission) Waits(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.at[key]
	if g == nil {
		return false
	}
	_, waits := g.line.of[key]
	return waits
}

// Awaited reports whether an HTCJob waits for a pool.
func (a *Admission) Awaited(pool string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.gate(pool).line.of) > 0
}

// Wake has a pass made of every pool that HTCJobs wait for, because something has changed.
func (a *Admission) Wake() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, g := range a.gates {
		a.wake(g)
	}
}

func (a *Admission) wake(g *gate) {
	if len(g.line.of) > 0 {
		a.Later(g.pool, 0)
	}
}

// Recall puts an HTCJob into the line that waited in it before htcd was started again.
func (a *Admission) Recall(pool string, w Waiter) {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.gate(pool)
	w.Jobs = max(w.Jobs, 1)
	a.at[w.Key] = g
	g.line.enter(w)
	a.wake(g)
}

// Begun is called when the intent of an HTCJob that was let go is in the ledger.
func (a *Admission) Begun(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if g := a.at[key]; g != nil {
		g.begun = append(g.begun, g.going[key])
		delete(g.going, key)
		delete(a.at, key)
		a.wake(g)
	}
}

// Withdraw is called when an HTCJob does not, or no longer, want to be sent. What has been let go stays so until Begun
// or Leave: its intent may just have been written.
func (a *Admission) Withdraw(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if g := a.at[key]; g != nil {
		if _, waits := g.line.of[key]; waits {
			a.leave(g, key)
		}
	}
}

// Leave is called when a try to send an HTCJob has ended without an intent, other than by Waits.
func (a *Admission) Leave(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if g := a.at[key]; g != nil {
		a.leave(g, key)
	}
}

func (a *Admission) leave(g *gate, key string) {
	delete(a.at, key)
	g.leave(key)
	a.wake(g)
}

// Sent records a submission. It is called before the ledger shows it as submitted.
func (a *Admission) Sent(pool string, jobs int, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.gate(pool)
	g.forgetSent(a.Now())
	g.sent(Sent{at, jobs})
	a.wake(g)
}

// Load returns how full a pool is.
func (a *Admission) Load(ctx context.Context, pool string) (Load, error) {
	rules := a.Rules(pool)
	if err := a.read(ctx, Rules{}, pool); err != nil {
		return Load{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.gate(pool).load(rules, a.Now()), nil
}
