package crosscheck

import (
	"encoding/json"
	"time"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/usage"
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

// CoreSeconds returns for how long the jobs of these rows had the cores that they had asked for, in their last
// execution: in seconds of one core. A row counts when the change is that HTCondor's word on the job's end came. What a
// job's owner can write into the ad is bounded by the age of the run.
func CoreSeconds(run ledger.Run, changes []Change, at time.Time) (sum int64) {
	said := func(p ledger.Proc) bool { return p.Status != ledger.StatusOpen && p.Source == FromHTCondor }
	for _, c := range changes {
		if said(c.Is) && !said(c.Was) {
			used := usage.Parse(c.Is.Usage)
			wall := min(used.Wall, int64(at.Sub(run.Created.Add(-drift)).Seconds()))
			sum += max(wall, 0) * min(max(used.AskedCPUs, 1), mostCores)
		}
	}
	return sum
}

// mostCores is more than any machine has.
const mostCores = 1 << 16
