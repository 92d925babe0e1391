package admission

import (
	"fmt"
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Rules are what decides whether the next HTCJob of a pool may be sent. The pool without a name is made of flags.
type Rules struct {
	Pool   string
	State  v1alpha1.PoolState
	Limits v1alpha1.PoolLimits
}

// RulesOf returns the limits and the state of a pool as they are now; now is nil if there is no such pool. Those of the
// pool without a name are the flags, 0 for no limit.
func RulesOf(pool string, now *v1alpha1.HTCPool, maxQueue, maxOpen int) Rules {
	r := Rules{Pool: pool}
	switch {
	case pool == "":
		r.Limits.MaxQueue, r.Limits.MaxOpenPerNamespace = limitOf(maxQueue), limitOf(maxOpen)
	case now != nil:
		r.State = now.Spec.State
		if now.Spec.Limits != nil {
			r.Limits = *now.Spec.Limits
		}
	}
	return r
}

// limitOf returns the limit that a flag sets, nil for 0.
func limitOf(flag int) *int32 {
	if flag == 0 {
		return nil
	}
	return new(int32(flag)) // #nosec G115 -- options.go bounds it
}

// None reports whether nothing is ever held back.
func (r Rules) None() bool { return r.open() && r.Limits == (v1alpha1.PoolLimits{}) }

// open reports whether the pool's state lets HTCJobs be sent.
func (r Rules) open() bool { return r.State == "" || r.State == v1alpha1.PoolOnline }

// Usage is how much of a pool is in use: jobs that have not ended in HTCondor, those on their way there included.
type Usage struct {
	Open          int
	Idle          int // those that nobody has seen running yet included
	Running, Held int
	Coming        Share              // of Open and Idle, what is reserved for factories
	Factories     map[string]Factory // by UID
	HeldByPool    int                // of those, what the state Suspended holds; known only where it matters
	Namespaces    map[string]Part
	Owed          []string // namespaces before in the line, whose HTCJobs wait for others' idle jobs to start
	Cores         int      // asked for by what is idle or runs, or may be made
	Memory        int      // MiB, likewise
	Sending       int      // may reach the schedd at any moment
	Sent          []Sent   // within the last minute, oldest first
}

// Part is what one namespace has of a Usage.
type Part struct {
	Open, Idle, Held int
	Waiting          int   // for a slot, as HTCondor has shown
	Coming           Share // of Open and Idle
	HeldByPool       int
	Cores, Memory    Requested
}

// stuck is how many jobs may stay for good.
func (p Part) stuck() int { return p.Waiting + p.Held }

func (p Part) idle() int { return p.Idle }

// share returns a namespace's fair part of a limit: the same for each that has open jobs, and for the one that asks.
func (u Usage) share(most int, namespace string) (share int, others bool) {
	n := u.sharing(namespace)
	return most / n, n > 1
}

// sharing is how many namespaces share what may be used.
func (u Usage) sharing(namespace string) int {
	n := 1
	for ns, part := range u.Namespaces {
		if ns != namespace && part.Open > 0 {
			n++
		}
	}
	for _, ns := range u.Owed {
		if ns != namespace && u.Namespaces[ns].Open == 0 {
			n++
		}
	}
	return n
}

// room returns how much more a limit leaves to a namespace of what is in use: of what may stay for good, others have no
// more than their share. ever is what it would leave without all that runs.
func (u Usage) room(most int, namespace string, inUse int, stuck func(Part) int) (now, ever int) {
	n := u.sharing(namespace)
	all, stays := n*inUse, 0 // in nths
	for ns, part := range u.Namespaces {
		counts := n * stuck(part)
		if ns != namespace {
			counts = min(counts, most)
			all -= n*stuck(part) - counts
		}
		stays += counts
	}
	return most - (all+n-1)/n, most - (stays+n-1)/n
}

// Sent is one submission.
type Sent struct {
	At   time.Time
	Jobs int
}

// Answer is whether an HTCJob may be sent. The zero value means yes.
type Answer struct {
	Why   Why
	Limit string    // which limit is reached
	Full  string    // how full it is, for people: "1000 of 1000 jobs open (limits.maxOpen)"
	Alone bool      // only this namespace's HTCJobs are held back
	Owed  bool      // it is its turn as soon as idle jobs of others have started
	Again time.Time // when time alone may change the answer; zero: it cannot
}

// Why is why an HTCJob is not sent.
type Why int

// The reasons.
const (
	Sends     Why = iota
	Never         // it is larger than a limit
	Limited       // a limit is reached
	Draining      // the pool's state
	Suspended     // the pool's state
)

// Decide returns whether an HTCJob may be sent now that asks for so much. It is pure.
func (r Rules) Decide(u Usage, namespace string, d Demand, now time.Time) Answer {
	if r.Refuse(d) != nil {
		return Answer{Why: Never}
	}
	switch r.State {
	case v1alpha1.PoolDraining:
		return Answer{Why: Draining, Full: "the pool is Draining, nothing new is sent until its state is Online"}
	case v1alpha1.PoolSuspended:
		return Answer{Why: Suspended, Full: "the pool is Suspended, nothing new is sent until its state is Online"}
	}
	limited := func(limit, format string, args ...any) Answer {
		return Answer{Why: Limited, Limit: limit, Full: fmt.Sprintf(format, args...) + " (" + r.name(limit) + ")"}
	}
	l := r.Limits
	own, jobs := u.Namespaces[namespace], d.Jobs
	// alone is limited for what concerns only this namespace: it has had its share of what all may have.
	alone := func(has, share int, others bool, limit, format string, args ...any) Answer {
		if others {
			format, args = format+", %d of them of namespace %s, whose share is %d", append(args, has, namespace, share)
		}
		a := limited(limit, format, args...)
		a.Alone = true
		return a
	}
	if most, is := bound(l.MaxOpenPerNamespace); is && own.Open+jobs > most {
		return alone(
			0,
			0,
			false,
			"maxOpenPerNamespace",
			"%d of %d jobs of namespace %s open%s",
			own.Open,
			most,
			namespace,
			reserved(own.Coming.Open),
		)
	}
	if most, is := bound(l.MaxHeld); is && u.Held-u.HeldByPool > most {
		share, others := u.share(most, namespace)
		if has := own.Held - own.HeldByPool; has > share {
			return alone(has, share, others, "maxHeld", "%d of at most %d jobs on hold", u.Held-u.HeldByPool, most)
		}
	}
	if most, is := bound(l.MaxOpen); is {
		if now, ever := u.room(most, namespace, u.Open, Part.stuck); jobs > now {
			a := limited("maxOpen", "%d of %d jobs open%s", u.Open, most, reserved(u.Coming.Open))
			a.Alone = jobs > ever // so nobody waits for it
			return a
		}
	}
	for _, q := range r.requests() {
		if now, ever := u.room(q.most, namespace, q.inUse(u), q.waiting); q.asked(d) > now {
			a := limited(q.name, "%d of %d %s in use", q.inUse(u), q.most, q.unit)
			a.Alone = q.asked(d) > ever
			return a
		}
	}
	// Those who have less idle than their share come first; one that was held back before may have more.
	idle := func(most, all int, of func(Part) int, limit, format string, args ...any) Answer {
		share, others := u.share(most, namespace)
		now, _ := u.room(most, namespace, all, of)
		if jobs <= now && (len(u.Owed) == 0 || of(own)+jobs <= share) {
			return Answer{}
		}
		a := alone(of(own), max(1, share), others, limit, format, args...)
		a.Owed = of(own)+jobs <= most
		return a
	}
	if most, is := bound(l.MaxIdle); is {
		a := idle(most, u.Idle, Part.idle, "maxIdle", "%d of %d jobs idle%s", u.Idle, most, reserved(u.Coming.Idle))
		if a.Why != Sends {
			return a
		}
	}
	if p := l.IdlePercentOfRunning; p != nil {
		// What is reserved for factories has limits of its own, and may be far more than the percentage.
		all, there := u.Idle-u.Coming.Idle, func(p Part) int { return p.Idle - p.Coming.Idle }
		most := idleAllowed(*p, u.Running)
		if there(own) == 0 {
			most = max(most, jobs) // nothing might ever run otherwise
		}
		a := idle(
			most,
			all,
			there,
			"idlePercentOfRunning",
			"%d of %d jobs idle with %d running",
			all,
			most,
			u.Running,
		)
		if a.Why != Sends {
			return a
		}
	}
	if most, is := bound(l.NewPerMinute); is {
		if n, again := u.fresh(most-jobs, now); n+jobs > most {
			a := limited("newPerMinute", "%d of %d jobs per minute sent", n, most)
			a.Again = again
			return a
		}
	}
	return Answer{}
}

// idleAllowed is the limit of idle jobs while so many run.
func idleAllowed(p v1alpha1.IdlePercent, running int) int {
	most := int(int64(running) * int64(p.Percent) / 100)
	if p.Max != nil {
		most = min(most, int(*p.Max))
	}
	least := 1
	if p.Min != nil {
		least = int(*p.Min)
	}
	return max(most, least)
}

// fresh returns how many jobs were sent within the last minute, and when there will be at most so many; the zero time
// if that cannot be said, because some are still on their way.
func (u Usage) fresh(most int, now time.Time) (n int, again time.Time) {
	n = u.Sending
	for _, s := range u.Sent {
		if now.Sub(s.At) < time.Minute {
			n += s.Jobs
		}
	}
	left := n
	for _, s := range u.Sent {
		if now.Sub(s.At) >= time.Minute {
			continue
		}
		if left -= s.Jobs; left <= most {
			return n, s.At.Add(time.Minute)
		}
	}
	return n, time.Time{}
}

// Refuse returns an error of kind schedd.Refused if an HTCJob can never be sent that asks for so much.
func (r Rules) Refuse(d Demand) error {
	for _, l := range []struct {
		limit *int32
		jobs  int
		name  string
		what  string
	}{
		{r.Limits.MaxQueue, max(d.Jobs, d.Made), "maxQueue", "jobs that one HTCJob may have"},
		{r.Limits.MaxOpen, d.Jobs, "maxOpen", "jobs that may be open"},
		{r.Limits.MaxOpenPerNamespace, d.Jobs, "maxOpenPerNamespace", "jobs that a namespace may have open"},
		{r.Limits.MaxIdle, d.Jobs, "maxIdle", "jobs that may wait for a slot"},
		{r.mostIdle(), d.Jobs, "idlePercentOfRunning.max", "jobs that may wait for a slot"},
		{r.Limits.NewPerMinute, d.Jobs, "newPerMinute", "jobs that may be sent in a minute"},
	} {
		if most, is := bound(l.limit); is && l.jobs > most {
			return condor.Refusal(
				"queue %d is more than the %d %s %s (%s): make it several HTCJobs",
				l.jobs,
				most,
				l.what,
				r.where(),
				r.name(l.name),
			)
		}
	}
	if err := r.RefuseRequest(d); err != nil {
		return condor.Refusal("queue %d %w: make it several HTCJobs, or ask for less", d.Jobs, err)
	}
	return nil
}

// mostIdle is the most that a limit of idle jobs becomes that follows how many run, nil for any number.
func (r Rules) mostIdle() *int32 {
	if r.Limits.IdlePercentOfRunning == nil {
		return nil
	}
	return r.Limits.IdlePercentOfRunning.Max
}

// RefuseNodes returns an error of kind schedd.Refused if an HTCWorkflow of so many nodes can never be sent.
func (r Rules) RefuseNodes(nodes int) error {
	if most, is := bound(r.Limits.MaxQueue); is && nodes > most {
		return condor.Refusal(
			"%d nodes are more than the %d that one HTCWorkflow may have %s (%s): make it several HTCWorkflows",
			nodes,
			most,
			r.where(),
			r.name("maxQueue"),
		)
	}
	return nil
}

// where returns where a limit holds.
func (r Rules) where() string {
	if r.Pool == "" {
		return "here"
	}
	return "in pool " + r.Pool
}

// name returns what a limit is called where it is set.
func (r Rules) name(limit string) string {
	if r.Pool != "" {
		return "limits." + limit
	}
	if limit == "maxQueue" {
		return "--max-queue"
	}
	return "--max-open-per-namespace"
}

func bound(limit *int32) (most int, is bool) {
	if limit == nil {
		return 0, false
	}
	return int(*limit), true
}
