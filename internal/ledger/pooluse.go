package ledger

import (
	"time"
)

// PoolUse sums up the procs of one namespace at one schedd that were sent by way of a pool and may still be in
// HTCondor. An intent counts with all its procs, or with one where a factory makes them. A proc of which only a
// callback has said that it has ended may run for another second. Of a DAG only the nodes count that HTCondor has shown
// in its queue.
type PoolUse struct {
	Namespace, Collector, Schedd string

	Sending             int // of intents
	Unseen              int // sent, but HTCondor has not yet been asked about them
	Idle, Running, Held int
	Ending              int // reported their end, which HTCondor has not confirmed; and those in any other state
}

// firstSent is how many jobs of a run count when it is sent: of those that a factory makes, the first.
const firstSent = `iif(r.factory > 0, 1, r.procs)`

// poolUse finds the runs of a pool by the index runs_pool, and a few rows of tallies for each.
const poolUse = `SELECT r.namespace, r.collector, r.schedd, t.status, t.jobStatus, sum(t.n)
	FROM runs r JOIN nodeTallies t ON t.run = r.id AND t.n > 0 AND t.status = 1 AND t.jobStatus > 0
	WHERE r.kind = 'workflow' AND r.pool = ? AND r.confirmed = 0 AND r.state = 'Submitted'
	GROUP BY 1, 2, 3, 4, 5
	UNION ALL SELECT r.namespace, r.collector, r.schedd, coalesce(t.status, 0), coalesce(t.jobStatus, 0), sum(coalesce(t.n, ` + firstSent + `))
	FROM runs r LEFT JOIN tallies t ON t.run = r.id AND t.n > 0 AND (t.status = 1 OR t.jobStatus = 0)
	WHERE r.` + ofHTCJobs + ` AND r.pool = ? AND r.confirmed = 0 AND (r.state = 'Intent' OR r.state = 'Submitted' AND t.n > 0)
	GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3`

// Open returns how many there are.
func (u PoolUse) Open() int { return u.Sending + u.Unseen + u.Idle + u.Running + u.Held + u.Ending }

// PoolUse sums up the open runs of a pool; those of the empty name were sent by way of none. It reads a few rows for
// each open run.
func (tx *Tx) PoolUse(pool string) (all []PoolUse, err error) {
	defer wrap(&err, "sum up the open runs of pool %q", pool)
	err = tx.query(func(row scanner) error {
		var at PoolUse
		var status Status
		var jobStatus, n int
		if err := row.Scan(&at.Namespace, &at.Collector, &at.Schedd, &status, &jobStatus, &n); err != nil {
			return err
		}
		if last := len(all) - 1; last < 0 || all[last].place() != at.place() {
			all = append(all, at)
		}
		all[len(all)-1].add(status, jobStatus, n)
		return nil
	}, poolUse, pool, pool)
	return all, err
}

func (u PoolUse) place() [3]string { return [3]string{u.Namespace, u.Collector, u.Schedd} }

func (u *PoolUse) add(status Status, jobStatus, n int) {
	switch {
	case status == 0: // an intent has no procs
		u.Sending += n
	case status != StatusOpen:
		u.Ending += n
	case jobStatus == 0:
		u.Unseen += n
	case jobStatus == jobIdle:
		u.Idle += n
	case jobStatus == jobRunning || jobStatus == jobTransferring || jobStatus == jobSuspended:
		u.Running += n
	case jobStatus == jobHeld:
		u.Held += n
	default:
		u.Ending += n
	}
}

// PoolRequest is how many jobs of one namespace that ask for the same use a pool or wait there.
type PoolRequest struct {
	Namespace string
	Effective string // JSON of v1alpha1.Effective
	Waiting   int    // for a slot, as HTCondor has shown
	InUse     int    // those that run, those that wait, and those on their way
}

const poolRequests = `SELECT r.namespace, s.effective, sum(t.n * (t.jobStatus = 1)), sum(t.n)
	FROM runs r JOIN nodeTallies t ON t.run = r.id AND t.n > 0 AND t.status = 1 AND t.jobStatus NOT IN (0, 5)
	JOIN steps s ON s.run = t.run AND s.step = t.step
	WHERE r.kind = 'workflow' AND r.pool = ? AND r.confirmed = 0 AND r.state = 'Submitted' GROUP BY 1, 2
	UNION ALL SELECT r.namespace, r.effective, sum(coalesce(t.n * (t.jobStatus = 1), 0)), sum(coalesce(t.n, ` + firstSent + `))
	FROM runs r LEFT JOIN tallies t ON t.run = r.id AND t.n > 0 AND t.status = 1 AND t.jobStatus <> 5
	WHERE r.` + ofHTCJobs + ` AND r.pool = ? AND r.confirmed = 0 AND (r.state = 'Intent' OR r.state = 'Submitted' AND t.n > 0)
	GROUP BY 1, 2`

// PoolRequests sums up by what they ask for the jobs of a pool that wait for a slot or run, as PoolUse does.
func (tx *Tx) PoolRequests(pool string) (all []PoolRequest, err error) {
	defer wrap(&err, "sum up what is requested of pool %q", pool)
	return list(tx, into(func(r *PoolRequest) []any {
		return []any{&r.Namespace, &r.Effective, &r.Waiting, &r.InUse}
	}), poolRequests, pool, pool)
}

// Sent is how many procs were sent by way of a pool in one submission.
type Sent struct {
	Pool  string
	Procs int
	At    time.Time
}

// PoolFactory is a run of a pool whose jobs a factory makes.
type PoolFactory struct {
	UID       string
	Namespace string
	Effective string // JSON of v1alpha1.Effective
	Most      int    // jobs of it that may be in HTCondor at a time: Run.Factory
	MostIdle  int    // Run.FactoryIdle
	Open      int    // jobs of it that PoolUse counts
	Idle      int    // those of them that wait for a slot, or that HTCondor has not shown yet
	Held      int
	InUse     int // those that PoolRequests counts
	ToBeMade  int
}

// PoolFactories lists those of a pool that are open. It finds them by the index runs_factories.
func (tx *Tx) PoolFactories(pool string) (all []PoolFactory, err error) {
	defer wrap(&err, "list the factories of pool %q", pool)
	return list(tx, into(func(f *PoolFactory) []any {
		return []any{
			&f.UID, &f.Namespace, &f.Effective, &f.Most, &f.MostIdle, &f.Open, &f.Idle, &f.Held, &f.InUse, &f.ToBeMade,
		}
	}), `SELECT r.uid, r.namespace, r.effective, r.factory, r.factoryIdle,
			coalesce(sum(t.n * (t.status = 1 OR t.jobStatus = 0)), 0), coalesce(sum(t.n * (t.status = 1 AND t.jobStatus IN (0, 1))), 0),
			coalesce(sum(t.n * (t.status = 1 AND t.jobStatus = 5)), 0), coalesce(sum(t.n * (t.status = 1 AND t.jobStatus <> 5)), 0),
			max(r.procs, r.jobs) - r.unmade - coalesce(sum(t.n), 0)
		FROM runs r LEFT JOIN tallies t ON t.run = r.id
		WHERE r.`+ofHTCJobs+` AND r.pool = ? AND r.confirmed = 0 AND r.state = 'Submitted' AND r.factory > 0 GROUP BY r.id`, pool)
}

// SentSince lists the submissions after a time, oldest first. It reads every run, once for all pools: 100,000 take some
// 60 ms.
func (tx *Tx) SentSince(after time.Time) (all []Sent, err error) {
	defer wrap(&err, "list recent submissions")
	return list(tx, into(func(s *Sent) []any {
		return []any{&s.Pool, &s.Procs, (*moment)(&s.At)}
	}), `SELECT pool, `+firstSent+`, submitted FROM runs r WHERE `+ofHTCJobs+` AND submitted > ? ORDER BY submitted`, millis(after))
}
