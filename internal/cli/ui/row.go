package ui

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// row is a line of a list.
type row struct {
	ref
	Link    string // below the base
	Phase   string
	Look    look // of the phase
	Counts  counts
	Of      string // what the counts are of how many
	Note    string // why it does not go on, or how it ended
	Created time.Time
}

// ID is that of its element.
func (r row) ID() string { return string(r.Kind) + ":" + r.Namespace + "/" + r.Name }

// rowOf shows an object.
func rowOf(v version) row {
	r := row{ref: v.ref, Link: linkTo(v.ref)}
	switch o := v.object.(type) {
	case *v1alpha1.HTCJob:
		r.Phase, r.Created, r.Counts = phase(o.Status.Phase), o.CreationTimestamp.Time, countsOf(o)
		r.Note = note(o.Status.Reason, o.Status.Message)
		r.Of = number(o.Jobs(), "job")
	case *v1alpha1.HTCWorkflow:
		r.Phase, r.Created, r.Counts = phase(o.Status.Phase), o.CreationTimestamp.Time, countsOfNodes(o.Status.Nodes)
		r.Note = note(o.Status.Reason, o.Status.Message)
		r.Of = fmt.Sprintf("%s, %s", number(len(o.Spec.Steps), "step"), number(int(o.Status.Nodes.Total), "node"))
	case *v1alpha1.HTCPool:
		s := o.Status
		r.Phase, r.Created = string(o.Spec.State), o.CreationTimestamp.Time
		r.Counts = counts{Idle: int(s.Idle), Running: int(s.Running), Held: int(s.Held)}
		r.Of = openOf(o)
		if c := meta.FindStatusCondition(
			s.Conditions,
			v1alpha1.PoolAccepting,
		); c != nil &&
			c.Reason != v1alpha1.PoolAccepting {
			r.Note = note(c.Reason, c.Message)
		}
	}
	r.Look = lookOfPhase(r.Phase)
	return r
}

func linkTo(r ref) string {
	if r.Kind == pools {
		return "/pool/" + r.Name
	}
	return "/" + string(r.Kind) + "/" + r.Namespace + "/" + r.Name
}

// phase is Pending before htcd has seen the object.
func phase(p v1alpha1.Phase) string {
	if p == "" {
		return string(v1alpha1.PhasePending)
	}
	return string(p)
}

// lookOfPhase is that of the state which a phase, or the state of a pool, resembles.
func lookOfPhase(p string) look {
	switch v1alpha1.Phase(p) {
	case v1alpha1.PhaseSucceeded, v1alpha1.Phase(v1alpha1.PoolOnline):
		return lookOf(aggregate.NodeDone)
	case v1alpha1.PhaseFailed, v1alpha1.PhaseRemoved:
		return lookOf(aggregate.NodeFailed)
	case v1alpha1.PhaseRunning:
		return lookOf(aggregate.NodeRunning)
	case v1alpha1.PhaseHeld, v1alpha1.PhaseSuspended, v1alpha1.Phase(v1alpha1.PoolDraining):
		return lookOf(aggregate.NodeHeld)
	case v1alpha1.PhaseIdle:
		return lookOf(aggregate.NodeIdle)
	}
	return lookOf(aggregate.NodeWaiting)
}

// note is a reason and its sentence.
func note(reason, message string) string {
	if reason == "" || message == "" {
		return reason + message
	}
	return reason + ": " + message
}

func openOf(p *v1alpha1.HTCPool) string {
	text := fmt.Sprintf("%d open", p.Status.Open)
	if l := p.Spec.Limits; l != nil && l.MaxOpen != nil {
		text += fmt.Sprintf(" of %d", *l.MaxOpen)
	}
	if p.Status.Waiting > 0 {
		text += fmt.Sprintf(", %s waiting", number(int(p.Status.Waiting), "HTCJob"))
	}
	return text
}

// number counts things.
func number(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}
