package poolcontrol

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/admission"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
)

// view is what the status of a pool is made of.
type view struct {
	load    admission.Load
	schedds []reached // the pool's
	wrong   error     // what is wrong with the pool
	inUse   string    // the pool of HTCJobs that name none
	now     time.Time
}

// The reasons of the condition Accepting, besides those of admission.Load.
const (
	reasonAccepting   = "Accepting"
	reasonInvalid     = "PoolInvalid"
	reasonUnreachable = "Unreachable"
	reasonTooManyHeld = "TooManyHeld"
)

// newStatus returns the whole status of a pool. It is pure; conditions keep the time of their last change.
func newStatus(p *v1alpha1.HTCPool, v view) v1alpha1.HTCPoolStatus {
	n := v.load
	s := v1alpha1.HTCPoolStatus{
		Idle:               int32(n.Idle),
		Running:            int32(n.Running),
		Held:               int32(n.Held),
		Open:               int32(n.Open),
		Waiting:            int32(n.Waiting),
		ObservedGeneration: p.Generation,
		Conditions:         slices.Clone(p.Status.Conditions),
	}
	for _, at := range n.Namespaces[:min(len(n.Namespaces), v1alpha1.MaxPoolNamespaces)] {
		s.Namespaces = append(
			s.Namespaces,
			v1alpha1.PoolNamespace{Name: at.Name, Open: int32(at.Open), Waiting: int32(at.Waiting)},
		)
	}
	set := lifecycle.Sets(&s.Conditions, &s.ObservedGeneration, v.now)
	is, reason, message := reachable(v.schedds)
	set(v1alpha1.PoolReachable, is, reason, message)
	if message := slowed(v.schedds); message != "" {
		set(v1alpha1.PoolSlowed, metav1.ConditionTrue, "ScheddBusy", message)
	} else {
		meta.RemoveStatusCondition(&s.Conditions, v1alpha1.PoolSlowed)
	}
	is, reason, message = accepting(p, v)
	set(v1alpha1.PoolAccepting, is, reason, message)
	switch {
	case !p.Spec.Default:
		meta.RemoveStatusCondition(&s.Conditions, v1alpha1.PoolDefault)
	case v.inUse == p.Name:
		set(v1alpha1.PoolDefault, metav1.ConditionTrue, "InUse", "HTCJobs that name no pool use this one")
	default:
		set(
			v1alpha1.PoolDefault,
			metav1.ConditionFalse,
			"OlderDefault",
			fmt.Sprintf(
				"HTCJobs that name no pool use %s, the oldest pool with spec.default: set it to false there or here",
				v.inUse,
			),
		)
	}
	return s
}

// accepting says whether HTCJobs are sent. What an administrator has decided comes before what happens.
func accepting(p *v1alpha1.HTCPool, v view) (is metav1.ConditionStatus, reason, message string) {
	no := metav1.ConditionFalse
	decided := p.Spec.State == v1alpha1.PoolDraining || p.Spec.State == v1alpha1.PoolSuspended
	switch most := maxHeld(p); {
	case v.wrong != nil:
		return no, reasonInvalid, v.wrong.Error()
	case decided && v.load.Reason != "":
		return no, v.load.Reason, v.load.Message
	case decided: // the admission has not seen it yet
		return no, string(p.Spec.State), fmt.Sprintf("spec.state is %s: nothing new is sent", p.Spec.State)
	case most >= 0 && v.load.Held-v.load.HeldByPool > most:
		return no, reasonTooManyHeld, fmt.Sprintf(
			"%s on hold, more than maxHeld, %d: namespaces with more than their share of these are sent nothing until the cause is mended and they are released or removed",
			lifecycle.IsOrAre(v.load.Held-v.load.HeldByPool, "job"),
			most,
		)
	}
	if r, _, m := reachable(v.schedds); r == no {
		return no, reasonUnreachable, m
	}
	if v.load.Reason != "" {
		return no, v.load.Reason, v.load.Message
	}
	return metav1.ConditionTrue, reasonAccepting, "HTCJobs are sent"
}

// maxHeld returns the limit of held jobs, -1 without one.
func maxHeld(p *v1alpha1.HTCPool) int {
	if l := p.Spec.Limits; l != nil && l.MaxHeld != nil {
		return int(*l.MaxHeld)
	}
	return -1
}

// slowed returns which schedds are asked less than usual, and why; "" if none is.
func slowed(all []reached) string {
	var said []string
	for _, r := range all {
		if r.Slowed != "" {
			said = append(said, fmt.Sprintf("schedd %s: %s; htcd asks it less: %s", r.at, r.Slowed, r.Pace))
		}
	}
	return strings.Join(said, "; ")
}

// reachable says whether a pool's schedds answer; one that does is enough.
func reachable(all []reached) (is metav1.ConditionStatus, reason, message string) {
	var up, asked int
	var silent string
	for _, r := range all {
		switch {
		case r.Asked && !r.Down:
			asked, up = asked+1, up+1
		case r.Asked:
			asked, silent = asked+1, fmt.Sprintf("schedd %s: %s", r.at, r.Message)
		}
	}
	switch {
	case asked == 0:
		return metav1.ConditionUnknown, "NotAsked", "no schedd of this pool has been asked yet"
	case up == 0:
		return metav1.ConditionFalse, reasonUnreachable, silent
	case up < asked:
		return metav1.ConditionTrue, "SomeAnswer", fmt.Sprintf("%d of %d schedds answer; %s", up, len(all), silent)
	case up == 1:
		return metav1.ConditionTrue, "Answered", "the schedd answered when last asked"
	}
	return metav1.ConditionTrue, "Answered", fmt.Sprintf("%d of %d schedds answered when last asked", up, len(all))
}
