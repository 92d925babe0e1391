package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

func maxFailures(of intstr.IntOrString, on v1alpha1.OnMaxFailures) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) { job.Spec.MaxFailures, job.Spec.OnMaxFailures = &of, on }
}

func succeedsWith(rules ...v1alpha1.SuccessRule) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) { job.Spec.SuccessPolicy = &v1alpha1.SuccessPolicy{Rules: rules} }
}

func apartFrom(job *v1alpha1.HTCJob) []int32 { return append(counts(job), job.Status.Stopped) }

func TestWhatWaitsIsRemovedWhenMaxFailuresIsReachedAndWhatRunsGoesOn(t *testing.T) {
	for _, restart := range []bool{false, true} {
		w := newWorld(t)
		w.apply(htcjob("ten", queueOf(10), maxFailures(intstr.FromString("15%"), "")))
		for proc := range 4 {
			w.schedd.Run(1, proc)
		}
		w.crosscheck()
		require.NoError(t, w.ends("ten", 0, 3))
		require.Equal(t, []int32{9, 0, 1, 0}, apartFrom(w.job("ten")), "15% of 10 are 2")
		if restart {
			w.schedd.Fail(scheddtest.Remove, scheddtest.Fault{Err: errBroken})
		}
		require.NoError(t, w.ends("ten", 1, 3))
		if restart {
			w.restart()
		}
		w.later(time.Minute)
		job := w.job("ten")
		require.Equal(t, []int32{2, 0, 2, 6}, apartFrom(job))
		require.Equal(t, v1alpha1.PhaseRunning, job.Status.Phase)
		require.Equal(t, "MaxFailuresReached", job.Status.Reason)
		require.Equal(t, "2 of 10 jobs failed (spec.maxFailures: 15%): 6 other jobs were removed", job.Status.Message)
		require.Len(t, w.schedd.Jobs(), 4)

		asked := w.schedd.Calls(scheddtest.Remove)
		w.later(time.Hour)
		require.Equal(t, asked, w.schedd.Calls(scheddtest.Remove), "there is nothing to remove")
		w.schedd.Edit(1, 2, func(j *condor.Job) { j.Status = condor.Idle })
		w.crosscheck()
		w.later(time.Minute)
		require.Equal(t, []int32{1, 0, 2, 7}, apartFrom(w.job("ten")), "what is evicted does not run again")
		w.schedd.Complete(1, 3, 0)
		w.crosscheck()
		w.later(time.Minute)
		job = w.job("ten")
		require.Equal(t, []int32{0, 1, 2, 7}, apartFrom(job))
		require.Equal(t, v1alpha1.PhaseFailed, job.Status.Phase)
		said := condition(job, v1alpha1.ConditionFailed)
		require.Equal(t, "MaxFailuresReached", said.Reason)
		require.Contains(t, said.Message, "2 of 10 jobs failed (spec.maxFailures: 15%): 7 other jobs were removed; ")
		require.Len(t, job.Status.Failures, 2)
		require.NotNil(t, job.Status.CompletionTime)
		require.EqualValues(t, 1, w.run("ten").Attempt)
	}
}

func TestAllIsRemovedWhenMaxFailuresIsReachedIfThatIsAsked(t *testing.T) {
	for name, change := range map[string]func(*world){
		"from the beginning": func(*world) {},
		"later": func(w *world) {
			w.edit("four", func(spec *v1alpha1.HTCJobSpec) { spec.OnMaxFailures = v1alpha1.RemoveAll })
		},
		"by spec.suspend": func(w *world) { w.suspend("four", true) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			on := v1alpha1.RemoveWaiting
			if name == "from the beginning" {
				on = v1alpha1.RemoveAll
			}
			w.apply(htcjob("four", queueOf(4), maxFailures(intstr.FromInt32(1), on)))
			w.schedd.Run(1, -1)
			w.crosscheck()
			require.NoError(t, w.ends("four", 0, 3))
			w.later(time.Minute)
			change(w)
			w.later(time.Minute)
			require.Equal(t, []int32{0, 0, 1, 3}, apartFrom(w.job("four")))
			require.Equal(t, v1alpha1.PhaseFailed, w.job("four").Status.Phase)
		})
	}
}

func TestFailuresCountForEachAttempt(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("four", queueOf(4), maxFailures(intstr.FromInt32(2), "")))
	require.NoError(t, w.ends("four", 0, 3))
	require.NoError(t, w.ends("four", 1, 3))
	w.later(time.Minute)
	require.Equal(t, []int32{0, 0, 2, 2}, apartFrom(w.job("four")))
	job := w.again("four", "2", "1")
	require.Equal(t, []int32{1, 0, 3, 0}, apartFrom(job), "the others have not succeeded")
	w.schedd.Complete(2, 0, 3)
	w.crosscheck()
	require.Equal(t, v1alpha1.PhaseFailed, w.job("four").Status.Phase)
	job = w.again("four", "3", "failed")
	require.Equal(t, []int32{4, 0, 0, 0}, apartFrom(job))
}

func TestEnoughSuccessesEndTheRest(t *testing.T) {
	for name, c := range map[string]struct {
		rules []v1alpha1.SuccessRule
		is    bool
	}{
		"so many":                       {[]v1alpha1.SuccessRule{{SucceededCount: new(int32(2))}}, true},
		"more than there are":           {[]v1alpha1.SuccessRule{{SucceededCount: new(int32(3))}}, false},
		"these":                         {[]v1alpha1.SuccessRule{{SucceededIndexes: "1,3"}}, true},
		"others":                        {[]v1alpha1.SuccessRule{{SucceededIndexes: "0-1"}}, false},
		"so many of these":              {[]v1alpha1.SuccessRule{{SucceededIndexes: "2-4", SucceededCount: new(int32(1))}}, true},
		"the second rule, if any":       {[]v1alpha1.SuccessRule{{SucceededIndexes: "0"}, {SucceededIndexes: "3"}}, true},
		"a leader that has not started": {[]v1alpha1.SuccessRule{{SucceededIndexes: "4"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(htcjob("five", queueOf(5), succeedsWith(c.rules...)))
			w.schedd.Run(1, 2)
			for proc, code := range map[int]int{0: 7, 1: 0, 3: 0} {
				w.schedd.Complete(1, proc, code)
			}
			w.crosscheck()
			w.later(time.Minute)
			if !c.is {
				require.Equal(t, []int32{2, 2, 1, 0}, apartFrom(w.job("five")))
				return
			}
			ended := func() {
				t.Helper()
				job := w.job("five")
				require.Equal(t, []int32{0, 2, 1, 2}, apartFrom(job))
				require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase)
				said := condition(job, v1alpha1.ConditionComplete)
				require.Equal(t, "SuccessPolicy", said.Reason)
				require.Equal(
					t,
					"2 jobs succeeded, which is enough (spec.successPolicy); 1 failed, 2 others were removed",
					said.Message,
				)
				require.True(t, meta.IsStatusConditionTrue(job.Status.Conditions, v1alpha1.ConditionSuccessCriteria))
			}
			ended()
			w.restart()
			w.settle()
			ended()
			w.loseLedger()
			w.crosscheck()
			ended()
		})
	}
}

func TestEnoughSuccessesAreASuccessThoughNobodyWasThereToEndTheRest(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("three", queueOf(3), succeedsWith(v1alpha1.SuccessRule{SucceededCount: new(int32(2))})))
	for proc, code := range []int{0, 3, 0} {
		w.schedd.Complete(1, proc, code)
	}
	w.crosscheck()
	require.Equal(t, []int32{0, 2, 1, 0}, apartFrom(w.job("three")))
	require.Equal(t, v1alpha1.PhaseSucceeded, w.job("three").Status.Phase)
	require.EqualValues(t, 0, *w.job("three").Status.ExitCode)
	job := w.again("three", "2", "1")
	require.EqualValues(t, 1, job.Status.Active, "it was asked for though there are enough")
	w.schedd.Complete(2, 0, 0)
	w.crosscheck()
	require.Equal(t, []int32{0, 3, 0, 0}, apartFrom(w.job("three")))
}

func TestASuccessThatHTCondorDeniesIsNone(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("two", queueOf(2), succeedsWith(v1alpha1.SuccessRule{SucceededCount: new(int32(1))})))
	w.schedd.Run(1, 0)
	require.NoError(t, w.callback("two", 0, 0))
	w.schedd.Complete(1, 0, 3)
	w.later(time.Minute)
	require.Equal(t, []int32{0, 0, 1, 1}, apartFrom(w.job("two")))
	require.Equal(t, v1alpha1.PhaseFailed, w.job("two").Status.Phase)
	require.Contains(t, condition(w.job("two"), v1alpha1.ConditionFailed).Message, "HTCondor says otherwise")
}

func TestRulesThatCanNeverBeMetAreRefused(t *testing.T) {
	for rule, want := range map[v1alpha1.SuccessRule]string{
		{SucceededIndexes: "0,5"}: "successPolicy.rules[0].succeededIndexes: there is no job 5",
	} {
		w := newWorld(t)
		job := w.apply(htcjob("five", queueOf(5), succeedsWith(rule)))
		require.Equal(t, v1alpha1.PhaseFailed, job.Status.Phase)
		require.Contains(t, submitted(job).Message, want)
	}
	w := newWorld(t)
	job := w.apply(
		htcjob(
			"five",
			queueOf(5),
			succeedsWith(v1alpha1.SuccessRule{SucceededIndexes: "0-3", SucceededCount: new(int32(5))}),
		),
	)
	require.Contains(
		t,
		submitted(job).Message,
		"successPolicy.rules[0].succeededCount 5 is more than the 4 jobs that the rule is about",
	)
}

func TestALedgerThatIsLostWhileTheRestIsRemovedIsNoReasonToGoOn(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("four", queueOf(4), maxFailures(intstr.FromInt32(1), "")))
	w.schedd.Run(1, 1)
	w.crosscheck()
	require.NoError(t, w.ends("four", 0, 3))
	w.later(time.Minute)
	require.Equal(t, []int32{1, 0, 1, 2}, apartFrom(w.job("four")))
	w.loseLedger()
	w.crosscheck()
	w.later(time.Minute)
	require.Equal(t, []int32{1, 0, 1, 2}, apartFrom(w.job("four")))
	w.schedd.Complete(1, 1, 0)
	w.crosscheck()
	w.later(time.Minute)
	require.Equal(t, []int32{0, 1, 1, 2}, apartFrom(w.job("four")))
	require.Equal(t, "MaxFailuresReached", condition(w.job("four"), v1alpha1.ConditionFailed).Reason)
	require.Equal(t, ledger.Submitted, w.run("four").State)
}
