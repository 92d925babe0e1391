package kube

import (
	"fmt"
	"strings"
	"time"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

// What a job's owner writes into its ad decides how long HTCondor's reasons are, and may make the ad unreadable. Reasons are asked
// for where they are news; of an ad that cannot be read its own HTCJob alone hears.

// unjudged reports whether a job that is asked about cannot be judged without HTCondor's reasons: one that was removed, or one
// that is held and was not when it was last asked about, or was for something else.
func unjudged(checked map[runKey]*checking, j schedd.Job, how pass) bool {
	k := checked[runKey{j.Cluster, j.Tag.UID, j.Tag.Attempt}]
	if k == nil || j.Reasoned || j.Status != schedd.Removed && !j.Held() {
		return false
	}
	p, open := k.open[j.Proc]
	if _, steady := k.steady[j.Proc]; !open && !steady {
		return false
	}
	return !(j.Held() && !how.all && heldAsBefore(p, j) && time.Unix(j.EnteredCurrentStatus, 0).Before(k.run.Checked.Add(-settling)))
}

// heldAsBefore reports whether the ledger says that the job is held with the same code.
func heldAsBefore(p ledger.Proc, j schedd.Job) bool {
	return p.Status == ledger.StatusOpen && p.JobStatus == jobHeld && p.Reason == "Held" && strings.Contains(p.Message, holdCode(j))
}

// holdCode is what follows the reason.
func holdCode(j schedd.Job) string {
	return fmt.Sprintf(" (hold code %d/%d)", j.HoldReasonCode, j.HoldReasonSubCode)
}

// tellUnread tells of jobs whose ads cannot be had or read: whoever looks at the metrics each time, the user once.
func (c *Controller) tellUnread(k *checking) {
	key := k.run.Namespace + "/" + k.run.Name
	if len(k.unread) == 0 {
		c.unread.clear(key)
		return
	}
	c.Told.unread(len(k.unread))
	t := trouble{reason: "AdUnreadable", message: fmt.Sprintf("HTCondor's ad of job %s cannot be had or read, perhaps because of a very long attribute: "+
		"how it goes on with it is not known. Mend it with condor_qedit, or remove it", shorten(strings.Join(k.unread, ", "), maxShown))}
	if !c.unread.set(key, t) {
		return
	}
	c.Log.Warn().Str("job", key).Strs("jobs", k.unread[:min(len(k.unread), 10)]).Msg("ads that cannot be had or read")
	if job := c.get(key); job != nil {
		c.Events.Warning(job, t.reason, t.message)
	}
}
