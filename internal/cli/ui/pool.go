package ui

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// poolView is the page about an HTCPool.
type poolView struct {
	ref
	Phase      string
	Look       look
	Note       string
	Counts     counts
	Limits     []full
	Namespaces []full
	Waiting    []row
	More       int
	Facts      []fact
	Conditions []told
	Sorry      []string
}

// full is how much of a limit is used.
type full struct {
	Name string
	Used int32
	Most *int32 // nil: there is none
	Says string
}

// Bar is it drawn.
func (f full) Bar() []segment {
	if f.Most == nil || *f.Most <= 0 || f.Used <= 0 {
		return nil
	}
	state := aggregate.NodeRunning
	if f.Used >= *f.Most {
		state = aggregate.NodeHeld
	}
	return []segment{{state, 0, min(100, 100*float64(f.Used)/float64(*f.Most))}}
}

// mostWaiting is how many HTCJobs that wait are listed.
const mostWaiting = 100

func (s *Server) showPool(_ context.Context, r ref, object any, _ url.Values) shown {
	return shown{r.Name, s.base().pool(viewOfPool(r, object.(*v1alpha1.HTCPool), s.store.since(jobs, 0).of))}
}

// viewOfPool is pure; all are the HTCJobs that the user may see.
func viewOfPool(r ref, p *v1alpha1.HTCPool, all []version) poolView {
	s, spec := p.Status, p.Spec
	shown := rowOf(version{ref: r, object: p})
	v := poolView{
		ref:        r,
		Phase:      shown.Phase,
		Look:       shown.Look,
		Note:       shown.Note,
		Counts:     shown.Counts,
		Conditions: tell(s.Conditions),
	}
	if words := map[v1alpha1.PoolState]string{
		v1alpha1.PoolDraining:  "Draining: nothing new is sent; what was sent goes on.",
		v1alpha1.PoolSuspended: "Suspended: nothing new is sent, and jobs that wait in HTCondor for a slot are on hold. Jobs that run go on.",
	}[spec.State]; words != "" {
		v.Note = strings.TrimSpace(words + " " + v.Note)
	}
	limits := v1alpha1.PoolLimits{}
	if spec.Limits != nil {
		limits = *spec.Limits
	}
	v.Limits = []full{
		{Name: "Open jobs", Used: s.Open, Most: limits.MaxOpen, Says: "maxOpen"},
		{Name: "Idle jobs", Used: s.Idle, Most: limits.MaxIdle, Says: "maxIdle"},
		{Name: "Held jobs", Used: s.Held, Most: limits.MaxHeld, Says: "maxHeld"},
	}
	for _, n := range s.Namespaces {
		says := ""
		if n.Waiting > 0 {
			says = number(int(n.Waiting), "HTCJob") + " waiting"
		}
		v.Namespaces = append(v.Namespaces, full{n.Name, n.Open, limits.MaxOpenPerNamespace, says})
	}
	isDefault := meta.IsStatusConditionTrue(s.Conditions, v1alpha1.PoolDefault)
	for _, o := range all {
		if job, is := o.object.(*v1alpha1.HTCJob); is && waitsFor(job, p.Name, isDefault) {
			v.Waiting = append(v.Waiting, rowOf(o))
		}
	}
	slices.SortFunc(
		v.Waiting,
		func(a, b row) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name)) },
	)
	if len(v.Waiting) > mostWaiting {
		v.Waiting, v.More = v.Waiting[:mostWaiting], len(v.Waiting)-mostWaiting
	}
	v.Facts = factsOfPool(p)
	return v
}

// waitsFor reports whether an HTCJob is to be sent by way of the pool.
func waitsFor(job *v1alpha1.HTCJob, pool string, isDefault bool) bool {
	if job.Status.Phase != "" && job.Status.Phase != v1alpha1.PhasePending {
		return false
	}
	if named := job.Spec.Pool; named != nil && named.Name != "" {
		return named.Name == pool
	}
	return isDefault
}

func factsOfPool(p *v1alpha1.HTCPool) []fact {
	spec := p.Spec
	schedds := string(spec.Schedd)
	for _, s := range spec.Schedds {
		schedds = strings.TrimPrefix(schedds+", "+string(s), ", ")
	}
	limit := func(n *int32) string {
		if n == nil {
			return ""
		}
		return fmt.Sprint(*n)
	}
	var all []fact
	if l := spec.Limits; l != nil {
		all = append(
			all,
			fact{"Jobs of one HTCJob, at most", limit(l.MaxQueue)},
			fact{"New jobs in a minute, at most", limit(l.NewPerMinute)},
			fact{"Open jobs of a namespace, at most", limit(l.MaxOpenPerNamespace)},
		)
		if i := l.IdlePercentOfRunning; i != nil {
			all = append(all, fact{"Idle jobs, at most", fmt.Sprintf("%d %% of those that run", i.Percent)})
		}
	}
	namespaces := ""
	if spec.NamespaceSelector != nil {
		namespaces = metav1.FormatLabelSelector(spec.NamespaceSelector)
	}
	return facts(
		append(
			all,
			fact{"Schedds", schedds},
			fact{"Collector", spec.Collector},
			fact{"For namespaces with", namespaces},
			fact{"Images", strings.Join(spec.Images, ", ")},
			fact{"Placement", string(spec.Placement)},
		)...)
}
