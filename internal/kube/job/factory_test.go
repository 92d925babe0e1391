package job

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

func atOnce(n int32) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) { job.Spec.Parallelism = &n }
}

// handedOver applies an HTCJob of several jobs, two at once, whose launcher has handed them over as cluster 2.
func (w *world) handedOver(jobs int32, edits ...func(*v1alpha1.HTCJob)) {
	w.t.Helper()
	w.apply(htcjob("one", append(edits, queueOf(jobs), atOnce(2))...))
	require.Equal(w.t, 2, w.schedd.HandOver(1))
	w.later(10 * time.Second)
	w.crosscheck()
	status := w.job("one").Status
	require.Equal(w.t, v1alpha1.PhaseIdle, status.Phase)
	require.EqualValues(w.t, jobs, status.Active)
	require.EqualValues(w.t, 2, status.Idle)
	require.EqualValues(w.t, jobs-2, status.Waiting)
}

// inTurn completes what is there, and what is made instead, until nothing is.
func (w *world) inTurn() (most int) {
	for range 10 {
		jobs := slices.DeleteFunc(w.schedd.Jobs(), func(j condor.Job) bool { return j.Launcher })
		most = max(most, len(jobs))
		for _, j := range jobs {
			w.schedd.Run(j.Cluster, j.Proc)
			w.schedd.Complete(j.Cluster, j.Proc, 0)
		}
		w.crosscheck()
		w.later(10 * time.Second)
	}
	return most
}

func TestWhileAnAttemptIsHandedOverNothingIsSentAgain(t *testing.T) {
	w := newWorldWithOutput(t)
	job := w.apply(htcjob("one", queueOf(5), atOnce(2)))
	require.Equal(t, v1alpha1.PhaseSubmitting, job.Status.Phase)
	require.EqualValues(t, 5, job.Status.Active)
	w.restart()
	w.later(10 * time.Second)
	require.Contains(t, w.job("one").Status.Message, "job 1.0 at the schedd is about to hand over the jobs")
	for range 3 {
		w.later(time.Minute)
	}
	require.Contains(
		t,
		w.job("one").Status.Message,
		"job 1.0, which is to hand over the jobs, is idle, and starts by itself when there is room: "+
			"the schedd has at most MAX_RUNNING_SCHEDULER_JOBS_PER_OWNER (200",
	)
	w.schedd.Edit(1, 0, func(j *condor.Job) { j.Status, j.HoldReasonCode, j.HoldReasonSubCode = condor.Held, 3, 122 })
	w.later(time.Minute)
	require.Contains(t, w.job("one").Status.Message, "SEC_WRITE_AUTHENTICATION_METHODS needs FS")
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
	require.Len(t, w.schedd.Jobs(), 1)

	w.delete("one")
	for range 3 {
		w.later(time.Minute)
	}
	require.Nil(t, w.job("one"))
	require.Empty(t, w.schedd.Jobs())
}

func TestJobsAreMadeAsOthersEnd(t *testing.T) {
	w := newWorldWithOutput(t)
	w.handedOver(5)
	require.NoError(t, w.ends("one", 0, 0))
	require.NoError(t, w.ends("one", 1, 0))
	w.crosscheck()
	require.NoError(t, w.ends("one", 2, 0), "its row is there, or comes with its callback")
	require.Equal(t, 2, w.inTurn())
	require.Equal(t, v1alpha1.PhaseSucceeded, w.job("one").Status.Phase)
	require.EqualValues(t, 5, w.job("one").Status.Succeeded)
	require.Equal(t, "out of 2.4\n", w.kept("one", 1, 4, condor.Stdout))
	require.True(t, w.run("one").Confirmed)
}

func TestHTCondorIsAskedWhenAQuarterOfAFactorysJobsHasEnded(t *testing.T) {
	w := newWorldWithOutput(t)
	w.handedOver(5)
	for atOnce, quarter := range map[int]int{1: 1, 8: 2, 100_000: 250} {
		for n := range 3 * quarter {
			require.Equal(t, (n+1)%quarter == 0, w.toldMany("default/one", atOnce))
		}
	}
}

func TestParallelismIsEditedWhileTheJobsRun(t *testing.T) {
	w := newWorldWithOutput(t)
	w.handedOver(20)
	w.edit("one", func(spec *v1alpha1.HTCJobSpec) { spec.Parallelism = new(int32(10)) })
	w.crosscheck()
	status := w.job("one").Status
	require.EqualValues(t, 1, status.Attempt)
	require.EqualValues(t, 10, status.Parallelism)
	require.EqualValues(t, 10, status.Idle)
	require.Equal(t, 1, w.schedd.Calls(scheddtest.SetParallelism))
	w.edit("one", func(spec *v1alpha1.HTCJobSpec) { spec.Parallelism = nil })
	w.crosscheck()
	require.EqualValues(t, 20, w.job("one").Status.Idle)
}

func TestWhyAFactoryMakesNoMoreJobsIsSaid(t *testing.T) {
	w := newWorldWithOutput(t)
	w.handedOver(5)
	require.NoError(
		t,
		scheddtest.Err(
			w.schedd.Change(
				t.Context(),
				schedd.Identity{},
				schedd.HoldIdle{Where: condor.ClusterConstraint(2), Reason: "somebody wants that"},
			),
		),
	)
	w.schedd.Edit(2, -1, func(j *condor.Job) { j.Status, j.HoldReasonCode = condor.Idle, 0 })
	w.crosscheck()
	said := condition(w.job("one"), v1alpha1.ConditionHeld)
	require.Equal(t, "FactoryPaused", said.Reason)
	require.Contains(t, said.Message, "HTCondor makes none of the 3 jobs that wait: somebody wants that (cluster 2). ")
	require.NoError(
		t,
		scheddtest.Err(
			w.schedd.Change(t.Context(), schedd.Identity{}, schedd.ReleaseHeld{Where: condor.ClusterConstraint(2)}),
		),
	)
	w.crosscheck()
	require.Equal(t, "NotHeld", condition(w.job("one"), v1alpha1.ConditionHeld).Reason)
}

func TestMoreJobsThanTheSiteSaysAreMadeByAFactory(t *testing.T) {
	w := newWorldWithOutput(t)
	w.Site.FactoryAbove = 5
	w.apply(htcjob("five", queueOf(5)))
	require.Len(t, w.schedd.Jobs(), 5)
	w.apply(htcjob("six", queueOf(6), maxFailures(intstr.FromInt32(3), "")))
	require.Len(t, w.schedd.Jobs(), 6, "with the launcher")
	w.schedd.HandOver(2)
	w.later(10 * time.Second)
	w.crosscheck()
	status := w.job("six").Status
	require.Equal(t, []int32{6, 6, 0, 6}, []int32{status.Active, status.Idle, status.Waiting, status.Parallelism})
}

func TestJobsOfALostLedgerAreNotHandedOverTwice(t *testing.T) {
	for name, lose := range map[string]func(*world){
		"before they were recorded": func(w *world) {
			w.apply(htcjob("one", queueOf(5), atOnce(2)))
			w.schedd.HandOver(1)
			w.loseLedger()
		},
		"while they run": func(w *world) {
			w.handedOver(5)
			w.schedd.Complete(2, -1, 0)
			w.crosscheck()
			w.loseLedger()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldWithOutput(t)
			lose(w)
			for range 3 {
				w.later(10 * time.Second)
			}
			require.Equal(t, 2, w.inTurn())
			require.Equal(t, v1alpha1.PhaseSucceeded, w.job("one").Status.Phase, w.job("one").Status.Message)
			require.EqualValues(t, 5, w.job("one").Status.Succeeded)
			require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
		})
	}
}

func TestASuspensionEndsTheJobsThatWereNotMade(t *testing.T) {
	w := newWorldWithOutput(t)
	w.handedOver(5)
	w.schedd.Complete(2, 0, 0)
	w.suspend("one", true)
	w.later(2 * time.Second)
	status := w.job("one").Status
	require.Equal(t, v1alpha1.PhaseSuspended, status.Phase, status.Message)
	require.EqualValues(t, 1, status.Succeeded)
	w.suspend("one", false)
	w.later(time.Minute)
	w.schedd.HandOver(3)
	for range 3 {
		w.later(10 * time.Second)
	}
	w.inTurn()
	status = w.job("one").Status
	require.Equal(t, v1alpha1.PhaseSucceeded, status.Phase, status.Message)
	require.EqualValues(t, 5, status.Succeeded)
	require.Equal(t, "1-4", status.Partial.Procs)
}

func TestJobsThatWereCancelledBeforeTheyWereMadeDoNotRunAfterASuspension(t *testing.T) {
	w := newWorldWithOutput(t)
	w.handedOver(5)
	w.cancelProcs("one", "1/3-4")
	w.suspend("one", true)
	w.later(2 * time.Second)
	require.Equal(t, v1alpha1.PhaseSuspended, w.job("one").Status.Phase)
	require.EqualValues(t, 2, w.job("one").Status.Failed)
	w.suspend("one", false)
	w.later(time.Minute)
	w.schedd.HandOver(3)
	for range 3 {
		w.later(10 * time.Second)
	}
	w.inTurn()
	status := w.job("one").Status
	require.Equal(t, "0-2", status.Partial.Procs)
	require.EqualValues(t, 3, status.Succeeded)
	require.Contains(t, status.Failures[0].Message, "cancelled by the annotation")
}

func TestAFactoryLeavesHalfOfItsPoolToThoseThatWait(t *testing.T) {
	w := newWorldWithOutput(t, withPools(cluster{"grid": {Limits: &v1alpha1.PoolLimits{MaxOpen: new(int32(8))}}}))
	w.apply(htcjob("one", inGrid, queueOf(1000), atOnce(500)))
	require.Equal(t, 2, w.schedd.HandOver(1))
	w.later(10 * time.Second)
	w.crosscheck()
	require.EqualValues(t, 8, w.job("one").Status.Idle)
	require.EqualValues(t, 8, w.job("one").Status.Parallelism)

	small := w.apply(htcjob("two", inGrid, queueOf(3)))
	require.Equal(t, "PoolLimit", small.Status.Reason, small.Status.Message)
	w.crosscheck()
	require.EqualValues(t, 4, w.job("one").Status.Parallelism)
	for proc := range 4 {
		w.schedd.Complete(2, proc, 0)
	}
	w.crosscheck()
	w.later(time.Minute)
	require.NotEmpty(t, w.job("two").Status.JobID, w.job("two").Status.Message)
	w.crosscheck()
	require.EqualValues(t, 5, w.job("one").Status.Parallelism, "nobody waits any more")
}

func TestAFactoryLeavesToItsNamespaceWhatOthersOfItHave(t *testing.T) {
	limits := &v1alpha1.PoolLimits{MaxOpenPerNamespace: new(int32(10))}
	w := newWorldWithOutput(t, withPools(cluster{"grid": {Limits: limits}}))
	w.apply(htcjob("two", inGrid, queueOf(8)))
	w.apply(htcjob("one", inGrid, queueOf(1000), atOnce(500)))
	require.Equal(t, 3, w.schedd.HandOver(2))
	w.later(10 * time.Second)
	w.crosscheck()
	require.EqualValues(t, 2, w.job("one").Status.Idle)
	w.schedd.Complete(1, -1, 0)
	w.crosscheck()
	w.later(time.Minute)
	w.crosscheck()
	require.EqualValues(t, 10, w.job("one").Status.Idle)
}

func TestAFactoryMakesNoMoreJobsWhenAnAttemptEndsEarly(t *testing.T) {
	one := int32(1)
	for name, tc := range map[string]struct {
		edit    func(*v1alpha1.HTCJob)
		code    int
		after   []int32
		phase   v1alpha1.Phase
		end     []int32
		removed int // of those at the end that were made
	}{
		"what runs goes on when too many have failed": {maxFailures(intstr.FromInt32(1), ""), 1, []int32{1, 0, 1, 8}, v1alpha1.PhaseFailed, []int32{0, 1, 1, 8}, 0},
		"unless that is not wanted":                   {maxFailures(intstr.FromInt32(1), v1alpha1.RemoveAll), 1, []int32{0, 0, 1, 9}, v1alpha1.PhaseFailed, []int32{0, 0, 1, 9}, 1},
		"enough have succeeded":                       {succeedsWith(v1alpha1.SuccessRule{SucceededCount: &one}), 0, []int32{0, 1, 0, 9}, v1alpha1.PhaseSucceeded, []int32{0, 1, 0, 9}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldWithOutput(t)
			w.handedOver(10, tc.edit)
			w.schedd.Run(2, 0)
			w.schedd.Run(2, 1)
			w.crosscheck()
			require.NoError(t, w.ends("one", 0, tc.code))
			w.schedd.Complete(2, 0, tc.code)
			w.crosscheck()
			w.later(10 * time.Second)
			require.Equal(t, tc.after, apartFrom(w.job("one")))
			require.Zero(t, w.job("one").Status.Waiting)
			w.schedd.Complete(2, 1, 0)
			require.LessOrEqual(t, w.inTurn(), 1, "none was made")
			job := w.job("one")
			require.Equal(t, tc.phase, job.Status.Phase, job.Status.Message)
			require.Equal(t, tc.end, apartFrom(job))
			require.Equal(t, int(tc.end[3]), w.run("one").Unmade+tc.removed)
		})
	}
}

func TestJobsThatWereNotMadeKeepTheirEndsWhenOthersRunAgain(t *testing.T) {
	w := newWorldWithOutput(t)
	w.handedOver(10, maxFailures(intstr.FromInt32(1), v1alpha1.RemoveAll))
	w.schedd.Run(2, 0)
	w.crosscheck()
	require.NoError(t, w.ends("one", 0, 1))
	w.schedd.Complete(2, 0, 1)
	w.inTurn()
	require.Equal(t, v1alpha1.PhaseFailed, w.job("one").Status.Phase)
	require.Equal(t, 8, w.run("one").Unmade)
	w.again("one", "a", "0,7")
	w.later(time.Minute)
	require.Equal(t, "0,7", w.run("one").Sent)
	require.Zero(t, w.run("one").Unmade)
	require.Contains(t, w.proc("one", 2, 9).Message, "HTCondor had not made this job")
}

func (w *world) somebodyRemoves(cluster int) {
	w.t.Helper()
	remove := schedd.Remove{Where: condor.ClusterConstraint(cluster), Reason: "an administrator"}
	require.NoError(w.t, scheddtest.Err(w.schedd.Change(w.t.Context(), schedd.Identity{}, remove)))
}

func TestJobsWhoseFactorySomebodyHasRemovedAreLost(t *testing.T) {
	w := newWorldWithOutput(t)
	w.handedOver(5)
	w.somebodyRemoves(2)
	for range 3 {
		w.crosscheck()
		w.later(time.Minute)
	}
	require.EqualValues(t, 5, w.job("one").Status.Failed)
	require.Equal(t, ledger.StatusFailed, w.proc("one", 1, 4).Status)
	require.Equal(t, "Lost", w.proc("one", 1, 4).Reason)
}

func TestASuspensionCountsTheJobsOfAFactoryThatSomebodyHasRemoved(t *testing.T) {
	w := newWorldWithOutput(t)
	w.handedOver(10_000)
	w.somebodyRemoves(2)
	w.clock = w.clock.Add(10 * time.Second) // until the schedd has forgotten it
	w.suspend("one", true)
	for range 2 {
		w.crosscheck()
		w.later(time.Minute)
	}
	w.crosscheck()
	require.Equal(t, v1alpha1.PhaseSuspended, w.job("one").Status.Phase)
	require.Equal(t, 10_000-2002, w.run("one").Unmade, "without rows")
}

func TestAFactoryThatWasSentWithFewerIsToldWhenMoreMayWait(t *testing.T) {
	w := newWorldWithOutput(t, withPools(cluster{"grid": {Limits: &v1alpha1.PoolLimits{MaxIdle: new(int32(4))}}}))
	w.apply(htcjob("other", inGrid, queueOf(2), atOnce(2)))
	w.schedd.HandOver(1)
	w.later(10 * time.Second)
	w.apply(htcjob("one", inGrid, queueOf(100), atOnce(4)))
	require.Equal(t, 1, w.run("one").FactoryIdle, "there was room for one")
	w.crosscheck()
	require.Zero(t, w.job("other").Status.Waiting)
	w.schedd.HandOver(3)
	w.later(10 * time.Second)
	require.Equal(t, 2, w.schedd.Calls(scheddtest.SetParallelism), "each of them once")
	require.Equal(t, 2, w.run("one").FactoryIdle, "the others' wait, too")
	w.schedd.Complete(2, -1, 0)
	w.crosscheck()
	require.Equal(t, 4, w.run("one").FactoryIdle)
}
