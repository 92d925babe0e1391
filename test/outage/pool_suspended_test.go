package outage

import (
	"strings"
	"testing"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// What a pool's state asks for is done however often htcd and the schedd are away.
func TestASuspendedPoolIsFollowedAcrossOutages(t *testing.T) {
	o := begin(t)
	pool := o.Pool("", "{}")
	turn := func(state string) { o.EditPool(pool, "{state: "+state+"}") }
	o.Create("waits", "exit 0\n", trial.Queue(2), func(job *v1alpha1.HTCJob) {
		job.Spec.Pool, job.Spec.Requirements = &v1alpha1.Pool{Name: pool}, "Memory > 99999999"
	})
	waits := o.Until("waits", "idle in HTCondor", func(job *v1alpha1.HTCJob) bool { return job.Status.Idle == 2 })
	both := func(constraint string) {
		t.Helper()
		o.Eventually(
			func() bool { return len(o.Condor("condor_q", trial.Tagged(waits)+" && "+constraint)) == 2 },
			func() string {
				return strings.Join(o.Condor("condor_q", trial.Tagged(waits), "JobStatus", "HoldReasonSubCode"), "\n")
			},
		)
	}
	const held, idle = "JobStatus == 5 && HoldReasonCode == 1 && HoldReasonSubCode == 7284", "JobStatus == 1"

	o.do(o.part("schedd").Stop)
	turn("Suspended")
	o.do(o.part("htcd").Kill)
	o.do(o.part("htcd").Start)
	o.do(o.part("schedd").Start)
	both(held)

	o.do(o.part("htcd").Kill)
	turn("Online")
	o.do(o.part("htcd").Start)
	both(idle)

	// Killed as soon as something is held, before it is in the ledger.
	turn("Suspended")
	both(held)
	o.do(o.part("htcd").Kill)
	turn("Online")
	o.do(o.part("htcd").Start)
	both(idle)
}
