package kueue

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
)

// Conditions of a Workload.
const (
	quotaReserved = "QuotaReserved"
	admitted      = "Admitted"
	evicted       = "Evicted"
	requeued      = "Requeued"
	finished      = "Finished"
	podsReady     = "PodsReady"
)

// preempted is the reason of an eviction after which Kueue need not wait before it queues a Workload again.
const preempted = "Preempted"

// verdict returns what a Workload says about its object.
func verdict(w *workload, queue string) *lifecycle.Quota {
	conditions, is := w.Status.Conditions, w.is
	waits := func(format string, args ...any) *lifecycle.Quota {
		return &lifecycle.Quota{
			Waits:   true,
			Stops:   true,
			Reason:  lifecycle.ReasonQuotaAwaited,
			Message: fmt.Sprintf(format, args...),
		}
	}
	why := func(kind string) string {
		if c := meta.FindStatusCondition(conditions, kind); c != nil && c.Message != "" {
			return ": " + c.Message
		}
		return ""
	}
	switch {
	case is(finished):
		return &lifecycle.Quota{}
	case w.Spec.Active != nil && !*w.Spec.Active:
		return waits("its Workload %s is deactivated in Kueue", w.Name)
	case is(evicted) && is(quotaReserved):
		return waits("Kueue has evicted it from the queue %s%s", queue, why(evicted))
	case is(admitted) && !is(evicted):
		return &lifecycle.Quota{Most: w.pods()}
	case is(quotaReserved):
		return waits("Kueue has reserved its quota, and waits for admission checks of the queue %s", queue)
	}
	return waits("it waits in Kueue's queue %s%s", queue, why(quotaReserved))
}

// verdictOfPrebuilt returns what a Workload that has come with an HTCJob says about it.
func verdictOfPrebuilt(w *workload, job *v1alpha1.HTCJob) *lifecycle.Quota {
	q := &lifecycle.Quota{Waits: true, Stops: true, Reason: lifecycle.ReasonQuotaAwaited}
	switch {
	case !metav1.IsControlledBy(w, job):
		q.Message = fmt.Sprintf("it is about to take over the Workload %s, with which it has come", w.Name)
	case !w.fits(job):
		q.Message = fmt.Sprintf("the Workload %s, with which it has come, is for fewer jobs, or smaller ones", w.Name)
	case w.is(finished):
		q.Message = fmt.Sprintf("its Workload %s has finished: run it again where it came from", w.Name)
	default:
		return verdict(w, job.Labels[QueueLabel])
	}
	return q
}

// heard returns a demand as MultiKueue may hear of it. Once a Workload has finished, it deletes the HTCJob in the
// cluster where it ran, so all must be told by then. If the quota is taken away it would send again what has ended,
// unless it hears so at once.
func heard(w *workload, d lifecycle.Demand) (next lifecycle.Demand, may bool) {
	if d.Over && !d.Told {
		return d, false
	}
	d.Over = d.Settled || d.Over && w.is(evicted)
	return d, true
}

// next returns the status that a Workload has to get, nil if it is as it should be. An eviction is answered once no job
// is left.
func next(w *workload, d lifecycle.Demand, now metav1.Time) map[string]any {
	before, is := w.Status.Conditions, w.is
	conditions := slices.Clone(before)
	set := func(kind string, is metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(
			&conditions,
			metav1.Condition{
				Type:               kind,
				Status:             is,
				Reason:             reason,
				Message:            message,
				ObservedGeneration: w.Generation,
				LastTransitionTime: now,
			},
		)
	}
	status := map[string]any{}
	switch {
	case is(finished):
		return nil
	case d.Over && d.Succeeded:
		set(finished, metav1.ConditionTrue, "Succeeded", "all has succeeded")
	case d.Over:
		set(finished, metav1.ConditionTrue, "Failed", "not all has succeeded")
	case is(evicted) && is(quotaReserved) && !d.Alive:
		why := meta.FindStatusCondition(before, evicted)
		set(quotaReserved, metav1.ConditionFalse, "Pending", why.Message)
		set(admitted, metav1.ConditionFalse, "NoReservation", "the quota was given back")
		again := metav1.ConditionFalse
		if why.Reason == preempted {
			again = metav1.ConditionTrue
		}
		set(requeued, again, why.Reason, why.Message)
		if is(podsReady) {
			set(podsReady, metav1.ConditionFalse, "NotSent", "its jobs were removed from HTCondor")
		}
		status["admission"] = nil
		if n := w.unneeded(d); n < w.reclaimed() { // what has ended is to run again
			status["reclaimablePods"] = []reclaimable{{podSet, n}}
		}
	case is(admitted) && !is(evicted):
		if n := w.unneeded(d); n > w.reclaimed() {
			status["reclaimablePods"] = []reclaimable{{podSet, n}}
		}
		if d.Sent && !is(podsReady) {
			set(podsReady, metav1.ConditionTrue, "Sent", "its jobs are in HTCondor, which has a line of its own")
		}
	}
	if !slices.Equal(before, conditions) {
		status["conditions"] = conditions
	}
	if len(status) == 0 {
		return nil
	}
	return status
}

func (w *workload) is(condition string) bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, condition)
}

func (w *workload) pods() int {
	if len(w.Spec.PodSets) == 0 {
		return 0
	}
	return w.Spec.PodSets[0].Count
}

// unneeded returns how many of its pods stand for no job that is left.
func (w *workload) unneeded(d lifecycle.Demand) int { return max(0, w.pods()-max(0, d.Left)) }

func (w *workload) reclaimed() int {
	for _, r := range w.Status.ReclaimablePods {
		if r.Name == podSet {
			return r.Count
		}
	}
	return 0
}
