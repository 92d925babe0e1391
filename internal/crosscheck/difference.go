package crosscheck

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// Difference is one deviation from what HTCondor, or the ledger, says.
type Difference struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	JobID     string `json:"jobid,omitempty"` // empty for the HTCJob's status
	Was       string `json:"was"`
	Is        string `json:"is"`
	Evidence  string `json:"evidence"`
	Repaired  bool   `json:"repaired"`
}

// maxProcs limits the procs whose rows are in memory at once, about 400 bytes each.
const maxProcs = 100_000

// Reconcile compares runs with the schedds, including ended procs that the queue or history still knows. It reports
// every difference in order and repairs the ledger unless dry is set. checked is the number of procs compared.
func (c *Checker) Reconcile(
	ctx context.Context,
	runs []ledger.Run,
	dry bool,
	found func(Difference),
) (checked int, err error) {
	return c.InOrder(ctx, runs, func(id schedd.Identity, g backend.Group) (checked int, err error) {
		_, err = InParts(Parts(g.Runs, len(g.Runs), maxProcs, procsOf), func(some []ledger.Run) (bool, error) {
			answered, err := c.reconcileSome(ctx, id, g.Target, some, dry, found)
			if answered {
				for _, run := range some {
					checked += run.Procs
				}
			}
			return answered, err
		})
		return checked, err
	})
}

func (c *Checker) reconcileSome(
	ctx context.Context,
	id schedd.Identity,
	t backend.Target,
	runs []ledger.Run,
	dry bool,
	found func(Difference),
) (answered bool, err error) {
	at := c.Now()
	all, err := c.askQueue(ctx, id, runs, everything, &look{}, at)
	if err != nil {
		return false, err
	}
	if err := c.askHistory(ctx, id, all, Mark{}, at, nil); err != nil {
		return false, err
	}
	c.started(ctx, id, t)
	if err := c.doubt(ctx, all, &look{target: t}, at); err != nil {
		return false, err
	}
	var errs []error
	for _, run := range runs {
		k := all[keyOf(run)]
		c.Observer.Unread(k.run, k.unread)
		k.miss(at)
		k.judgeUnstaged()
		if !dry {
			if err := c.repair(ctx, k, at); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		for _, d := range k.differences() {
			d.Repaired = d.Repaired && !dry
			found(d)
		}
	}
	return true, errors.Join(errs...)
}

// repair does for one run what a cross-check would do.
func (c *Checker) repair(ctx context.Context, k *comparison, at time.Time) error {
	if k.stuck {
		if err := c.Observer.Stuck(ctx, k.run); err != nil {
			return fmt.Errorf("remove cluster %d: %w", k.run.Cluster, err)
		}
	}
	if k.run.Confirmed && len(k.observed) == 0 {
		return nil
	}
	defer c.Observer.Checked(k.run)
	return c.write(ctx, k, at)
}

// differences lists how the run and its rows differ from what HTCondor says. Repaired is false if the repair has to
// wait.
func (k *comparison) differences() (all []Difference) {
	tell := func(jobID, was, is, evidence string, repaired bool) {
		all = append(
			all,
			Difference{
				Namespace: k.run.Namespace,
				Name:      k.run.Name,
				JobID:     jobID,
				Was:       was,
				Is:        is,
				Evidence:  evidence,
				Repaired:  repaired,
			},
		)
	}
	cluster := fmt.Sprint(k.run.Cluster)
	switch {
	case k.neverRan:
		tell(
			cluster,
			"Submitted",
			"NeverRan",
			"its files never arrived at the schedd, which has thrown it out; htcd sends it as the next attempt",
			true,
		)
		return all
	case k.stuck:
		tell(
			cluster,
			"Submitted",
			"HalfSpooled",
			"condor_q: files will never arrive (JobStatus 5, HoldReasonCode 16, no StageInFinish); "+
				"the jobs that wait for them are to be removed, and the cluster is sent again if no job of it ran",
			true,
		)
	}
	for _, proc := range slices.Sorted(maps.Keys(k.observed)) {
		o := k.observed[proc]
		was := k.rows[proc]
		if !o.absent {
			was = *o.read
		}
		is, _ := o.Apply(was)
		if before, after := Word(was), Word(is); before != after && !BecameIdle(was, is) {
			tell(is.JobID(), before, after, o.evidence, true)
		}
	}
	for _, proc := range slices.Sorted(maps.Keys(k.rows)) {
		was := k.rows[proc]
		is := was
		if o, changed := k.observed[proc]; changed {
			is, _ = o.Apply(was)
		}
		if was.Status == ledger.StatusOpen && is.Status == ledger.StatusOpen {
			tell(was.JobID(), Word(was), "Absent", NotYetLost, false)
		}
	}
	return all
}

// BecameIdle reports whether a row only learns that its job is idle, which it counts as already.
func BecameIdle(was, is ledger.Proc) bool {
	return was.Status == ledger.StatusOpen && was.JobStatus == 0 && is.JobStatus == int(condor.Idle)
}

// Word returns what a row says about its job.
func Word(p ledger.Proc) string {
	switch p.Status {
	case ledger.StatusOpen:
		switch now := condor.JobStatus(p.JobStatus); now {
		case condor.Idle, condor.Running, condor.Held, condor.TransferringOutput, condor.Suspended:
			return now.String()
		}
		return "Active"
	case ledger.StatusSucceeded:
		return "Succeeded"
	case ledger.StatusFailed:
		switch {
		case p.ExitCode != nil:
			return fmt.Sprintf("Failed (exit code %d)", *p.ExitCode)
		case p.Signal != nil:
			return fmt.Sprintf("Failed (signal %d)", *p.Signal)
		case p.Reason != "":
			return "Failed (" + p.Reason + ")"
		}
		return "Failed"
	}
	return fmt.Sprintf("status %d", p.Status)
}

// NoTrace is the evidence for an absence, NotYetLost that for the first.
const NoTrace = "neither condor_q nor condor_history shows it"

var NotYetLost = fmt.Sprintf(
	"%s; still so after %s, or %s while there is reason to doubt it, it is failed as Lost",
	NoTrace,
	LostAfter,
	LostAfterMany,
)

// Evidence returns what an ad that the named tool showed says about its job.
func Evidence(tool string, j condor.Job) string {
	s := fmt.Sprintf("%s: JobStatus %d (%s)", tool, j.Status, j.Status)
	switch o := j.Outcome(); {
	case j.Held():
		s += ", " + Ad(j, time.Time{}).hold
	case o.State != condor.OutcomeOpen:
		s += ", " + o.Message
	case j.RemoteHost != "":
		s += ", on " + j.RemoteHost
	}
	return s
}
