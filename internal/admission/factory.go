package admission

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Share is how many jobs of a factory may be in HTCondor at a time, and how many of these may wait for a slot. While
// none may wait, none is made.
type Share struct{ Open, Idle int }

// reserved says how many of so many open or idle jobs factories have not made yet.
func reserved(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d of them reserved for factories", n)
}

// Factory makes the jobs of an HTCJob as others end.
type Factory struct {
	Namespace        string
	Each             Demand // what one job asks for
	Granted          Share  // what HTCondor was told
	Open, Idle, Held int    // jobs that are there
	InUse            int    // those that run or wait for a slot
	ToMake           int
	Owed             bool // it has made way for an HTCJob, and has made none since
}

// may returns how many jobs of a factory there may be before anybody is asked again: within what HTCondor was told it
// makes them at any moment, and what is more than that it does not take back.
func (f Factory) may() Share {
	granted := f.Granted
	if f.Owed {
		granted = Share{1, 1}
	}
	if granted.Idle == 0 {
		return Share{f.Open, f.Idle}
	}
	open := max(f.Open, min(granted.Open, f.Open+f.ToMake))
	return Share{open, max(f.Idle, min(granted.Idle, f.Idle+f.ToMake, open-f.Held))}
}

// mayUse is how many of those may ask for cores and memory.
func (f Factory) mayUse() int { return max(f.InUse, f.may().Open-f.Held) }

// put notes a factory, and counts what it may make as in use.
func (u *Usage) put(uid string, f Factory) {
	if u.Factories == nil {
		u.Factories = map[string]Factory{}
	}
	if u.Namespaces == nil {
		u.Namespaces = map[string]Part{}
	}
	if old, is := u.Factories[uid]; is {
		u.come(old, -1)
	}
	u.come(f, 1)
	u.Factories[uid] = f
}

func (u *Usage) come(f Factory, sign int) {
	open, idle, use := sign*(f.may().Open-f.Open), sign*(f.may().Idle-f.Idle), sign*(f.mayUse()-f.InUse)
	u.Open, u.Idle, u.Coming = u.Open+open, u.Idle+idle, u.Coming.plus(open, idle)
	u.Cores, u.Memory = u.Cores+use*f.Each.Cores, u.Memory+use*f.Each.Memory
	part := u.Namespaces[f.Namespace]
	part.Open, part.Idle, part.Coming = part.Open+open, part.Idle+idle, part.Coming.plus(open, idle)
	u.Namespaces[f.Namespace] = part
}

func (s Share) plus(open, idle int) Share { return Share{s.Open + open, s.Idle + idle} }

// Shares reports whether the limits bound what factories may have in HTCondor.
func (r Rules) Shares() bool {
	l := r.Limits
	return l.MaxOpen != nil || l.MaxOpenPerNamespace != nil || l.MaxIdle != nil || l.IdlePercentOfRunning != nil ||
		len(r.requests()) > 0
}

// ShareOf returns what a factory may have now: of what others leave as much as each other factory, and as the first of
// the line, but so much less that there is room for that one, and no more than is free. first is what that one asks
// for, own what the first one does that waits in the factory's namespace; zero: nobody waits for room. A factory that
// is owed a job has its part though there is less room for that one then. It is pure.
func (r Rules) ShareOf(u Usage, uid string, first, own Demand) Share {
	f := u.Factories[uid]
	all := slices.Collect(maps.Values(u.Factories))
	// part returns how many jobs the factory may have under one limit. It divides what the factories among have, and
	// what is free, by their number. waits is what the first of the line needs, each what one job needs.
	part := func(among []Factory, free int, has func(Factory) int, waits, each int) int {
		total, sharers := free, 0
		for _, g := range among {
			total += has(g)
			if g.ToMake > 0 {
				sharers++
			}
		}
		sharers = max(sharers, 1)
		if waits > 0 {
			sharers++
		}
		n := max(total/sharers, each)
		if waits > 0 && !f.Owed {
			n = min(n, (total-waits)/(sharers-1))
		}
		return max(0, min(n, has(f)+free)) / each
	}
	share := Share{math.MaxInt, math.MaxInt}
	open, idle := func(g Factory) int { return g.may().Open }, func(g Factory) int { return g.may().Idle }
	if most, is := bound(r.Limits.MaxOpen); is {
		free, _ := u.room(most, f.Namespace, u.Open, Part.stuck)
		share.Open = min(share.Open, part(all, free, open, first.Jobs, 1))
	}
	if most, is := bound(r.Limits.MaxOpenPerNamespace); is {
		neighbours := slices.DeleteFunc(slices.Clone(all), func(g Factory) bool { return g.Namespace != f.Namespace })
		share.Open = min(share.Open, part(neighbours, most-u.Namespaces[f.Namespace].Open, open, own.Jobs, 1))
	}
	for _, l := range r.requests() {
		if each := l.asked(f.Each); each > 0 {
			free, _ := u.room(l.most, f.Namespace, l.inUse(u), l.waiting)
			has := func(g Factory) int { return g.mayUse() * l.asked(g.Each) }
			share.Open = min(share.Open, part(all, free, has, l.asked(first), each))
		}
	}
	for _, most := range r.idle(u, first.Jobs > 0) {
		free, _ := u.room(most, f.Namespace, u.Idle, Part.idle)
		share.Idle = min(share.Idle, part(all, free, idle, first.Jobs, 1))
	}
	return share
}

// idle lists the limits of how many jobs of factories may wait for a slot. What follows from how many run counts while
// somebody waits: HTCondor would have to be told all the time.
func (r Rules) idle(u Usage, waits bool) (all []int) {
	for _, limit := range []*int32{r.Limits.MaxIdle, r.mostIdle()} {
		if most, is := bound(limit); is {
			all = append(all, most)
		}
	}
	if p := r.Limits.IdlePercentOfRunning; p != nil && waits {
		all = append(all, idleAllowed(*p, u.Running))
	}
	return all
}

// Share returns what a factory may have now, nil for as much as it likes.
func (a *Admission) Share(ctx context.Context, pool, uid string) (*Share, error) {
	rules := a.Rules(pool)
	if !rules.Shares() {
		return nil, nil
	}
	a.mu.Lock()
	g := a.gate(pool)
	if _, known := g.usage.Factories[uid]; !known {
		g.until = time.Time{}
	}
	a.mu.Unlock()
	if err := a.read(ctx, Rules{}, pool); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return new(g.share(rules, uid)), nil
}

// Grant has the ledger record what a factory may have now, as Share returns it, so that nobody is let go, or granted
// something, who does not count it.
func (a *Admission) Grant(ctx context.Context, pool, uid string, record func(*Share) error) error {
	share, err := a.Share(ctx, pool, uid)
	if err != nil {
		return err
	}
	if share == nil {
		return record(nil)
	}
	a.mu.Lock()
	g := a.gate(pool)
	a.mu.Unlock()
	g.reading.Lock() // a sum that is begun after this has what was recorded
	defer g.reading.Unlock()
	rules := a.Rules(pool)
	a.mu.Lock()
	*share = g.share(rules, uid)
	g.grant(uid, *share)
	a.mu.Unlock()
	return record(share)
}

func (g *gate) share(rules Rules, uid string) Share {
	first, own := g.firsts(g.usage.Factories[uid].Namespace)
	return rules.ShareOf(g.usage, uid, first, own)
}

// firsts returns what the first of the line asks for that waits for room in the pool, and what the first of a namespace
// does.
func (g *gate) firsts(namespace string) (first, own Demand) {
	for _, ns := range g.line.turns {
		a, alone := g.heldIn[ns]
		if !alone {
			a = g.held
		}
		d := g.line.waiting[ns][0].Demand
		if a.room() && ns == namespace {
			own = d
		}
		if a.room() && a.Limit != "maxOpenPerNamespace" && first.Jobs == 0 {
			first = d
		}
		if !alone {
			break
		}
	}
	return first, own
}

// room reports whether it is room that an HTCJob waits for.
func (a Answer) room() bool {
	return a.Why == Limited && a.Limit != "maxHeld" && a.Limit != "newPerMinute"
}

// grant counts what a factory is about to be told.
func (g *gate) grant(uid string, s Share) {
	if f, is := g.usage.Factories[uid]; is {
		f.Granted = Share{max(f.Granted.Open, s.Open), max(f.Granted.Idle, s.Idle)}
		f.Owed = f.Owed && (s.Open == 0 || s.Idle == 0)
		g.usage.put(uid, f)
	}
}

// owe notes which factories have made way for one that is let go.
func (g *gate) owe() {
	for uid, f := range g.usage.Factories {
		if f.ToMake > 0 && f.may().Open == 0 {
			f.Owed = true
			g.usage.put(uid, f)
		}
	}
}

// stillOwed notes in a newer sum which factories are still owed a job.
func (g *gate) stillOwed(u *Usage) {
	for uid, f := range u.Factories {
		if g.usage.Factories[uid].Owed && f.ToMake > 0 && f.may().Open == 0 {
			f.Owed = true
			u.put(uid, f)
		}
	}
}
