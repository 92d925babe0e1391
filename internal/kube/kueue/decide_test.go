package kueue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/internal/kube/lifecycle"
)

var (
	noon   = metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	no     = false
	gone   = func(w *workload) { w.Spec.Active = &no }
	of     = func(kind, reason string) func(*workload) { return condition(kind, metav1.ConditionTrue, reason) }
	not    = func(kind string) func(*workload) { return condition(kind, metav1.ConditionFalse, "Pending") }
	given  = []func(*workload){of(quotaReserved, "QuotaReserved"), of(admitted, "Admitted")}
	taken  = append(given[:2:2], of(evicted, preempted))
	closed = append(given[:2:2], of(evicted, "InactiveWorkload"))
)

func condition(kind string, is metav1.ConditionStatus, reason string) func(*workload) {
	return func(w *workload) {
		meta.SetStatusCondition(
			&w.Status.Conditions,
			metav1.Condition{
				Type:               kind,
				Status:             is,
				Reason:             reason,
				Message:            "as Kueue says",
				LastTransitionTime: noon,
			},
		)
	}
}

// of10 is a Workload of ten jobs.
func of10(change ...func(*workload)) *workload {
	w := &workload{}
	w.Name = "w"
	w.Spec.PodSets = []pods{{Count: 10}}
	for _, f := range change {
		f(w)
	}
	return w
}

func TestVerdict(t *testing.T) {
	for what, c := range map[string]struct {
		w       *workload
		waits   bool
		message string
	}{
		"a new one waits":                        {of10(), true, "it waits in Kueue's queue team"},
		"one without quota says why":             {of10(not(quotaReserved)), true, "it waits in Kueue's queue team: as Kueue says"},
		"an admitted one does not":               {of10(given...), false, ""},
		"one whose admission is checked does":    {of10(given[0]), true, "Kueue has reserved its quota, and waits for admission checks of the queue team"},
		"an evicted one does":                    {of10(taken...), true, "Kueue has evicted it from the queue team: as Kueue says"},
		"one that has given back its quota does": {of10(of(evicted, preempted), not(quotaReserved), not(admitted)), true, "it waits in Kueue's queue team: as Kueue says"},
		"a deactivated one does":                 {of10(append(given[:2:2], gone)...), true, "its Workload w is deactivated in Kueue"},
		"one that has ended may end again":       {of10(of(finished, "Succeeded")), false, ""},
	} {
		t.Run(what, func(t *testing.T) {
			is := verdict(c.w, "team")
			require.Equal(t, []any{c.waits, c.waits, c.message}, []any{is.Waits, is.Stops, is.Message})
		})
	}
}

func TestNoMoreJobsAreSentThanWereAdmitted(t *testing.T) {
	require.Equal(t, 10, verdict(of10(given...), "team").Most)
}

func TestNext(t *testing.T) {
	type conditions map[string]string // "status reason"
	for what, c := range map[string]struct {
		w         *workload
		demand    lifecycle.Demand
		reclaimed int
		releases  bool
		set       conditions
	}{
		"nothing is said of one that waits":        {w: of10()},
		"one in HTCondor is ready":                 {w: of10(given...), demand: lifecycle.Demand{Alive: true, Sent: true, Left: 10}, set: conditions{podsReady: "True Sent"}},
		"what has ended is given back":             {w: of10(append(given[:2:2], of(podsReady, "Sent"))...), demand: lifecycle.Demand{Alive: true, Sent: true, Left: 6}, reclaimed: 4},
		"one of more jobs than it has pods":        {w: of10(append(given[:2:2], of(podsReady, "Sent"))...), demand: lifecycle.Demand{Alive: true, Sent: true, Left: 40}},
		"never more than there is":                 {w: of10(append(given[:2:2], of(podsReady, "Sent"))...), demand: lifecycle.Demand{Alive: true, Sent: true, Left: -3}, reclaimed: 10},
		"nor less than before":                     {w: of10(append(given[:2:2], of(podsReady, "Sent"), reclaims(5))...), demand: lifecycle.Demand{Alive: true, Sent: true, Left: 6}},
		"success is the end":                       {w: of10(given...), demand: lifecycle.Demand{Over: true, Succeeded: true}, set: conditions{finished: "True Succeeded"}},
		"failure, too":                             {w: of10(given...), demand: lifecycle.Demand{Over: true}, set: conditions{finished: "True Failed"}},
		"the end is said once":                     {w: of10(of(finished, "Failed")), demand: lifecycle.Demand{Over: true}},
		"an eviction waits for the jobs to go":     {w: of10(taken...), demand: lifecycle.Demand{Alive: true, Sent: true}},
		"one that was preempted waits again":       {w: of10(taken...), releases: true, set: conditions{quotaReserved: "False Pending", admitted: "False NoReservation", requeued: "True Preempted"}},
		"one that was deactivated waits for Kueue": {w: of10(closed...), releases: true, set: conditions{quotaReserved: "False Pending", admitted: "False NoReservation", requeued: "False InactiveWorkload"}},
		"what is to run again is no longer given back": {
			w: of10(append(taken[:3:3], reclaims(5))...), demand: lifecycle.Demand{Left: 8}, reclaimed: 2,
			releases: true,
			set:      conditions{quotaReserved: "False Pending"},
		},
		"what was given back is not given back now": {w: of10(of(evicted, preempted), not(quotaReserved), not(admitted))},
	} {
		t.Run(what, func(t *testing.T) {
			status := next(c.w, c.demand, noon)
			admission, releases := status["admission"]
			require.Nil(t, admission)
			require.Equal(t, c.releases, releases)
			if c.reclaimed > 0 {
				require.Equal(t, []reclaimable{{podSet, c.reclaimed}}, status["reclaimablePods"])
			} else {
				require.NotContains(t, status, "reclaimablePods")
			}
			if c.set == nil {
				require.NotContains(t, status, "conditions")
				return
			}
			is := status["conditions"].([]metav1.Condition)
			for kind, want := range c.set {
				found := meta.FindStatusCondition(is, kind)
				require.Equal(t, want, string(found.Status)+" "+found.Reason, kind)
			}
			require.GreaterOrEqual(t, len(is), len(c.w.Status.Conditions), "the others stay")
		})
	}
}

func reclaims(n int) func(*workload) {
	return func(w *workload) { w.Status.ReclaimablePods = []reclaimable{{podSet, n}} }
}
