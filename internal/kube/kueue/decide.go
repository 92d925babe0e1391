package kueue

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// verdict returns what a Workload says about its HTCJob.
func verdict(w *workload, queue string) *lifecycle.Quota {
	conditions := w.Status.Conditions
	is := func(kind string) bool { return meta.IsStatusConditionTrue(conditions, kind) }
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
		return &lifecycle.Quota{}
	case is(quotaReserved):
		return waits("Kueue has reserved its quota, and waits for admission checks of the queue %s", queue)
	}
	return waits("it waits in Kueue's queue %s%s", queue, why(quotaReserved))
}

// next returns the status that a Workload has to get, nil if it is as it should be. An eviction is answered once no job
// is left.
func next(w *workload, d lifecycle.Demand, now metav1.Time) map[string]any {
	before := w.Status.Conditions
	is := func(kind string) bool { return meta.IsStatusConditionTrue(before, kind) }
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
		set(finished, metav1.ConditionTrue, "Succeeded", "the HTCJob has succeeded")
	case d.Over:
		set(finished, metav1.ConditionTrue, "Failed", "the HTCJob has failed")
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
	case is(admitted) && !is(evicted):
		if n := min(d.Ended, w.pods()); n > w.reclaimed() {
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

func (w *workload) pods() int {
	if len(w.Spec.PodSets) == 0 {
		return 0
	}
	return w.Spec.PodSets[0].Count
}

func (w *workload) reclaimed() int {
	for _, r := range w.Status.ReclaimablePods {
		if r.Name == podSet {
			return r.Count
		}
	}
	return 0
}
