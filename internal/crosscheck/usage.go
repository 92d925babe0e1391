package crosscheck

import (
	"encoding/json"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/usage"
)

// usageOf sums up what the jobs of a run used, all of whose ends HTCondor has confirmed.
func usageOf(tx *ledger.Tx, run ledger.Run) (string, error) {
	var tally usage.Tally
	err := tx.Usage(run.UID, run.Attempt, 0, 0, func(proc int, used string) {
		if used != "" {
			tally.Add(proc, usage.Parse(used))
		}
	})
	sum := tally.Usage()
	if err != nil || sum == nil { // a restored run may know it from the status alone
		return run.Usage, err
	}
	text, err := json.Marshal(sum)
	return string(text), err
}
