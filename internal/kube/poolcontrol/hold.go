package poolcontrol

import (
	"context"
	"slices"
	"sync"
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
)

// command is a condor_hold or condor_release at one schedd, for runs of one pool, as one account.
type command struct {
	hold bool // else a release
	pool string
	id   schedd.Identity
}

// commands knows at which schedds one is under way, and how long others pause. A schedd does one thing at a time, and
// one that does not answer must not delay the others.
type commands struct {
	running sync.WaitGroup
	mu      sync.Mutex
	busy    map[schedd.Endpoint]bool
	next    map[schedd.Endpoint]time.Time
}

// The pauses at a schedd after commands that succeeded, or that failed.
const (
	pause       = 5 * time.Second
	longerPause = 15 * time.Second
)

// maxNamed is how many runs a command names: an argument may have 128 KiB.
const maxNamed = 2000

// begin reports whether something may begin at a schedd; news ends a pause.
func (m *commands) begin(at schedd.Endpoint, now time.Time, news bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.busy[at] || !news && now.Before(m.next[at]) {
		return false
	}
	if m.busy == nil {
		m.busy, m.next = map[schedd.Endpoint]bool{}, map[schedd.Endpoint]time.Time{}
	}
	m.busy[at] = true
	return true
}

func (m *commands) end(at schedd.Endpoint, next time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.busy, at)
	m.next[at] = next
}

func (m *commands) wait() { m.running.Wait() }

// follow begins what the states of the pools ask for.
func (c *Controller) follow(ctx context.Context, news bool) {
	todo, err := c.todo(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.Log.Warn().Err(err).Msg("it is not known which jobs to hold or to release, trying again")
		}
		return
	}
	for at, these := range todo {
		if !c.commands.begin(at, c.Now(), news) {
			continue
		}
		c.commands.running.Go(func() {
			next := pause
			for e, runs := range c.as(ctx, these) {
				if err := c.run(ctx, e, runs); err != nil && ctx.Err() == nil {
					next = longerPause
					c.Log.Warn().Err(
						err,
					).Str(
						"pool",
						e.pool,
					).Stringer(
						"schedd",
						at,
					).Msg(
						"jobs of the pool could not be held or released, trying again",
					)
				}
			}
			c.commands.end(at, c.Now().Add(next))
		})
	}
}

// task is a run of which jobs are to be held, else released.
type task struct {
	hold bool
	ledger.Run
}

// todo lists, for every schedd, the runs whose jobs must be held or released.
func (c *Controller) todo(ctx context.Context) (map[schedd.Endpoint][]task, error) {
	suspended := map[string]bool{}
	for _, p := range c.All() {
		if p.Spec.State == v1alpha1.PoolSuspended {
			suspended[p.Name] = true
		}
	}
	todo := map[schedd.Endpoint][]task{}
	add := func(hold bool, runs []ledger.Run) {
		for _, run := range runs {
			at := backend.TargetOf(run).Endpoint
			todo[at] = append(todo[at], task{hold, run})
		}
	}
	err := c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		held, err := tx.RunsHeldByPools(schedd.PoolHold)
		if err != nil {
			return err
		}
		add(false, slices.DeleteFunc(held, func(run ledger.Run) bool { return suspended[run.Pool] }))
		for pool := range suspended {
			runs, err := tx.RunsToHold(pool)
			if err != nil {
				return err
			}
			add(true, runs)
		}
		return nil
	})
	return todo, err
}

// as sorts tasks by the accounts that may have sent them. Those whose account cannot be used now are left for later:
// the condition Credentials of their HTCJobs says why.
func (c *Controller) as(ctx context.Context, these []task) map[command][]ledger.Run {
	senders := map[backend.Target][]schedd.Identity{}
	sorted := map[command][]ledger.Run{}
	for _, t := range these {
		target := backend.TargetOf(t.Run)
		ids, known := senders[target]
		if !known {
			ids, _ = backend.SendersOf(ctx, c.Credentials, target)
			senders[target] = ids
		}
		for _, id := range ids {
			e := command{t.hold, t.Pool, id}
			sorted[e] = append(sorted[e], t.Run)
		}
	}
	return sorted
}

// run holds or releases the jobs of these runs.
func (c *Controller) run(ctx context.Context, e command, runs []ledger.Run) error {
	for some := range slices.Chunk(runs, maxNamed) {
		uids := make([]string, len(some))
		for i, run := range some {
			uids[i] = run.UID
		}
		these := schedd.PoolConstraint(e.pool, uids...)
		var what schedd.Change = schedd.ReleaseHeld{Where: these, Reason: schedd.PoolHold + e.pool + " is not suspended"}
		if e.hold {
			what = schedd.HoldIdle{Where: these, Reason: schedd.PoolHold + e.pool + " is suspended"}
		}
		if _, err := c.Schedds.Change(ctx, e.id, what); err != nil {
			return err
		}
		for _, run := range some {
			c.Jobs.CheckSoon(run)
		}
	}
	return nil
}
