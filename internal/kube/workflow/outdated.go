package workflow

import (
	"errors"
	"io/fs"
	"slices"

	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/ledger"
)

// outdated returns the first DAG that stays in the ledger, and how many attempts there are before it: those that are
// too old, and are nothing that a later one may resume.
func outdated(own []ledger.Run) (first, attempts int) {
	_, newest := Attempt(own, 0)
	keep := newest - sending.KeptAttempts
	if sent := lastSent(own, newest); sent > 0 {
		keep = min(keep, sent)
	}
	if attempts = keep - own[0].Earlier - 1; attempts <= 0 {
		return 0, 0
	}
	dags, _ := Attempt(own, keep)
	return dags[0].Attempt, attempts
}

// dropOutdated deletes the rows of old attempts of the workflow of which a DAG has just been begun.
func dropOutdated(tx *ledger.Tx, begun ledger.Run) error {
	runs, err := tx.Runs(ledger.RunFilter{Kind: ledger.Workflows, Namespace: begun.Namespace, Name: begun.Name})
	if err != nil {
		return err
	}
	own := slices.DeleteFunc(runs, func(run ledger.Run) bool { return run.UID != begun.UID })
	first, attempts := outdated(own)
	if attempts == 0 {
		return nil
	}
	return tx.DropDAGs(begun.UID, first, attempts)
}

// dropReplaced drops the output of earlier attempts once the newest has ended and its own is here.
func (c *Controller) dropReplaced(s Situation) error {
	if c.Output.Root == "" || s.Workflow.DeletionTimestamp != nil || s.lost() || !s.over() || s.Unfetched ||
		s.Pushes.Unpushed > 0 {
		return nil
	}
	attempts, err := c.Output.Attempts(s.Workflow.Namespace, s.Workflow.Name)
	newest := attemptOf(s.Workflow, s.Attempt)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || !slices.Contains(attempts, newest) {
		return err
	}
	return c.Output.DropBefore(newest)
}
