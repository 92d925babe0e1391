package lifecycle

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
)

// Quota is the word of a quota outside of htcd (package kueue) about an object that is subject to one. The zero value
// is its consent.
type Quota struct {
	Waits           bool // nothing may be sent
	Stops           bool // and what has been sent is removed
	Most            int  // jobs that may be in HTCondor at a time; 0: any number
	Reason, Message string
}

// Takes returns what a job takes of a quota outside of htcd, of all its nodes together: at least a core of each, and of
// memory and GPUs what is asked for.
func Takes(asked *v1alpha1.Resources, nodes *int32) *v1alpha1.Resources {
	n, one := int64(1), &v1alpha1.Resources{}
	if nodes != nil {
		n = int64(*nodes)
	}
	if asked != nil {
		one = asked
	}
	cores := int64(1)
	if one.CPUs != nil {
		cores = max(1, one.CPUs.Value())
	}
	all := &v1alpha1.Resources{CPUs: resource.NewQuantity(n*cores, resource.DecimalSI)}
	if one.Memory != nil {
		all.Memory = new(one.Memory.DeepCopy())
		all.Memory.Mul(n)
	}
	if one.GPUs != nil {
		all.GPUs = resource.NewQuantity(n*one.GPUs.Value(), resource.DecimalSI)
	}
	return all
}

// ReasonQuotaAwaited is the reason while an HTCJob waits for quota, or has lost it.
const ReasonQuotaAwaited = "QuotaAwaited"

// suspends reports whether what has been sent is to be removed from HTCondor: by spec.suspend, or for want of quota.
func (s Situation) suspends() bool { return s.Job.Spec.Suspend || s.Quota != nil && s.Quota.Stops }

// Waits reports whether nothing may be sent: by spec.suspend, or for want of quota.
func (s Situation) Waits() bool { return s.Job.Spec.Suspend || s.Quota != nil && s.Quota.Waits }

// unadmitted reports whether it is the quota, and not spec.suspend, that an HTCJob waits for.
func (s Situation) unadmitted() bool { return !s.Job.Spec.Suspend && s.Quota != nil && s.Quota.Waits }

// Demand is what a quota outside of htcd has to know of an object.
type Demand struct {
	Of        string // changes with what is run: another spec, or a rerun
	Jobs      int    // that may be in HTCondor at a time
	Left      int    // of all that there are, those that have not ended for good: each may need a slot
	Alive     bool   // some of them may be in HTCondor
	Sent      bool   // HTCondor has them
	Over      bool   // nothing is to be sent any more
	Succeeded bool   // and all has gone well
	Told      bool   // and its status says so
	Settled   bool   // and its output is where it should be
}

// atATime returns how many of n jobs may be in HTCondor at a time, and how many there are as far as is known: what a
// table has is known once it is read.
func atATime(job *v1alpha1.HTCJob, n int) (most, all int) {
	switch p := job.Spec.Parallelism; {
	case p == nil:
		return n, n
	case job.Spec.ItemsFrom != nil:
		return int(*p), max(n, int(*p))
	default:
		return min(n, int(*p)), n
	}
}

// Demand returns what the newest attempt needs, or the next one if that is due.
func (s Situation) Demand() Demand {
	d := Demand{Of: s.Job.SpecHash() + " " + s.Job.Rerun()}
	d.Jobs, d.Left = atATime(s.Job, s.Job.Jobs())
	if s.Run == nil {
		return d
	}
	at := s.stage()
	d.Alive = at == begun || at == active || at == stopping
	d.Sent = d.Alive && s.Run.State == ledger.Submitted
	if d.Over = s.over(); d.Over {
		d.Succeeded = at == ended && s.succeeded()
		d.Told = s.Job.Status.Phase.Terminal() && int(s.Job.Status.Attempt) == s.Run.Attempt
		d.Settled = d.Told && !s.Unfetched && s.Pushes.Unpushed == 0 && !OwesOutput(s.Job.Status.Conditions)
	}
	if s.due() && s.changed() {
		return d
	}
	if s.Run.SpecHash != "" {
		d.Of = s.Run.SpecHash + " " + s.Run.Rerun
	}
	d.Jobs, _ = atATime(s.Job, s.Run.All())
	d.Left = s.Run.All() - s.Counts.Succeeded - s.Counts.Failed
	if s.Run.Stop == crosscheck.StopSuspended {
		d.Left += s.Stopped
	}
	return d
}

// DemandElsewhere returns what an HTCJob needs that runs in another cluster, as far as its status tells, which is
// copied from there. What has ended runs again only if the annotation asks for it: the spec's hash in the status may be
// that of another release of htcd.
func DemandElsewhere(job *v1alpha1.HTCJob) Demand {
	is, rerun := job.Status, job.Rerun()
	if is.Active > 0 {
		rerun = is.Rerun // what is active ends first
	}
	d := Demand{Of: job.SpecHash() + " " + rerun, Alive: is.Active > 0}
	d.Jobs, d.Left = atATime(job, job.Jobs())
	if rerun != is.Rerun {
		return d
	}
	d.Sent = d.Alive && is.ClusterID > 0
	d.Left -= int(is.Succeeded + is.Failed)
	d.Over = is.Phase.Terminal()
	d.Succeeded, d.Told = is.Phase == v1alpha1.PhaseSucceeded, d.Over
	d.Settled = d.Over && !OwesOutput(is.Conditions)
	return d
}
