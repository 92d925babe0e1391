package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"htc.cern.ch/htcd/internal/ledger/procset"
)

// Proc is one job of a run's cluster: one row of the public table htcjobs.
type Proc struct {
	UID       string // UID, Attempt, Namespace, Name and Cluster are the run's
	Attempt   int
	Namespace string
	Name      string
	Cluster   int
	Proc      int    // 0 to n-1
	ID        string // HTCondor's name of it, where that is not Cluster.Proc
	Status    Status
	JobStatus int  // HTCondor's JobStatus when last seen, 0 unknown
	ExitCode  *int // nil unless the job ended by itself
	Signal    *int // nil unless a signal ended the job
	Reason    string
	Message   string
	Source    string    // who reported it last: "callback", or a source that speaks for HTCondor
	Absent    int       // consecutive successful answers that did not show it
	Changed   time.Time // when Status last changed
	Checked   time.Time // when Absent was last counted or JobStatus last seen
	Fetched   Fetched
	Stderr    string // the end of its standard error, as the job tells it, or as fetched
	Usage     string // what it used, in the form of usage.Use; empty: not known
}

// JobID is HTCondor's name of the proc, such as "884426.0".
func (p Proc) JobID() string {
	if p.ID != "" {
		return p.ID
	}
	return strconv.Itoa(p.Cluster) + "." + strconv.Itoa(p.Proc)
}

// Place returns where HTCondor has it.
func (p Proc) Place() (cluster, proc int) {
	if cluster, proc, ok := splitJobID(p.ID); ok {
		return cluster, proc
	}
	return p.Cluster, p.Proc
}

// Status is the public column status; its numbers are the first operator's.
type Status int

const (
	StatusOpen      Status = 1
	StatusSucceeded Status = 4
	StatusFailed    Status = 7
)

// Fetched is the state of a proc's output.
type Fetched int

const (
	NotFetched Fetched = 0
	IsFetched  Fetched = 1
	GivenUp    Fetched = 2 // it can no longer be fetched
	Incomplete Fetched = 3 // it is here except files that HTCondor did not keep; the last line of Stderr names them
)

// ProcFilter narrows Procs; the zero value means every proc of the run.
type ProcFilter struct {
	Status      Status // 0: any
	JobStatus   int    // HTCondor's, 0: any
	Unconfirmed bool   // only those open, or ended only by a callback
	Changed     bool   // only those that Unchanged does not show
	Unfetched   bool   // only completed ones whose output is still to be fetched
	Reason      string // empty: any
	Besides     string // not those with this reason; empty: any
	From        int    // the first proc number wanted
	Limit       int    // most rows, 0: all
}

// Counts are the procs of one run by their state. Active counts every open one; Idle, Running and Held are parts of
// Active, as are Waiting, those that their factory has not made yet.
type Counts struct {
	Active, Succeeded, Failed    int
	Idle, Running, Held, Waiting int
}

const (
	procColumns = `r.uid, r.attempt, r.namespace, r.name, r.cluster, p.proc, iif(r.sent = '', '', p.jobId), p.status, p.jobStatus, p.exitCode,
	p.exitSignal, p.reason, p.message, p.source, p.absent, p.changed, p.checked, p.fetched, p.stderr, p.usage`
	selectProc = `SELECT ` + procColumns + ` FROM runs r JOIN htcjobs p ON p.run = r.id `

	// runID finds the row id of a run by its uid and attempt.
	runID = `(SELECT id FROM runs WHERE uid = ? AND attempt = ?)`
)

// InsertProcs adds the rows 0 to n-1 of r's cluster, all open, dated r.Submitted. r must be in the ledger (ErrNotFound)
// and name its cluster; ErrExists if it already has rows.
func (tx *Tx) InsertProcs(r Run, n int) (err error) {
	defer wrap(&err, "insert %d procs of run %s attempt %d", n, r.UID, r.Attempt)
	if r.Cluster <= 0 || n <= 0 {
		return fmt.Errorf("cluster %d with %d procs cannot be", r.Cluster, n)
	}
	var id int64
	err = tx.queryRow(`SELECT id FROM runs WHERE uid = ? AND attempt = ?`, r.UID, r.Attempt).Scan(&id)
	if err != nil {
		return err
	}
	if r.Sent != "" {
		return tx.insertSent(r, id)
	}
	inserted, err := tx.exec(`WITH RECURSIVE number(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM number WHERE n + 1 < ?)
		INSERT INTO htcjobs (htcjobName, jobId, status, tempDir, run, proc, changed)
		SELECT ?, ? || '.' || n, 1, ?, ?, n, ? FROM number
		WHERE NOT EXISTS (SELECT 1 FROM htcjobs WHERE run = ?)`,
		n, r.Name, r.Cluster, r.TempDir, id, millis(r.Submitted), id)
	if err == nil && inserted == 0 {
		err = ErrExists
	}
	return err
}

// AddMade adds rows, all open, for those of the first procs of a factory's cluster that have none yet. It costs what it
// adds: a callback may wait for it, and all others for that.
func (tx *Tx) AddMade(r Run, made int) error {
	has, _, err := tx.rowsMade(r)
	if err != nil {
		return err
	}
	return tx.addRows(r, has, min(made, r.Procs), Proc{Status: StatusOpen, Changed: r.Submitted})
}

// mostUnmade is how many rows one EndUnmade adds.
const mostUnmade = 20_000

// EndUnmade is AddMade for a factory that makes no more jobs: those that it has not made have failed, without rows.
// Only the first rows of the cluster, so many, are added to the end, as another proc; it returns whether there are more
// of these to add.
func (tx *Tx) EndUnmade(r Run, made, rows int, as Proc) (more bool, err error) {
	if err := tx.AddMade(r, made); err != nil {
		return false, err
	}
	has, _, err := tx.rowsMade(r)
	if err != nil {
		return false, err
	}
	rows = min(rows, r.Procs)
	to := max(has, min(has+mostUnmade, rows))
	return to < rows, errors.Join(tx.addRows(r, has, to, as), tx.setUnmade(r, r.Procs-to))
}

// AddGone is AddMade for a factory that has gone, and may have made jobs since it was last asked about: as many again
// as have rows, and at least these, once all that have rows have ended. If the last of them were all lost, there are no
// more: the others have failed, too, without rows.
func (tx *Tx) AddGone(r Run, atLeast int) error {
	has, counts, err := tx.rowsMade(r)
	if err != nil || counts.Waiting == 0 || counts.Active > counts.Waiting {
		return err
	}
	lost := 0
	// Of a run that is stopped, what is lost has the stop as its reason.
	err = tx.queryRow(`SELECT count(*) FROM (SELECT status, reason, absent FROM htcjobs WHERE run = `+runID+`
		AND source <> '`+SourceCarried+`' ORDER BY proc DESC LIMIT ?)
		WHERE reason = 'Lost' OR status = 7 AND absent > 0 AND reason = ?`, r.UID, r.Attempt, atLeast, r.Stop).
		Scan(&lost)
	switch {
	case err != nil:
		return fmt.Errorf("count lost procs of run %s attempt %d: %w", r.UID, r.Attempt, err)
	case lost == atLeast:
		return tx.setUnmade(r, r.Procs-has)
	}
	return tx.AddMade(r, has+max(has, atLeast))
}

// MakeAgain takes back that a factory does not make some of its jobs.
func (tx *Tx) MakeAgain(r Run) error { return tx.setUnmade(r, 0) }

func (tx *Tx) setUnmade(r Run, n int) (err error) {
	defer wrap(&err, "record that procs of run %s attempt %d are not made", r.UID, r.Attempt)
	return tx.change(`UPDATE runs SET unmade = ? WHERE uid = ? AND attempt = ?`, n, r.UID, r.Attempt)
}

// EndApart gives those of a run's procs that have ended as one proc, and have these numbers, the reason and the message
// of another.
func (tx *Tx) EndApart(r Run, numbers procset.Set, was, as Proc) error {
	for first, last := range numbers.Ranges() {
		_, err := tx.exec(`UPDATE htcjobs SET reason = ?, message = ? WHERE run = `+runID+` AND proc BETWEEN ? AND ?
			AND status = 7 AND reason = ? AND message = ?`,
			as.Reason, as.Message, r.UID, r.Attempt, first, last, was.Reason, was.Message)
		if err != nil {
			return fmt.Errorf("reword the ends of procs of run %s attempt %d: %w", r.UID, r.Attempt, err)
		}
	}
	return nil
}

// rowsMade returns how many procs of a factory's cluster have rows: the first.
func (tx *Tx) rowsMade(r Run) (rows int, counts Counts, err error) {
	if counts, err = tx.Counts(r.UID, r.Attempt); err != nil {
		return 0, counts, err
	}
	unmade := 0
	err = tx.queryRow(`SELECT unmade FROM runs WHERE uid = ? AND attempt = ?`, r.UID, r.Attempt).Scan(&unmade)
	return r.Procs - counts.Waiting - unmade, counts, err
}

// addRows adds rows for the procs of a factory's cluster from one place to another, which thereby are not unmade. They
// all are as one.
func (tx *Tx) addRows(r Run, from, to int, as Proc) error {
	if to <= from {
		return nil
	}
	_, err := tx.exec(
		`UPDATE runs SET unmade = min(unmade, ?) WHERE uid = ? AND attempt = ?`, r.Procs-to, r.UID, r.Attempt)
	if err != nil {
		return fmt.Errorf("record that procs of run %s attempt %d were made: %w", r.UID, r.Attempt, err)
	}
	const (
		into = ` INSERT INTO htcjobs (htcjobName, jobId, tempDir, run, proc, status, reason, message, source, changed)
			SELECT r.name, r.cluster || '.' || n.i, r.tempDir, r.id, n.number, ?, ?, ?, ?, ? FROM runs r, n WHERE r.id = ` + runID
		inOrder = `WITH RECURSIVE n(i, number) AS (SELECT ?1, ?1 UNION ALL SELECT i + 1, i + 1 FROM n WHERE i + 1 < ?2)`
		chosen  = `WITH n(i, number) AS (SELECT ? + key, value FROM json_each(?))`
	)
	with, args := inOrder, []any{from, to}
	if r.Sent != "" {
		numbers, err := r.Numbers()
		if err != nil {
			return err
		}
		text, err := json.Marshal(numbers.Numbers()[from:to])
		if err != nil {
			return err
		}
		with, args = chosen, []any{from, string(text)}
	}
	args = append(args, int(as.Status), as.Reason, as.Message, as.Source, millis(as.Changed), r.UID, r.Attempt)
	if _, err = tx.exec(with+into, args...); err != nil {
		return fmt.Errorf("insert procs of run %s attempt %d: %w", r.UID, r.Attempt, err)
	}
	return nil
}

// UpdateProc writes the mutable fields of a proc: Status and everything below it; ErrNotFound if there is no such row.
func (tx *Tx) UpdateProc(p Proc) (err error) {
	defer wrap(&err, "update proc %d of run %s attempt %d", p.Proc, p.UID, p.Attempt)
	return tx.change(`UPDATE htcjobs SET status = ?, jobStatus = ?, exitCode = ?, exitSignal = ?, reason = ?,
		message = ?, source = ?, absent = ?, changed = ?, checked = ?, fetched = ?, stderr = ?, usage = ? WHERE run = `+runID+` AND proc = ?`,
		int(p.Status), p.JobStatus, p.ExitCode, p.Signal, p.Reason, p.Message, p.Source, p.Absent,
		millis(p.Changed), millis(p.Checked), int(p.Fetched), p.Stderr, p.Usage, p.UID, p.Attempt, p.Proc)
}

// Proc returns one proc of a run, or ErrNotFound.
func (tx *Tx) Proc(uid string, attempt, proc int) (p Proc, err error) {
	defer wrap(&err, "proc %d of run %s attempt %d", proc, uid, attempt)
	return scanProc(tx.queryRow(selectProc+`WHERE r.uid = ? AND r.attempt = ? AND p.proc = ?`, uid, attempt, proc))
}

// ProcByJobID finds a proc of an HTCJob by the name in a callback; ErrNotFound also if jobID is no "cluster.proc". If
// two schedds gave the same cluster id to runs of one name, it returns the run with that token, otherwise the newer
// one: the caller must check the token.
func (tx *Tx) ProcByJobID(namespace, name, jobID string, tokenHash []byte) (p Proc, err error) {
	defer wrap(&err, "job %q of %s/%s", jobID, namespace, name)
	p, err = Proc{}, ErrNotFound
	if cluster, proc, ok := splitJobID(jobID); ok {
		var uid, sent string
		var attempt int
		err = tx.queryRow(
			`SELECT uid, attempt, sent FROM runs WHERE `+ofHTCJobs+` AND namespace = ? AND name = ? AND cluster = ?
			ORDER BY tokenHash IS ? DESC, id DESC LIMIT 1`,
			namespace,
			name,
			cluster,
			tokenHash,
		).Scan(
			&uid,
			&attempt,
			&sent,
		)
		if err == nil {
			p, err = tx.made(uid, attempt, sent, proc)
		}
	}
	return p, err
}

// made returns the proc that is a cluster's proc, and of which a callback tells: its factory may have made it since
// HTCondor was asked.
func (tx *Tx) made(uid string, attempt int, sent string, place int) (Proc, error) {
	number, err := numberOf(sent, place)
	if err != nil {
		return Proc{}, err
	}
	p, err := tx.Proc(uid, attempt, number)
	if !errors.Is(err, ErrNotFound) {
		return p, err
	}
	run, unknown := tx.Run(uid, attempt)
	if unknown != nil || run.Factory == 0 || run.State != Submitted || place >= run.Procs {
		return p, err
	}
	if err := tx.AddMade(run, place+1); err != nil {
		return p, err
	}
	return tx.Proc(uid, attempt, number)
}

// Procs returns the procs of a run that match f, in the order of their numbers. A run may have 100,000: ask in pages
// (From, Limit), each a Read of its own, since a Read delays commits.
func (tx *Tx) Procs(uid string, attempt int, f ProcFilter) (procs []Proc, err error) {
	defer wrap(&err, "procs of run %s attempt %d", uid, attempt)
	// The + 0 keeps SQLite from planning by the number: it would prepare the statement again whenever the number
	// changes.
	where := `WHERE r.uid = ? AND r.attempt = ? AND p.proc >= ? + 0`
	switch f.Status { // written out, not bound, so that the partial indexes can serve
	case StatusOpen:
		where += ` AND p.status = 1`
	case StatusSucceeded:
		where += ` AND p.status = 4`
	case StatusFailed:
		where += ` AND p.status = 7`
	}
	args := []any{uid, attempt, f.From}
	if f.JobStatus != 0 {
		where, args = where+` AND p.jobStatus = ?`, append(args, f.JobStatus)
	}
	if f.Unconfirmed {
		where += ` AND (p.status = 1 OR p.source = 'callback')`
	}
	if f.Unfetched {
		where += ` AND p.jobStatus = 4 AND p.fetched = 0`
	}
	if f.Reason != "" {
		where, args = where+` AND p.reason = ?`, append(args, f.Reason)
	}
	if f.Besides != "" {
		where, args = where+` AND p.reason <> ?`, append(args, f.Besides)
	}
	if f.Changed {
		where += ` AND NOT ` + unchanged
	}
	limit := f.Limit
	if limit <= 0 {
		limit = -1
	}
	return list(tx, scanProc, selectProc+where+` ORDER BY p.proc LIMIT ? + 0`, append(args, limit)...)
}

// OpenNumbers returns the numbers of a run's procs that have not ended, in order.
func (tx *Tx) OpenNumbers(uid string, attempt int) (numbers []int, err error) {
	defer wrap(&err, "open procs of run %s attempt %d", uid, attempt)
	return list(
		tx,
		one[int],
		`SELECT proc FROM htcjobs WHERE status = 1 AND run = `+runID+` ORDER BY proc`,
		uid,
		attempt,
	)
}

var scanProc = into(func(p *Proc) []any {
	return []any{
		&p.UID, &p.Attempt, &p.Namespace, &p.Name, &p.Cluster, &p.Proc, &p.ID, &p.Status, &p.JobStatus, &p.ExitCode,
		&p.Signal, &p.Reason, &p.Message, &p.Source, &p.Absent, (*moment)(&p.Changed), (*moment)(&p.Checked),
		&p.Fetched, &p.Stderr, &p.Usage,
	}
})

// splitJobID reads "cluster.proc" in the one form HTCondor prints: no sign, no
// leading zero, so that one job has one name.
func splitJobID(s string) (cluster, proc int, ok bool) {
	c, p, found := strings.Cut(s, ".")
	cluster, err1 := strconv.Atoi(c)
	proc, err2 := strconv.Atoi(p)
	ok = found && err1 == nil && err2 == nil && cluster > 0 && proc >= 0 &&
		strconv.Itoa(cluster) == c && strconv.Itoa(proc) == p
	return cluster, proc, ok
}
