//go:build !releases

package e2e

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// limited is an HTCPool that is made for one test.
type limited struct {
	*trial.Bench
	name string
}

func newLimited(b *trial.Bench, suffix, spec string) limited {
	b.T.Helper()
	return limited{b, b.Pool(suffix, spec)}
}

// idle creates an HTCJob whose jobs wait for a slot that there is not.
func (p limited) idle(name string, change ...func(*v1alpha1.HTCJob)) {
	p.T.Helper()
	p.Create(name, "true\n", append(change, p.by, func(job *v1alpha1.HTCJob) { job.Spec.Requirements = "false" })...)
}

func (p limited) by(job *v1alpha1.HTCJob) { job.Spec.Pool = &v1alpha1.Pool{Name: p.name} }

func (p limited) until(is func(*v1alpha1.HTCPool) bool) {
	p.T.Helper()
	keptPool{p.Bench, p.name}.until(is)
}

// refuses reports whether a pool says with these words why nothing is sent.
func refuses(pool *v1alpha1.HTCPool, reason, message string) bool {
	return hasReason(pool, v1alpha1.PoolAccepting, metav1.ConditionFalse, reason) &&
		meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.PoolAccepting).Message == message
}

// waits waits until an HTCJob says what it waits for.
func (p limited) waits(name, reason, message string) {
	p.T.Helper()
	p.Until(name, "waiting for "+message, func(job *v1alpha1.HTCJob) bool {
		if job.Status.Reason != reason {
			return false
		}
		return strings.Contains(p.Condition(job, v1alpha1.ConditionSubmitted).Message, message)
	})
}

// sent waits until the jobs of an HTCJob are in HTCondor, and reports how many of the pool are.
func (p limited) sent(name string) int {
	p.T.Helper()
	p.Until(name, "sent", func(job *v1alpha1.HTCJob) bool { return job.Status.ClusterID > 0 })
	return len(p.Condor("condor_q", fmt.Sprintf("HTCPool == %q && JobStatus =!= 4 && JobStatus =!= 3", p.name)))
}

func (p limited) delete(names ...string) {
	p.T.Helper()
	p.Kubectl(append([]string{"delete", "--wait", "htcjob"}, names...)...)
}

func TestALimitOfOneHTCJob(t *testing.T) {
	t.Parallel()
	p := newLimited(trial.New(t), "q", `{"limits": {"maxQueue": 2}}`)
	p.idle("large", trial.Queue(3))
	job := p.Phase("large", v1alpha1.PhaseFailed)
	require.Contains(
		t,
		p.Condition(job, v1alpha1.ConditionSubmitted).Message,
		"queue 3 is more than the 2 jobs that one HTCJob may have in pool "+p.name+" (limits.maxQueue)",
	)
}

func TestALimitOfOpenJobs(t *testing.T) {
	t.Parallel()
	p := newLimited(trial.New(t), "o", `{"limits": {"maxOpen": 3}}`)
	p.idle("first", trial.Queue(2))
	require.Equal(t, 2, p.sent("first"))
	p.idle("large", trial.Queue(3))
	p.waits("large", "PoolLimit", "pool "+p.name+": 2 of 3 jobs open (limits.maxOpen), this HTCJob of 3 jobs is next")
	p.idle("small")
	p.waits("small", "PoolLimit", "1 HTCJob before this one")
	p.idle("never", trial.Queue(4))
	p.Phase("never", v1alpha1.PhaseFailed)
	p.until(func(pool *v1alpha1.HTCPool) bool {
		return pool.Status.Waiting == 2 && refuses(pool, "LimitReached", "2 of 3 jobs open (limits.maxOpen)")
	})
	p.EditPool(p.name, `{"limits": {"maxOpen": 5}}`)
	require.Equal(t, 5, p.sent("large"))
	p.EditPool(p.name, `{"limits": {"maxOpen": 4}}`) // removes nothing
	p.delete("first")
	require.Equal(t, 4, p.sent("small"))
}

func TestALimitOfANamespace(t *testing.T) {
	t.Parallel()
	a, b := trial.New(t), trial.New(t)
	p := newLimited(a, "n", `{"limits": {"maxOpenPerNamespace": 1}}`)
	other := limited{b, p.name}
	p.idle("first")
	p.sent("first")
	p.idle("second")
	p.waits(
		"second",
		"PoolLimit",
		"1 of 1 jobs of namespace "+a.Namespace+" open (limits.maxOpenPerNamespace), this HTCJob is next",
	)
	other.idle("first")
	require.Equal(t, 2, other.sent("first"), "another namespace has room")
	p.delete("first")
	p.sent("second")
}

func TestLimitsOfIdleJobsCountJobs(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	p := newLimited(b, "i", `{"limits": {"maxIdle": 2}}`)
	p.idle("first")
	require.Equal(t, 1, p.sent("first"))
	p.idle("next", trial.Queue(2))
	p.waits("next", "PoolLimit", "1 of 2 jobs idle (limits.maxIdle), this HTCJob of 2 jobs is next")
	p.idle("never", trial.Queue(1000)) // of more, a factory makes two at a time
	p.waits(
		"never",
		"Refused",
		"queue 1000 is more than the 2 jobs that may wait for a slot in pool "+p.name+" (limits.maxIdle)",
	)
	p.delete("first")
	require.Equal(t, 2, p.sent("next"))

	p = newLimited(b, "r", `{"limits": {"idlePercentOfRunning": {"percent": 100}}}`)
	p.Create("runs", "sleep 600\n", p.by)
	p.Phase("runs", v1alpha1.PhaseRunning)
	p.idle("one")
	p.sent("one")
	p.idle("two")
	p.waits("two", "PoolLimit", "1 of 1 jobs idle with 1 running (limits.idlePercentOfRunning)")
	p.EditPool(p.name, `{"limits": {"idlePercentOfRunning": {"percent": 200}}}`)
	require.Equal(t, 3, p.sent("two"))
}

func TestALimitOfNewJobsPerMinute(t *testing.T) {
	t.Parallel()
	p := newLimited(trial.New(t), "m", `{"limits": {"newPerMinute": 2}}`)
	p.idle("first", trial.Queue(2))
	p.sent("first")
	first := p.Get("first").Status.StartTime
	p.delete("first") // it counts nevertheless
	p.idle("second")
	p.idle("third")
	for _, name := range []string{"second", "third"} {
		p.sent(name)
		require.GreaterOrEqual(t, p.Get(name).Status.StartTime.Sub(first.Time), time.Minute)
	}
}

func TestALimitOfHeldJobs(t *testing.T) {
	t.Parallel()
	p := newLimited(trial.New(t), "h", `{"limits": {"maxHeld": 0}}`)
	p.idle("first")
	p.sent("first")
	id := p.Get("first").Status.JobID[0]
	idle := func() []string { return p.Condor("condor_q", fmt.Sprintf("HTCPool == %q && JobStatus == 1", p.name)) }
	p.Eventually(func() bool { return len(idle()) == 1 }, func() string { return "its files never arrived" })
	_, err := p.Lab.Run(t.Context(), "condor_hold", id)
	require.NoError(t, err)
	p.Phase("first", v1alpha1.PhaseHeld)
	p.idle("second")
	p.waits("second", "PoolLimit", "1 of at most 0 jobs on hold (limits.maxHeld)")
	p.until(func(pool *v1alpha1.HTCPool) bool {
		return pool.Status.Held == 1 && pool.Status.Waiting == 1 &&
			refuses(
				pool,
				"TooManyHeld",
				"1 job is on hold, more than maxHeld, 0: namespaces with more than their share of these are sent nothing until the cause is mended and they are released or removed",
			)
	})
	p.idle("third")
	p.waits("third", "PoolLimit", "1 HTCJob before this one")
	require.Len(t, p.Condor("condor_q", fmt.Sprintf("HTCPool == %q", p.name)), 1, "nothing new is sent")
	_, err = p.Lab.Run(t.Context(), "condor_release", id)
	require.NoError(t, err)
	p.sent("second")
	require.Equal(t, 3, p.sent("third"))
	p.until(func(pool *v1alpha1.HTCPool) bool {
		return pool.Status.Waiting == 0 && hasReason(pool, v1alpha1.PoolAccepting, metav1.ConditionTrue, "Accepting")
	})
}

func TestTheLimitThatFollowsWhatRunsHasBounds(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	p := newLimited(b, "b", `{"limits": {"idlePercentOfRunning": {"percent": 10, "min": 2}}}`)
	p.idle("one")
	p.sent("one")
	p.idle("two")
	require.Equal(t, 2, p.sent("two"))
	p.idle("three")
	p.waits("three", "PoolLimit", "2 of 2 jobs idle with 0 running (limits.idlePercentOfRunning)")

	p = newLimited(b, "x", `{"limits": {"idlePercentOfRunning": {"percent": 10000, "max": 1}}}`)
	p.Create("runs", "sleep 600\n", p.by)
	p.Phase("runs", v1alpha1.PhaseRunning)
	p.idle("four")
	p.sent("four")
	p.idle("five")
	p.waits("five", "PoolLimit", "1 of 1 jobs idle with 1 running (limits.idlePercentOfRunning)")
}

// The status lists the namespaces with the most open jobs, and those of equally many by name.
func TestAPoolsStatusListsItsFirst20Namespaces(t *testing.T) {
	t.Parallel()
	p := newLimited(trial.New(t), "s", "{}")
	var want []v1alpha1.PoolNamespace
	for i := range v1alpha1.MaxPoolNamespaces + 2 {
		other := limited{trial.New(t), p.name}
		open := int32(1 + i/2)
		other.idle("waits", trial.Queue(open))
		want = append(want, v1alpha1.PoolNamespace{Name: other.Namespace, Open: open})
	}
	slices.SortFunc(want, func(a, b v1alpha1.PoolNamespace) int {
		return cmp.Or(-cmp.Compare(a.Open, b.Open), cmp.Compare(a.Name, b.Name))
	})
	p.until(func(pool *v1alpha1.HTCPool) bool {
		return pool.Status.Open == 132 && slices.Equal(pool.Status.Namespaces, want[:v1alpha1.MaxPoolNamespaces])
	})
}

func TestThoseThatWaitTakeTurns(t *testing.T) {
	t.Parallel()
	a, b := trial.New(t), trial.New(t)
	p := newLimited(a, "t", `{"limits": {"maxOpen": 1}}`)
	other := limited{b, p.name}
	// It runs: behind a job that waits for a slot, each namespace would wait by itself.
	p.Create("first", "sleep 1000\n", p.by, trial.Unpacked)
	p.Phase("first", v1alpha1.PhaseRunning)
	p.idle("low")
	p.waits("low", "PoolLimit", "this HTCJob is next")
	p.idle("high", func(job *v1alpha1.HTCJob) { job.Spec.Priority = new(int32(7)) })
	p.waits("high", "PoolLimit", "this HTCJob is next")
	other.idle("other")
	other.waits("other", "PoolLimit", "1 HTCJob before this one")
	for _, next := range []struct {
		of   limited
		name string
		ends limited
		end  string
	}{{p, "high", p, "first"}, {other, "other", p, "high"}, {p, "low", other, "other"}} {
		next.ends.delete(next.end)
		require.Equal(t, 1, next.of.sent(next.name), next.name)
	}
}

func TestAPoolThatDrainsSendsNothingNew(t *testing.T) {
	t.Parallel()
	p := newLimited(trial.New(t), "d", `{}`)
	p.idle("first")
	p.sent("first")
	p.EditPool(p.name, `{"state": "Draining"}`)
	p.idle("second")
	p.waits(
		"second",
		"PoolDraining",
		"pool "+p.name+": the pool is Draining, nothing new is sent until its state is Online, this HTCJob is next",
	)
	p.EditPool(p.name, `{"state": "Online"}`)
	require.Equal(t, 2, p.sent("second"))
}
