package ledger

import "fmt"

// unsettled holds for a proc whose state may be another than HTCondor's although HTCondor's has not changed lately: it is open and HTCondor has never
// shown it, or not in its latest answer, or in a state that is left without notice; or it has ended, but only by its callback. It is written
// like the condition of the index htcjobs_unsettled, which serves it.
const unsettled = `((p.status = 1 AND (p.source <> 'crosscheck' OR p.absent > 0 OR p.jobStatus NOT IN (1, 2, 5))) OR (p.status <> 1 AND p.source = 'callback'))
	AND p.run IS NOT NULL`

// Unsettled returns up to limit unsettled procs of unconfirmed submitted runs of a kind, in the order of runs and numbers. It costs what there is of
// them, whatever the number of others.
func (tx *Tx) Unsettled(kind Kind, limit int) ([]Proc, error) {
	of := ofHTCJobs
	if kind == Workflows {
		of = `kind = 'workflow'`
	}
	var procs []Proc
	err := tx.query(func(row scanner) error {
		p, err := scanProc(row)
		procs = append(procs, p)
		return err
	}, `SELECT `+procColumns+` FROM htcjobs p INDEXED BY htcjobs_unsettled CROSS JOIN runs r ON r.id = p.run
		WHERE `+unsettled+` AND r.confirmed = 0 AND r.state = ? AND r.`+of+` ORDER BY p.run, p.proc LIMIT ? + 0`, string(Submitted), limit)
	if err != nil {
		return nil, fmt.Errorf("unsettled procs: %w", err)
	}
	return procs, nil
}
