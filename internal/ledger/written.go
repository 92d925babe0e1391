package ledger

// Destination is where an output of a run goes if it is not only brought back. {proc} stands for the proc's number in
// URL and Artifact, one of which is empty.
type Destination struct {
	Number   int // in spec.outputs, from 0
	Path     string
	URL      string // to which the execute node writes it
	Artifact string // to which it is pushed once it has been brought back
}

// Written is an output of one proc that was written elsewhere, or is to be.
type Written struct {
	Destination
	Proc   int
	Size   int64  // in bytes; UnknownSize
	Digest string // empty: not known
	Push   Push
	Note   string // why it is NotPushed
}

// UnknownSize is the size of an output of which it is not known.
const UnknownSize = -1

// Push is the state of an output that is pushed.
type Push int

const (
	ByNode    Push = 0 // the execute node has written it
	Unpushed  Push = 1
	Pushed    Push = 2
	NotPushed Push = 3 // it cannot be pushed
)

// PushCounts describes how many outputs of a run are in which state. Only runs with destinations of that kind have Any.
type PushCounts struct {
	Any                         bool
	Unpushed, Pushed, NotPushed int
	Note                        string // of one of those that are NotPushed
}

// SetDestinations replaces the destinations of a run, which must be in the ledger (ErrNotFound).
func (tx *Tx) SetDestinations(uid string, attempt int, all []Destination) (err error) {
	defer wrap(&err, "destinations of run %s attempt %d", uid, attempt)
	_, err = tx.exec(`DELETE FROM destinations WHERE run = `+runID, uid, attempt)
	for _, d := range all {
		if err != nil {
			break
		}
		err = tx.change(
			`INSERT INTO destinations (run, number, path, url, artifact) SELECT id, ?, ?, ?, ? FROM runs WHERE uid = ? AND attempt = ?`,
			d.Number,
			d.Path,
			d.URL,
			d.Artifact,
			uid,
			attempt,
		)
	}
	return err
}

// SetWritten records what a proc has written to a destination: the number, the size, the digest and the state of the
// push. What has no destination is not recorded.
func (tx *Tx) SetWritten(uid string, attempt int, w Written) (err error) {
	defer wrap(&err, "output %d of proc %d of run %s attempt %d", w.Number, w.Proc, uid, attempt)
	_, err = tx.exec(`INSERT INTO written (run, number, proc, size, digest, push, note)
		SELECT run, number, ?, ?, ?, ?, ? FROM destinations WHERE run = `+runID+` AND number = ? AND (url <> '') = (? = 0)
		ON CONFLICT (run, proc, number) DO UPDATE SET size = excluded.size, digest = excluded.digest, push = excluded.push, note = excluded.note`,
		w.Proc, w.Size, w.Digest, int(w.Push), w.Note, uid, attempt, w.Number, int(w.Push))
	return err
}

// ExpectWritten records that a proc has written everything that goes to URLs, and that the rest is to be pushed, or, if
// its output is not here, why it cannot be. Sizes and digests of the former that are known stay.
func (tx *Tx) ExpectWritten(uid string, attempt, proc int, whyNot string) (err error) {
	defer wrap(&err, "outputs of proc %d of run %s attempt %d", proc, uid, attempt)
	_, err = tx.exec(`INSERT INTO written (run, number, proc, size, digest, push, note)
		SELECT run, number, ?, -1, '', iif(artifact = '', 0, iif(? = '', 1, 3)), iif(artifact = '', '', ?) FROM destinations WHERE run = `+runID+`
		ON CONFLICT (run, proc, number) DO UPDATE SET size = -1, digest = '', push = excluded.push, note = excluded.note WHERE push > 0`,
		proc, whyNot, whyNot, uid, attempt)
	return err
}

const selectWritten = `SELECT d.number, d.path, d.url, d.artifact, w.proc, w.size, w.digest, w.push, w.note
	FROM written w JOIN destinations d ON d.run = w.run AND d.number = w.number
	JOIN htcjobs p ON p.run = w.run AND p.proc = w.proc AND p.status = 4 WHERE w.run = ` + runID

// Written returns the first outputs of the procs of a run that have succeeded and written them elsewhere, in the order
// of the procs.
func (tx *Tx) Written(uid string, attempt, limit int) (all []Written, err error) {
	defer wrap(&err, "outputs of run %s attempt %d", uid, attempt)
	return list(
		tx,
		scanWritten,
		selectWritten+` AND w.push IN (0, 2) ORDER BY w.proc, w.number LIMIT ?`,
		uid,
		attempt,
		limit,
	)
}

// NextPush returns the first output of a run that is to be pushed, in the order of their numbers, beginning with the
// given one; ErrNotFound if there is none.
func (tx *Tx) NextPush(uid string, attempt, from int) (w Written, err error) {
	defer wrap(&err, "next push of run %s attempt %d", uid, attempt)
	return scanWritten(
		tx.queryRow(
			selectWritten+` AND w.push = 1 AND w.number >= ? ORDER BY w.number, w.proc LIMIT 1`,
			uid,
			attempt,
			from,
		),
	)
}

// Pushes counts the outputs of a run that are pushed. What a job of an HTCJob left that has then run again, and failed,
// is not to be pushed any more.
func (tx *Tx) Pushes(uid string, attempt int) (c PushCounts, err error) {
	defer wrap(&err, "count pushes of run %s attempt %d", uid, attempt)
	err = tx.queryRow(`SELECT EXISTS (SELECT 1 FROM destinations WHERE run = r.id AND artifact <> ''),
			(SELECT count(*) FROM written w WHERE w.run = r.id AND w.push = 1 AND (r.kind = 'workflow'
				OR EXISTS (SELECT 1 FROM htcjobs p WHERE p.run = w.run AND p.proc = w.proc AND p.status = 4))),
			(SELECT count(*) FROM written WHERE run = r.id AND push = 3),
			coalesce((SELECT note FROM written WHERE run = r.id AND push = 3 LIMIT 1), '')
		FROM runs r WHERE r.uid = ? AND r.attempt = ?`, uid, attempt).Scan(&c.Any, &c.Unpushed, &c.NotPushed, &c.Note)
	if err == nil && c.Any && c.Unpushed == 0 {
		err = tx.queryRow(`SELECT count(*) FROM written WHERE run = `+runID+` AND push = 2`, uid, attempt).
			Scan(&c.Pushed)
	}
	return c, err
}

// UnpushedRuns returns the runs of HTCJobs with outputs that are to be pushed.
func (tx *Tx) UnpushedRuns() (runs []Run, err error) {
	defer wrap(&err, "runs with outputs to be pushed")
	return list(
		tx,
		scanRun,
		`SELECT `+runColumns+` FROM runs WHERE `+ofHTCJobs+` AND id IN (SELECT run FROM written WHERE push = 1) ORDER BY id`,
	)
}

var scanWritten = into(func(w *Written) []any {
	return []any{&w.Number, &w.Path, &w.URL, &w.Artifact, &w.Proc, &w.Size, &w.Digest, &w.Push, &w.Note}
})
