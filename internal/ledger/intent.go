package ledger

import (
	"errors"
	"time"
)

// ErrWentOn says that another htcd, which led meanwhile, has continued with the run.
var ErrWentOn = errors.New("another htcd has gone on with this attempt")

// UpdateIntent writes a run only while the ledger has it as an open intent: a process that was suspended before this
// write and has lost the Lease must not overwrite what the next leader recorded. It writes the next submission, or the
// intent's end, and a refusal (SetUnsent) says nothing of either.
func (tx *Tx) UpdateIntent(r Run) error {
	now, err := tx.Run(r.UID, r.Attempt)
	if err != nil {
		return err
	}
	if now.State != Intent {
		return ErrWentOn
	}
	r.Unsent = false
	return tx.UpdateRun(r)
}

// SetUnsent records that the newest submission of an intent left nothing at the schedd, unless another htcd, which
// leads now, has begun one with a token of its own.
func (tx *Tx) SetUnsent(r Run) (err error) {
	defer wrap(&err, "record what became of run %s attempt %d", r.UID, r.Attempt)
	_, err = tx.exec(
		`UPDATE runs SET unsent = 1 WHERE uid = ? AND attempt = ? AND state = ? AND tokenHash = ?`,
		r.UID, r.Attempt, Intent, r.TokenHash,
	)
	return err
}

// Reopen makes a run of which nothing ran an open intent again, without rows of procs. It keeps its cluster until it
// has another.
func (tx *Tx) Reopen(r Run) (err error) {
	defer wrap(&err, "reopen run %s attempt %d", r.UID, r.Attempt)
	r.State, r.Ended, r.Submitted, r.Confirmed = Intent, time.Time{}, time.Time{}, false
	if err := tx.UpdateRun(r); err != nil {
		return err
	}
	_, err = tx.exec(`DELETE FROM htcjobs WHERE run = `+runID, r.UID, r.Attempt)
	return err
}

// RefuseRun records a run that is refused, whether its intent has been written or not.
func (tx *Tx) RefuseRun(r Run) error {
	if err := tx.InsertRun(r); !errors.Is(err, ErrExists) {
		return err
	}
	return tx.UpdateIntent(r)
}
