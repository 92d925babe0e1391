package admission

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// gate lets the HTCJobs of one pool go.
type gate struct {
	pool  string
	line  line
	going map[string]Waiter // may go; their intents are not known to be in the ledger

	reading  sync.Mutex // held while the ledger is read
	begun    []Waiter   // whose intents were written since that began
	usage    Usage      // as last read, and what has been let go since
	until    time.Time  // when it is to be read again
	recalled bool       // usage.Sent has what was sent before this process began

	held   Answer            // what holds up the first of the line, and so everybody but those of heldIn
	heldIn map[string]Answer // what holds up single namespaces

	told   map[string]told // what those that wait were last told
	why    Why             // the state of the pool when everybody was told
	retold time.Time       // when places were last told again
}

// use adds an HTCJob that is let go to what is in use, or takes it away again.
func (g *gate) use(w Waiter, sign int) {
	n := sign * w.Jobs
	g.usage.Open += n
	g.usage.Idle += n
	g.usage.Sending += n
	g.usage.Cores += sign * w.Cores
	g.usage.Memory += sign * w.Memory
	if g.usage.Namespaces == nil {
		g.usage.Namespaces = map[string]Part{}
	}
	part := g.usage.Namespaces[w.Namespace]
	part.Open += n
	part.Idle += n
	part.Cores, part.Memory = part.Cores.plus(sign*w.Cores, 0), part.Memory.plus(sign*w.Memory, 0)
	g.usage.Namespaces[w.Namespace] = part
}

// take replaces what is in use by what the ledger said. What begun lists may be missing there.
func (g *gate) take(u Usage, until time.Time) {
	u.Sent = slices.Concat(u.Sent, g.usage.Sent)
	g.stillOwed(&u)
	g.usage, g.until = u, until
	for _, w := range g.going {
		g.use(w, 1)
	}
	for _, w := range g.begun {
		g.use(w, 1)
	}
}

// stop takes back that an HTCJob may go.
func (g *gate) stop(w Waiter) {
	delete(g.going, w.Key)
	g.use(w, -1)
}

// leave removes an HTCJob, whether it waits or may go.
func (g *gate) leave(key string) {
	g.line.leave(key)
	delete(g.told, key)
	if w, may := g.going[key]; may {
		g.stop(w)
	}
}

// sent records a submission.
func (g *gate) sent(s Sent) {
	i, _ := slices.BinarySearchFunc(g.usage.Sent, s, func(a, b Sent) int { return a.At.Compare(b.At) })
	g.usage.Sent = slices.Insert(g.usage.Sent, i, s)
}

// again returns when the next pass is useful if nothing happens before.
func (g *gate) again(now time.Time) time.Duration {
	wait := betweenTelling
	if !g.held.Again.IsZero() {
		wait = min(wait, g.held.Again.Sub(now))
	}
	if now.Before(g.until) {
		wait = min(wait, g.until.Sub(now))
	}
	return max(wait, time.Millisecond)
}

// pass lets everybody go whose turn it is and for whom there is room. It returns them, and those that can never be
// sent.
func (g *gate) pass(rules Rules, now time.Time) (may []Waiter) {
	g.forgetSent(now)
	for {
		w, is := g.next(rules, now)
		if !is {
			return may
		}
		g.line.serve(w)
		delete(g.told, w.Key)
		may = append(may, w)
		if rules.Refuse(w.Demand) == nil {
			g.going[w.Key] = w
			g.use(w, 1)
			g.owe()
		}
	}
}

// next returns the HTCJob that may go next, if any, and notes what holds up the others.
func (g *gate) next(rules Rules, now time.Time) (w Waiter, is bool) {
	g.held, g.heldIn = Answer{}, map[string]Answer{}
	usage := g.usage
	for _, ns := range g.line.turns {
		w := g.line.waiting[ns][0]
		a := rules.Decide(usage, ns, w.Demand, now)
		if a.Owed {
			usage.Owed = append(usage.Owed, ns)
		}
		switch {
		case a.Why == Sends, a.Why == Never:
			return w, true
		case a.Alone:
			g.heldIn[ns] = a
		default:
			g.held = a
			return Waiter{}, false
		}
	}
	return Waiter{}, false
}

// forgetSent drops what was sent more than a minute ago.
func (g *gate) forgetSent(now time.Time) {
	g.usage.Sent = slices.DeleteFunc(g.usage.Sent, func(s Sent) bool { return now.Sub(s.At) >= time.Minute })
}

// told is what somebody who waits was told.
type told struct {
	limit string
	place int
}

// tell is waits for an HTCJob with so many before it.
func (g *gate) tell(w Waiter, place int) *Waits {
	a := g.held
	if own, is := g.heldIn[w.Namespace]; is {
		a, place = own, g.line.rank(w)
	}
	g.told[w.Key] = told{a.Limit, place}
	said := &Waits{Reason: reasons[a.Why], Message: a.Full + ", " + placed(w, place)}
	switch {
	case a.Full == "":
		said.Message = placed(w, place)
	case g.pool != "":
		said.Message = "pool " + g.pool + ": " + said.Message
	case a.Why == Limited:
		said.Reason = ReasonNamespaceLimit
	}
	return said
}

// placed says how many come before an HTCJob.
func placed(w Waiter, place int) string {
	switch {
	case place == 0 && w.Jobs > 1:
		return fmt.Sprintf("this HTCJob of %d jobs is next", w.Jobs)
	case place == 0:
		return "this HTCJob is next"
	case place == 1:
		return "1 HTCJob before this one"
	}
	return fmt.Sprintf("%d HTCJobs before this one", place)
}

// How often those that wait are told their place.
const (
	betweenTelling = time.Minute
	mostTold       = 100
)

// retell returns what those are to be told for whom it has changed a lot: at most mostTold in a minute, those in front
// first. Everybody is told at once when the pool's state has changed.
func (g *gate) retell(now time.Time) map[string]*Waits {
	all := g.held.Why != g.why && (g.held.Why != Limited && g.held.Why != Sends || g.why != Limited && g.why != Sends)
	if !all && now.Sub(g.retold) < betweenTelling {
		return nil
	}
	g.why, g.retold = g.held.Why, now
	news, place := map[string]*Waits{}, -1
	for w := range g.line.inOrder() {
		place++
		if !all && len(news) >= mostTold {
			break
		}
		if all || g.outdated(w, place) {
			news[w.Key] = g.tell(w, place)
		}
	}
	return news
}

// outdated reports whether what an HTCJob was told is far from the truth: another limit, or half as many before it.
func (g *gate) outdated(w Waiter, place int) bool {
	limit := g.held.Limit
	if own, is := g.heldIn[w.Namespace]; is {
		limit, place = own.Limit, g.line.rank(w)
	}
	was, is := g.told[w.Key]
	return !is || was.limit != limit || 2*place <= was.place && place < was.place || place > 2*was.place+10
}

// load returns how full the pool is and what waits.
func (g *gate) load(rules Rules, now time.Time) Load {
	u := g.usage
	load := Load{
		Open:       u.Open - u.Coming.Open,
		Idle:       u.Idle - u.Coming.Idle,
		Running:    u.Running,
		Held:       u.Held,
		HeldByPool: u.HeldByPool,
		Waiting:    len(g.line.of),
	}
	names := maps.Clone(u.Namespaces)
	if names == nil {
		names = map[string]Part{}
	}
	for ns := range g.line.waiting {
		names[ns] = u.Namespaces[ns]
	}
	for ns, part := range names {
		if n := (NamespaceLoad{ns, part.Open - part.Coming.Open, len(g.line.waiting[ns])}); n.Open+n.Waiting > 0 {
			load.Namespaces = append(load.Namespaces, n)
		}
	}
	slices.SortFunc(load.Namespaces, byOpen)
	a := rules.Decide(u, "", Demand{Jobs: 1}, now)
	if a.Why == Sends && len(g.line.of) > 0 {
		a = g.heldUp() // there is room, but not for those in the line
	}
	load.Reason, load.Message = loadReasons[a.Why], a.Full
	return load
}

// heldUp returns what holds up all that wait, if anything does. A namespace that has all that is allowed to it is no
// concern of the pool's.
func (g *gate) heldUp() Answer {
	if g.held.Why != Sends || len(g.heldIn) < len(g.line.turns) {
		return g.held
	}
	for _, ns := range g.line.turns {
		if a := g.heldIn[ns]; a.Limit != "maxOpenPerNamespace" {
			return a
		}
	}
	return Answer{}
}
