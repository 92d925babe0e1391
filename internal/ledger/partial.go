package ledger

import (
	"encoding/json"
	"fmt"
	"math"

	"htc.cern.ch/htcd/internal/ledger/procset"
)

// Numbers returns which procs a run sends, empty if it sends all.
func (r Run) Numbers() (procset.Set, error) {
	if r.Sent == "" {
		return procset.Set{}, nil
	}
	return procset.Parse(r.Sent, math.MaxInt32)
}

// numberOf returns the number of the proc that is a cluster's proc.
func numberOf(sent string, proc int) (int, error) {
	if sent == "" {
		return proc, nil
	}
	number, ok := procset.Nth(sent, proc) // each callback asks, in the only writer
	if !ok {
		return 0, ErrNotFound
	}
	return number, nil
}

// Kept returns the numbers of the procs of a run, in order, whose ends can stand: those that have succeeded and, if
// failed is set, those that have failed for another reason than these.
func (tx *Tx) Kept(uid string, attempt int, failed bool, besides ...string) (kept []int, err error) {
	defer wrap(&err, "ended procs of run %s attempt %d", uid, attempt)
	text, err := json.Marshal(append([]string{}, besides...))
	if err == nil {
		err = tx.query(func(row scanner) error {
			var n int
			err := row.Scan(&n)
			kept = append(kept, n)
			return err
		}, `SELECT proc FROM htcjobs WHERE run = `+runID+` AND (status = 4 OR status = 7 AND ? AND reason NOT IN (SELECT value FROM json_each(?))) ORDER BY proc`,
			uid, attempt, failed, string(text))
	}
	return kept, err
}

// CountSucceeded returns how many procs of a run with these numbers have succeeded, and how many of them had before it
// was sent.
func (tx *Tx) CountSucceeded(uid string, attempt int, among procset.Set) (n, carried int, err error) {
	var ranges [][2]int
	for first, last := range among.Ranges() {
		ranges = append(ranges, [2]int{first, last})
	}
	text, err := json.Marshal(ranges)
	if err == nil {
		err = tx.queryRow(`SELECT count(*), count(*) FILTER (WHERE p.source = '`+SourceCarried+`') FROM json_each(?) j
			CROSS JOIN htcjobs p ON p.run = `+runID+` AND p.proc BETWEEN j.value ->> 0 AND j.value ->> 1 WHERE p.status = 4`,
			string(text), uid, attempt).Scan(&n, &carried)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("count procs of run %s attempt %d that have succeeded: %w", uid, attempt, err)
	}
	return n, carried, nil
}

// CarryProcs gives a run that sends only some procs, and was just inserted, the rows of the others as they ended in an
// earlier attempt of the same UID, and what they have written elsewhere to where it writes, too: its destinations must
// have been set. ErrNotFound if one of them has no end there.
func (tx *Tx) CarryProcs(r Run, from int) (err error) {
	defer wrap(&err, "carry procs of attempt %d over to run %s attempt %d", from, r.UID, r.Attempt)
	numbers, err := r.Numbers()
	if err == nil {
		err = tx.carryProcs(r, from, numbers)
	}
	return err
}

func (tx *Tx) carryProcs(r Run, from int, numbers procset.Set) error {
	text, err := json.Marshal(numbers.Numbers())
	if err != nil {
		return err
	}
	// A state of 0 would mean that HTCondor is still to be asked. Output that was to be fetched with the earlier
	// attempt only is not there.
	n, err := tx.exec(
		`INSERT INTO htcjobs (htcjobName, jobId, status, tempDir, run, proc, jobStatus, exitCode, exitSignal, reason, message, source, changed, checked, fetched, stderr)
		SELECT htcjobName, jobId, status, tempDir, `+runID+`, proc, iif(jobStatus = 0, 3, jobStatus), exitCode, exitSignal, reason, message, '`+SourceCarried+`', changed, checked,
			iif(jobStatus = 4 AND fetched = 0, 2, fetched), stderr
		FROM htcjobs WHERE run = `+runID+` AND status <> 1 AND proc < ? AND proc NOT IN (SELECT value FROM json_each(?))`,
		r.UID,
		r.Attempt,
		r.UID,
		from,
		r.Jobs,
		string(text),
	)
	if err != nil {
		return err
	}
	if int(n) != r.Jobs-numbers.Len() {
		return ErrNotFound
	}
	_, err = tx.exec(`INSERT INTO written (run, number, proc, size, digest, push, note)
		SELECT d.run, w.number, w.proc, w.size, w.digest, w.push, w.note FROM written w JOIN destinations o ON o.run = w.run AND o.number = w.number
		JOIN destinations d ON d.run = `+runID+` AND d.number = w.number AND d.url = o.url AND d.artifact = o.artifact
		WHERE w.run = `+runID+` AND w.push <> 1 AND w.proc NOT IN (SELECT value FROM json_each(?))`, r.UID, r.Attempt, r.UID, from, string(text))
	return err
}

// RecallProcs gives a run that sends only some procs the rows of others, which the ledger has lost.
func (tx *Tx) RecallProcs(r Run, kept []Proc) error {
	for _, p := range kept {
		_, err := tx.exec(
			`INSERT INTO htcjobs (htcjobName, jobId, status, tempDir, run, proc, exitCode, exitSignal, reason, message, source, jobStatus, fetched, stderr)
			SELECT name, ?, ?, '', id, ?, ?, ?, ?, ?, '`+SourceCarried+`', ?, ?, ? FROM runs WHERE uid = ? AND attempt = ?`,
			p.ID,
			int(p.Status),
			p.Proc,
			p.ExitCode,
			p.Signal,
			p.Reason,
			p.Message,
			p.JobStatus,
			int(p.Fetched),
			p.Stderr,
			r.UID,
			r.Attempt,
		)
		if err != nil {
			return fmt.Errorf("recall proc %d of run %s attempt %d: %w", p.Proc, r.UID, r.Attempt, err)
		}
	}
	return nil
}

// DropCarried removes what CarryProcs has added to a run, which is to send all procs instead.
func (tx *Tx) DropCarried(uid string, attempt int) (err error) {
	defer wrap(&err, "drop the carried procs of run %s attempt %d", uid, attempt)
	_, err = tx.exec(`DELETE FROM htcjobs WHERE run = `+runID+` AND source = '`+SourceCarried+`'`, uid, attempt)
	if err == nil {
		_, err = tx.exec(`DELETE FROM written WHERE run = `+runID, uid, attempt)
	}
	return err
}

// CarriedOutput returns which of the procs that were carried over to a run have output.
func (tx *Tx) CarriedOutput(uid string, attempt int) (procs []int, err error) {
	defer wrap(&err, "carried output of run %s attempt %d", uid, attempt)
	return list(
		tx,
		one[int],
		`SELECT proc FROM htcjobs WHERE run = `+runID+` AND source = '`+SourceCarried+`' AND fetched IN (1, 3)`,
		uid,
		attempt,
	)
}

// insertSent is insertProcs for a run that sends only some procs. All of them get rows, though HTCondor may have shown
// fewer.
func (tx *Tx) insertSent(r Run, id int64) error {
	numbers, err := r.Numbers()
	if err != nil {
		return err
	}
	text, err := json.Marshal(numbers.Numbers())
	if err != nil {
		return err
	}
	inserted, err := tx.exec(`INSERT INTO htcjobs (htcjobName, jobId, status, tempDir, run, proc, changed)
		SELECT ?, ? || '.' || key, 1, ?, ?, value, ? FROM json_each(?)
		WHERE NOT EXISTS (SELECT 1 FROM htcjobs WHERE run = ? AND source <> '`+SourceCarried+`')`,
		r.Name, r.Cluster, r.TempDir, id, millis(r.Submitted), string(text), id)
	if err == nil && inserted == 0 {
		err = ErrExists
	}
	return err
}
