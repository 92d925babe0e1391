package ledger

// unsettled holds for a proc or node whose state may be another than HTCondor's although HTCondor's has not changed
// lately: it is open and HTCondor has never shown it, or not in its latest answer, or in a state that is left without
// notice; or it has ended, but only by its callback. It is written like the conditions of the indexes htcjobs_unsettled
// and nodes_unsettled, which serve it.
const unsettled = `((p.status = 1 AND (p.source <> 'crosscheck' OR p.absent > 0 OR p.jobStatus NOT IN (1, 2, 5))) OR (p.status <> 1 AND p.source = 'callback'))`

// Unsettled returns up to limit unsettled procs of unconfirmed submitted runs of a kind, in the order of runs and
// numbers. It costs what there is of them, whatever the number of others.
func (tx *Tx) Unsettled(kind Kind, limit int) (procs []Proc, err error) {
	defer wrap(&err, "unsettled procs")
	of := ofHTCJobs
	if kind == Workflows {
		of = `kind = 'workflow'`
	}
	return list(
		tx,
		scanProc,
		`SELECT `+procColumns+` FROM htcjobs p INDEXED BY htcjobs_unsettled CROSS JOIN runs r ON r.id = p.run
		WHERE `+unsettled+` AND p.run IS NOT NULL AND r.confirmed = 0 AND r.state = ? AND r.`+of+` ORDER BY p.run, p.proc LIMIT ? + 0`,
		string(Submitted),
		limit,
	)
}

// UnsettledNodes is Unsettled for the nodes of which a job was seen.
func (tx *Tx) UnsettledNodes(limit int) (nodes []Node, err error) {
	defer wrap(&err, "unsettled nodes")
	return list(
		tx,
		scanNode,
		`SELECT `+nodeColumns+` FROM nodes p INDEXED BY nodes_unsettled CROSS JOIN runs r ON r.id = p.run CROSS JOIN steps s ON s.run = r.id AND s.step = p.step
		WHERE `+unsettled+` AND p.cluster > 0 AND r.confirmed = 0 AND r.state = ? ORDER BY p.run, p.node LIMIT ? + 0`,
		string(Submitted),
		limit,
	)
}
