package ledger

import (
	"time"
)

// Totals counts the procs of all HTCJobs in one pass over the table tallies, which has a few rows for each run.
func (tx *Tx) Totals() (c Counts, err error) {
	defer wrap(&err, "count procs")
	err = tx.queryRow(
		`SELECT coalesce(sum(n) FILTER (WHERE status = 1), 0), coalesce(sum(n) FILTER (WHERE status = 4), 0),
			coalesce(sum(n) FILTER (WHERE status = 7), 0) + (SELECT coalesce(sum(unmade), 0) FROM runs), coalesce(sum(n) FILTER (WHERE status = 1 AND jobStatus = 1), 0),
			coalesce(sum(n) FILTER (WHERE status = 1 AND jobStatus IN (2, 6, 7)), 0),
			coalesce(sum(n) FILTER (WHERE status = 1 AND jobStatus = 5), 0) FROM tallies
			WHERE run NOT IN (SELECT id FROM runs INDEXED BY runs_kind WHERE kind = 'workflow')`,
	).
		Scan(
			&c.Active,
			&c.Succeeded,
			&c.Failed,
			&c.Idle,
			&c.Running,
			&c.Held,
		)
	return c, err
}

// NamespaceUse counts the open procs of a namespace's HTCJobs that were sent by a pool, or by none.
type NamespaceUse struct {
	Namespace, Pool     string
	Idle, Running, Held int // Idle: also those that HTCondor has not shown yet
}

// NamespaceUse counts the open procs of every namespace and pool, those with most of them first. It reads a few rows
// for each open run.
func (tx *Tx) NamespaceUse() (all []NamespaceUse, err error) {
	defer wrap(&err, "count open procs of every namespace")
	return list(tx, into(func(u *NamespaceUse) []any {
		return []any{&u.Namespace, &u.Pool, &u.Idle, &u.Running, &u.Held}
	}), `SELECT r.namespace, r.pool, coalesce(sum(t.n) FILTER (WHERE t.jobStatus NOT IN (2, 5, 6, 7)), 0), coalesce(sum(t.n) FILTER (WHERE t.jobStatus IN (2, 6, 7)), 0),
		coalesce(sum(t.n) FILTER (WHERE t.jobStatus = 5), 0)
		FROM runs r JOIN tallies t ON t.run = r.id AND t.n > 0 AND t.status = 1
		WHERE r.`+ofHTCJobs+` AND r.confirmed = 0 AND r.state = 'Submitted' GROUP BY 1, 2 ORDER BY sum(t.n) DESC, 1, 2`)
}

// OpenAt sums up the runs at one schedd whose end HTCondor has not confirmed.
type OpenAt struct {
	Collector, Schedd string
	Runs              int
	Checked           time.Time // the oldest time at which one of them was last asked about, or submitted
}

// OpenRuns sums up, for every schedd, the submitted runs, of both kinds, whose end HTCondor has not confirmed.
func (tx *Tx) OpenRuns() (all []OpenAt, err error) {
	defer wrap(&err, "sum up open runs")
	return list(tx, into(func(o *OpenAt) []any {
		return []any{&o.Collector, &o.Schedd, &o.Runs, (*moment)(&o.Checked)}
	}), `SELECT collector, schedd, count(*), min(max(checked, submitted)) FROM runs
		WHERE confirmed = 0 AND state = 'Submitted' GROUP BY collector, schedd ORDER BY collector, schedd`)
}

// OpenProcs counts the procs at one schedd that may still be in its queue, as PoolUse does.
type OpenProcs struct {
	Collector, Schedd string
	Procs             int
}

// OpenProcs counts, for every schedd, the open procs of all HTCJobs.
func (tx *Tx) OpenProcs() (all []OpenProcs, err error) {
	defer wrap(&err, "count open procs of every schedd")
	return list(tx, into(func(o *OpenProcs) []any {
		return []any{&o.Collector, &o.Schedd, &o.Procs}
	}), `SELECT r.collector, r.schedd, sum(coalesce(t.n, r.procs))
		FROM runs r LEFT JOIN tallies t ON t.run = r.id AND t.n > 0 AND (t.status = 1 OR t.jobStatus = 0)
		WHERE r.`+ofHTCJobs+` AND r.confirmed = 0 AND (r.state = 'Intent' OR r.state = 'Submitted' AND t.n > 0) GROUP BY 1, 2 ORDER BY 1, 2`)
}

// UnfetchedProcs counts the completed procs of all HTCJobs whose output is still to be fetched and has a destination.
func (tx *Tx) UnfetchedProcs() (n int, err error) {
	defer wrap(&err, "count unfetched output")
	err = tx.queryRow(`SELECT count(*) FROM htcjobs p JOIN runs r ON r.id = p.run
		WHERE p.jobStatus = 4 AND p.fetched = 0 AND p.run IS NOT NULL AND r.outputDir <> '' AND r.` + ofHTCJobs).Scan(&n)
	return n, err
}
