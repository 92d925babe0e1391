package job

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

// shares returns a world with a pool of these limits, and in it a factory of many jobs, the cluster 2, that has what it
// may have.
func shares(t *testing.T, limits v1alpha1.PoolLimits, edits ...func(*v1alpha1.HTCJob)) *world {
	t.Helper()
	w := newWorldWithOutput(t, withPools(cluster{"grid": {Limits: &limits}}))
	w.apply(htcjob("one", append(edits, inGrid, queueOf(1000), atOnce(500))...))
	require.Equal(t, 2, w.schedd.HandOver(1))
	w.later(10 * time.Second)
	w.crosscheck()
	return w
}

// open counts the jobs in the queue that have not ended, without launchers.
func (w *world) open() (n int) {
	for _, j := range w.schedd.Jobs() {
		if !j.Launcher && j.Status != condor.Completed {
			n++
		}
	}
	return n
}

func oneCore(job *v1alpha1.HTCJob) {
	job.Spec.Resources = &v1alpha1.Resources{CPUs: resource.NewQuantity(1, resource.DecimalSI)}
}

func TestWhatAFactoryMayStillMakeLeavesNoRoom(t *testing.T) {
	w := shares(t, v1alpha1.PoolLimits{MaxOpen: new(int32(6))})
	require.Equal(t, 6, w.open())
	of := condor.ClusterConstraint(2)
	require.NoError(t, scheddtest.Err(w.schedd.Change(t.Context(), schedd.Identity{}, schedd.HoldIdle{Where: of, Reason: "slow"})))
	w.schedd.Edit(2, -1, func(j *condor.Job) { j.Status, j.HoldReasonCode = condor.Running, 0 })
	for proc := range 4 {
		w.schedd.Complete(2, proc, 0)
	}
	w.crosscheck()
	require.Equal(t, 2, w.open())
	waits := w.apply(htcjob("two", inGrid, queueOf(2)))
	require.Contains(
		t,
		submitted(waits).Message,
		"pool grid: 6 of 6 jobs open, 4 of them reserved for factories (limits.maxOpen), this HTCJob of 2 jobs is next",
	)
	w.crosscheck()
	w.later(time.Minute)
	require.NotEmpty(t, w.job("two").Status.JobID, "the factory was told to leave room")
	require.NoError(t, scheddtest.Err(w.schedd.Change(t.Context(), schedd.Identity{}, schedd.ReleaseHeld{Where: of})))
	w.crosscheck()
	require.Equal(t, 6, w.open())
}

func TestAFactoryThatIsToldToHaveLessHasWhatItMadeBefore(t *testing.T) {
	w := shares(t, v1alpha1.PoolLimits{MaxOpen: new(int32(6))})
	change := func(c schedd.Change) {
		require.NoError(t, scheddtest.Err(w.schedd.Change(t.Context(), schedd.Identity{}, c)))
	}
	of := condor.ClusterConstraint(2)
	change(schedd.HoldIdle{Where: of, Reason: "slow"})
	for proc := range 4 {
		w.schedd.Complete(2, proc, 0)
	}
	w.crosscheck()
	require.Equal(t, 2, w.open())
	w.apply(htcjob("two", inGrid, queueOf(2)))
	change(schedd.ReleaseHeld{Where: of})
	made := schedd.Query{Where: of, Factories: true}
	require.NoError(t, w.schedd.Query(t.Context(), schedd.Identity{}, made, func(condor.Job) error { return nil }))
	require.Equal(t, 6, w.open(), "which htcd does not know yet")
	w.Changed.Add("default/one")
	w.settle()
	w.later(10 * time.Second)
	require.Equal(t, 3, w.run("one").Factory)
	require.Equal(t, 6, w.open())
	require.Empty(t, w.job("two").Status.JobID)
}

func TestAFactoryMakesWayForOneThatIsAsLargeAsThePool(t *testing.T) {
	for name, limits := range map[string]v1alpha1.PoolLimits{
		"maxOpen": {MaxOpen: new(int32(6))}, "maxOpenPerNamespace": {MaxOpenPerNamespace: new(int32(6))}, "cores": {Cores: new(int32(6))},
	} {
		t.Run(name, func(t *testing.T) {
			w := shares(t, limits, oneCore)
			w.apply(htcjob("large", inGrid, queueOf(6), oneCore))
			w.apply(htcjob("small", inGrid, oneCore))
			sent := func(name string) bool { return w.job(name).Status.JobID != nil }
			for range 50 {
				require.LessOrEqual(t, w.open(), 6)
				if sent("small") {
					require.True(t, sent("large"))
					break
				}
				w.inTurnOnce()
			}
			require.True(t, sent("small"))
			for range 10 {
				require.LessOrEqual(t, w.open(), 6)
				w.inTurnOnce()
			}
			w.crosscheck()
			require.Equal(t, 6, w.open(), "the factory has all again")
		})
	}
}

// inTurnOnce completes what is there.
func (w *world) inTurnOnce() {
	for _, j := range w.schedd.Jobs() {
		if !j.Launcher {
			w.schedd.Run(j.Cluster, j.Proc)
			w.schedd.Complete(j.Cluster, j.Proc, 0)
		}
	}
	w.crosscheck()
	w.later(10 * time.Second)
}

func TestAFactoryIsToldAfterARestartWhatItsPoolLeavesByThen(t *testing.T) {
	limits := v1alpha1.PoolLimits{MaxOpen: new(int32(6)), MaxIdle: new(int32(2))}
	w := shares(t, limits)
	require.Equal(t, 2, w.run("one").FactoryIdle)
	calls := w.schedd.Calls(scheddtest.SetParallelism)
	*limits.MaxIdle = 100
	for range 3 {
		w.restart()
		w.later(10 * time.Second)
		w.crosscheck()
	}
	require.Equal(t, 6, w.run("one").FactoryIdle)
	require.Equal(t, calls+1, w.schedd.Calls(scheddtest.SetParallelism), "once")
}

func TestAFactoryThatCouldNotBeToldIsToldAgain(t *testing.T) {
	limits := v1alpha1.PoolLimits{MaxOpen: new(int32(6))}
	w := shares(t, limits)
	*limits.MaxOpen = 3
	w.schedd.Fail(scheddtest.SetParallelism, scheddtest.Fault{Err: errors.New("timeout")})
	w.crosscheck()
	run := w.run("one")
	require.Equal(t, []int{6, ledger.IdleNotKnown}, []int{run.Factory, run.FactoryIdle}, "it may make as many as before")
	w.later(time.Minute)
	run = w.run("one")
	require.Equal(t, []int{3, 3}, []int{run.Factory, run.FactoryIdle})
}

func TestTheFactoryOfASuspendedPoolIsHeldByThePool(t *testing.T) {
	w := shares(t, v1alpha1.PoolLimits{MaxOpen: new(int32(6))})
	for proc := range 6 {
		w.schedd.Run(2, proc)
	}
	hold := schedd.HoldIdle{Where: condor.ClusterConstraint(2), Reason: schedd.PoolHold + "grid is suspended"}
	require.NoError(t, scheddtest.Err(w.schedd.Change(t.Context(), schedd.Identity{}, hold)))
	w.crosscheck()
	said := condition(w.job("one"), v1alpha1.ConditionHeld)
	require.Equal(t, "PoolSuspended", said.Reason)
	require.Equal(
		t,
		fmt.Sprintf(
			"HTCondor makes none of the %d jobs that wait: HTCPool grid is suspended; it goes on once that is Online or Draining again",
			1000-6,
		),
		said.Message,
	)
}
