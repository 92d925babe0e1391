package ledger

// NodeCounts are nodes by their state. Idle, Running and Held are parts of Active, as is what waits for a node before
// it or has not been asked about yet.
type NodeCounts struct {
	Counts
	Futile int
}

// Total returns how many there are.
func (c NodeCounts) Total() int { return c.Active + c.Succeeded + c.Failed + c.Futile }

// Plus adds those of another DAG.
func (c NodeCounts) Plus(d NodeCounts) NodeCounts {
	c.Active, c.Succeeded, c.Failed, c.Futile =
		c.Active+d.Active, c.Succeeded+d.Succeeded, c.Failed+d.Failed, c.Futile+d.Futile
	c.Idle, c.Running, c.Held = c.Idle+d.Idle, c.Running+d.Running, c.Held+d.Held
	return c
}

// StepCounts are the nodes of one step.
type StepCounts struct {
	Step
	NodeCounts
}

// SequenceCounts are the sequences of a DAG by their state. One of which more nodes have failed than may, or one is
// futile, has failed; one of which all others have succeeded has succeeded.
type SequenceCounts struct{ Active, Succeeded, Failed int }

// tallyNodes counts the nodes that were just inserted; from now on triggers do.
func (tx *Tx) tallyNodes(run int64) error {
	for _, statement := range []string{
		`INSERT INTO nodeTallies SELECT run, step, status, jobStatus, count(*) FROM nodes WHERE run = ? GROUP BY step, status, jobStatus`,
		`INSERT INTO sequences (run, sequence, open, failed) SELECT run, sequence, count(*), 0 FROM nodes WHERE run = ? AND sequence >= 0 GROUP BY sequence`,
		`INSERT INTO sequenceTallies SELECT run, status, count(*) FROM sequences WHERE run = ? GROUP BY status`,
	} {
		if _, err := tx.exec(statement, run); err != nil {
			return err
		}
	}
	return nil
}

// NodeTotals counts the nodes of all DAGs, from a few rows for each.
func (tx *Tx) NodeTotals() (c NodeCounts, err error) {
	defer wrap(&err, "count nodes")
	err = tx.query(func(row scanner) error {
		var status Status
		var jobStatus, n int
		if err := row.Scan(&status, &jobStatus, &n); err != nil {
			return err
		}
		c.add(status, jobStatus, n)
		if status == StatusFutile {
			c.Futile += n
		}
		return nil
	}, `SELECT status, jobStatus, sum(n) FROM nodeTallies GROUP BY status, jobStatus`)
	return c, err
}

// NodeCounts counts the nodes of a DAG, step by step in the order of their numbers. It reads a few rows for each step.
func (tx *Tx) NodeCounts(uid string, attempt int) (all []StepCounts, err error) {
	defer wrap(&err, "count nodes of run %s attempt %d", uid, attempt)
	err = tx.query(func(row scanner) error {
		var s Step
		var status Status
		var jobStatus, n int
		if err := row.Scan(&s.Number, &s.Name, &s.Deferred, &status, &jobStatus, &n); err != nil {
			return err
		}
		if last := len(all) - 1; last < 0 || all[last].Number != s.Number {
			all = append(all, StepCounts{Step: s})
		}
		c := &all[len(all)-1].NodeCounts
		c.add(status, jobStatus, n)
		if status == StatusFutile {
			c.Futile += n
		}
		return nil
	}, `SELECT s.step, s.name, s.deferred, t.status, t.jobStatus, t.n FROM steps s JOIN nodeTallies t ON t.run = s.run AND t.step = s.step
		WHERE s.run = `+runID+` ORDER BY s.step`, uid, attempt)
	return all, err
}

// SequenceCounts counts the sequences of a DAG. It reads at most three rows.
func (tx *Tx) SequenceCounts(uid string, attempt int) (c SequenceCounts, err error) {
	defer wrap(&err, "count sequences of run %s attempt %d", uid, attempt)
	err = tx.query(func(row scanner) error {
		var status Status
		var n int
		if err := row.Scan(&status, &n); err != nil {
			return err
		}
		switch status {
		case StatusOpen:
			c.Active = n
		case StatusSucceeded:
			c.Succeeded = n
		case StatusFailed:
			c.Failed = n
		}
		return nil
	}, `SELECT status, n FROM sequenceTallies WHERE run = `+runID, uid, attempt)
	return c, err
}

// UnconfirmedSequences returns how many of the sequences of a DAG that have succeeded have done so by the word of a
// callback that HTCondor has not confirmed yet.
func (tx *Tx) UnconfirmedSequences(uid string, attempt int) (n int, err error) {
	defer wrap(&err, "count unconfirmed sequences of run %s attempt %d", uid, attempt)
	err = tx.queryRow(
		`SELECT count(DISTINCT n.sequence) FROM nodes n JOIN sequences q ON q.run = n.run AND q.sequence = n.sequence
		WHERE n.run = `+runID+` AND n.status = 4 AND n.source = 'callback' AND q.status = 4`,
		uid,
		attempt,
	).Scan(
		&n,
	)
	return n, err
}

// Sequences returns the sequences of a DAG that are in a state (StatusOpen, StatusSucceeded or StatusFailed), from a
// number on and limited in number, in their order.
func (tx *Tx) Sequences(uid string, attempt int, status Status, from, limit int) (all []int, err error) {
	defer wrap(&err, "sequences of run %s attempt %d", uid, attempt)
	return list(
		tx,
		one[int],
		`SELECT sequence FROM sequences WHERE run = `+runID+` AND sequence >= ? AND status = ? ORDER BY sequence LIMIT ?`,
		uid,
		attempt,
		from,
		int(status),
		limit,
	)
}
