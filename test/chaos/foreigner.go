package chaos

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// bigAd is a job that HTCondor holds with a reason of some MB. It has a tag like htcd's, but of no HTCJob.
const bigAd = `executable = /bin/true
transfer_executable = false
+HTCJobUID = "foreign"
+HTCJobAttempt = 1
+Big = "%s"
requirements = false
periodic_hold = true
periodic_hold_reason = strcat(%s)
queue
`

const foreign = `HTCJobUID == "foreign"`

// send sends such a job as alice.
func (p *Player) send(ctx context.Context) error {
	const times = 275
	description := fmt.Sprintf(
		bigAd,
		strings.Repeat("x", 62_000),
		strings.TrimSuffix(strings.Repeat("Big, ", times), ", "),
	)
	return p.until(ctx, func() error {
		_, err := p.Lab.RunInput(
			ctx,
			description,
			"lab",
			"as",
			"alice",
			"sh",
			"-c",
			"cd /tmp && condor_submit -spool -terse",
		)
		return err
	})
}

// remove removes all of them. Their reasons must not get into the history: HTCondor discards its oldest part after some
// MB.
func (p *Player) remove(ctx context.Context) error {
	return p.until(context.WithoutCancel(ctx), func() error {
		_, err := p.Lab.RunAs(ctx, "alice", "sh", "-c",
			`left=$(condor_q -allusers -constraint "$1" -af ClusterId) && if [ -n "$left" ]; then
			condor_qedit -constraint "$1" HoldReason '"over"' && condor_rm -constraint "$1"; exit 1; fi`, "sh", foreign)
		return err
	})
}

// until repeats something until it succeeds or has failed for too long: the schedd may be down.
func (p *Player) until(ctx context.Context, do func() error) error {
	for deadline := time.Now().Add(patience(0)); ; {
		err := do()
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		p.Log("again: %.300v", err)
		sleep(ctx, time.Second)
	}
}
