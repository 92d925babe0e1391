package poolcontrol

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/admission"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 5e8, time.UTC)

func htcpool(name string, change ...func(*v1alpha1.HTCPoolSpec)) *v1alpha1.HTCPool {
	p := &v1alpha1.HTCPool{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-of-" + "pool", ResourceVersion: "1", Generation: 3},
	}
	p.Spec.State = v1alpha1.PoolOnline
	for _, f := range change {
		f(&p.Spec)
	}
	return p
}

func state(s v1alpha1.PoolState) func(*v1alpha1.HTCPoolSpec) {
	return func(p *v1alpha1.HTCPoolSpec) { p.State = s }
}

func mostHeld(n int32) func(*v1alpha1.HTCPoolSpec) {
	return func(p *v1alpha1.HTCPoolSpec) { p.Limits = &v1alpha1.PoolLimits{MaxHeld: &n} }
}

var (
	up      = reached{schedd.Endpoint{Schedd: "a"}, backend.Reachability{Asked: true}}
	down    = reached{schedd.Endpoint{Schedd: "b"}, backend.Reachability{Asked: true, Down: true, Message: "no answer"}}
	unasked = reached{at: schedd.Endpoint{Schedd: "c"}}
)

func TestWhetherAPoolAccepts(t *testing.T) {
	full := admission.Load{Reason: "LimitReached", Message: "1000 of 1000 open"}
	for name, c := range map[string]struct {
		pool *v1alpha1.HTCPool
		view view
		want string
	}{
		"nothing in the way":               {htcpool("p"), view{schedds: []reached{up}}, "True Accepting: HTCJobs are sent"},
		"nobody asked the schedd yet":      {htcpool("p"), view{schedds: []reached{unasked}}, "True Accepting: HTCJobs are sent"},
		"a limit":                          {htcpool("p"), view{load: full, schedds: []reached{up}}, "False LimitReached: 1000 of 1000 open"},
		"one schedd of two":                {htcpool("p"), view{schedds: []reached{up, down}}, "True Accepting: HTCJobs are sent"},
		"no schedd":                        {htcpool("p"), view{load: full, schedds: []reached{down, down}}, "False Unreachable: schedd b: no answer"},
		"drained while the schedd is away": {htcpool("p", state(v1alpha1.PoolDraining)), view{schedds: []reached{down}}, "False Draining: spec.state is Draining: nothing new is sent"},
		"suspended":                        {htcpool("p", state(v1alpha1.PoolSuspended)), view{load: admission.Load{Reason: "Suspended", Message: "words"}}, "False Suspended: words"},
		"as many held as may be":           {htcpool("p", mostHeld(3)), view{load: admission.Load{Held: 3}}, "True Accepting: HTCJobs are sent"},
		"more held":                        {htcpool("p", mostHeld(3)), view{load: admission.Load{Held: 4}}, "False TooManyHeld: 4 jobs are on hold, more than maxHeld, 3: namespaces with more than their share of these are sent nothing until the cause is mended and they are released or removed"},
		"more held, but some by an earlier suspension": {htcpool("p", mostHeld(3)), view{load: admission.Load{Held: 4, HeldByPool: 1}}, "True Accepting: HTCJobs are sent"},
		"a pool that cannot be used":                   {htcpool("p", state(v1alpha1.PoolDraining)), view{wrong: errors.New("a mistake")}, "False PoolInvalid: a mistake"},
	} {
		t.Run(name, func(t *testing.T) {
			is, reason, message := accepting(c.pool, c.view)
			require.Equal(t, c.want, fmt.Sprintf("%s %s: %s", is, reason, message))
		})
	}
}

func TestWhetherAPoolIsReachable(t *testing.T) {
	for want, all := range map[string][]reached{
		"Unknown NotAsked: no schedd of this pool has been asked yet":  {unasked},
		"Unknown NotAsked: no schedd of this pool has been asked yet ": {},
		"True Answered: the schedd answered when last asked":           {up},
		"True Answered: the schedd answered when last asked ":          {up, unasked},
		"True Answered: 2 of 2 schedds answered when last asked":       {up, up},
		"True SomeAnswer: 1 of 2 schedds answer; schedd b: no answer":  {up, down},
		"False Unreachable: schedd b: no answer":                       {down, unasked},
	} {
		is, reason, message := reachable(all)
		require.Equal(t, strings.TrimSpace(want), fmt.Sprintf("%s %s: %s", is, reason, message))
	}
}

func TestTheStatusOfAPool(t *testing.T) {
	p := htcpool("p", func(s *v1alpha1.HTCPoolSpec) { s.Default = true })
	v := view{
		load:    admission.Load{Open: 9, Idle: 4, Running: 3, Held: 2, Waiting: 1},
		now:     noon,
		inUse:   "p",
		schedds: []reached{up},
	}
	for i := range 100 {
		v.load.Namespaces = append(
			v.load.Namespaces,
			admission.NamespaceLoad{Name: fmt.Sprintf("n%d", i), Open: 100 - i, Waiting: i},
		)
	}
	s := newStatus(p, v)
	require.Len(t, s.Namespaces, v1alpha1.MaxPoolNamespaces)
	require.Equal(t, v1alpha1.PoolNamespace{Name: "n19", Open: 81, Waiting: 19}, s.Namespaces[19])
	s.Namespaces = nil
	conditions := s.Conditions
	s.Conditions = nil
	require.Equal(
		t,
		v1alpha1.HTCPoolStatus{Open: 9, Idle: 4, Running: 3, Held: 2, Waiting: 1, ObservedGeneration: 3},
		s,
	)
	require.Equal(t, metav1.Condition{
		Type:               "Default",
		Status:             "True",
		Reason:             "InUse",
		Message:            "HTCJobs that name no pool use this one",
		ObservedGeneration: 3,
		LastTransitionTime: metav1.NewTime(noon.Truncate(time.Second)),
	}, *meta.FindStatusCondition(conditions, "Default"))

	p.Status.Conditions = conditions
	v.inUse, v.now = "older", noon.Add(time.Hour)
	s = newStatus(p, v)
	require.Equal(t, "OlderDefault", meta.FindStatusCondition(s.Conditions, "Default").Reason)
	require.True(t, meta.IsStatusConditionFalse(s.Conditions, "Default"))
	require.Equal(
		t,
		metav1.NewTime(noon.Truncate(time.Second)),
		meta.FindStatusCondition(s.Conditions, "Accepting").LastTransitionTime,
		"it did not change",
	)

	p.Spec.Default = false
	require.Nil(t, meta.FindStatusCondition(newStatus(p, v).Conditions, "Default"))

	v.wrong = errors.New(strings.Repeat("€", 100_000))
	require.Less(t, len(meta.FindStatusCondition(newStatus(p, v).Conditions, "Accepting").Message), 32768)
}

func TestAPoolSaysWhichOfItsScheddsAreAskedLess(t *testing.T) {
	busy := up
	busy.Slowed, busy.Pace = "it is busy for 99 % of its time", backend.Pace{Commands: 4, PerSecond: 12.5}
	s := newStatus(htcpool("cms"), view{now: noon, schedds: []reached{up, busy}})
	c := meta.FindStatusCondition(s.Conditions, v1alpha1.PoolSlowed)
	require.NotNil(t, c)
	require.Equal(
		t,
		"schedd a: it is busy for 99 % of its time; htcd asks it less: at most 4 commands at once, 12.5 a second",
		c.Message,
	)
	p := htcpool("cms")
	p.Status = s
	require.Nil(
		t,
		meta.FindStatusCondition(newStatus(p, view{now: noon, schedds: []reached{up}}).Conditions, v1alpha1.PoolSlowed),
	)
}
