package workflow

import (
	"context"
	"fmt"
	"strings"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

// mostNamed is how many bytes of names of failed nodes finally is told.
const mostNamed = 4000

// ended returns the variables with which finally is told how the steps before it have ended. They follow from rows that
// no longer change.
func (c *Controller) ended(ctx context.Context, s Situation) (string, error) {
	outcome, count := v1alpha1.PhaseFailed, 0
	if s.succeededBefore() {
		outcome = v1alpha1.PhaseSucceeded
	}
	var names []string
	room := mostNamed
	err := c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		for _, d := range s.DAGs {
			if d.Run.State != ledger.Submitted {
				continue
			}
			count += d.failed()
			failed, err := tx.Nodes(d.Run.UID, d.Run.Attempt, ledger.NodeFilter{State: ledger.NodeFailed, Limit: 200})
			if err != nil {
				return err
			}
			for _, n := range failed {
				name := s.nameOf(n)
				if room -= len(name) + 1; room < 0 {
					return nil
				}
				names = append(names, name)
			}
		}
		return nil
	})
	return fmt.Sprintf(
		"HTC_OUTCOME=%s\nHTC_FAILED_COUNT=%d\nHTC_FAILED=%s\n",
		outcome,
		count,
		strings.Join(names, " "),
	), err
}
