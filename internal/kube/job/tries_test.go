package job

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

var errLimit = &condor.Error{
	Kind:     condor.Limit,
	Command:  "condor_submit",
	ExitCode: 1,
	Stderr:   "ERROR: Number of submitted jobs would exceed MAX_JOBS_PER_OWNER",
}

func TestAScheddAtItsLimitIsAskedByOneHTCJob(t *testing.T) {
	w := newWorld(t)
	w.schedd.Down(errLimit, scheddtest.Submit)
	var names []string
	for i := range 10 {
		names = append(names, fmt.Sprintf("waiting-%d", i))
		w.apply(htcjob(names[i]))
	}
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
	for _, name := range names {
		require.Equal(t, "LimitReached", submitted(w.job(name)).Reason)
		require.Contains(t, submitted(w.job(name)).Message, "MAX_JOBS_PER_OWNER")
	}
	asked, read := w.schedd.Calls(scheddtest.Queue), w.schedd.Calls(scheddtest.History)
	for range 60 {
		w.later(10 * time.Second)
	}
	require.Less(t, w.schedd.Calls(scheddtest.Submit), 20, "ten minutes with a pause of up to one")
	require.Equal(t, asked, w.schedd.Calls(scheddtest.Queue), "what was not taken is not looked for")
	require.Equal(t, read, w.schedd.Calls(scheddtest.History))

	w.schedd.Down(nil, scheddtest.Submit)
	w.later(2 * time.Minute)
	for _, name := range names {
		require.Equal(t, v1alpha1.PhaseIdle, w.job(name).Status.Phase, "each that was sent has woken others")
	}
	require.Len(t, w.schedd.Jobs(), 10)
}

func TestTheSizeOfOneSubmissionIsNobodyElsesLimit(t *testing.T) {
	w := newWorld(t)
	large := &condor.Error{
		Kind:     condor.Limit,
		ExitCode: 1,
		Stderr:   "ERROR: Number of submitted jobs would exceed MAX_JOBS_PER_SUBMISSION",
	}
	w.schedd.Fail(scheddtest.Submit, scheddtest.Fault{Err: large})
	require.Equal(t, "LimitReached", submitted(w.apply(htcjob("large"))).Reason)
	load, err := w.PoolLoad(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, load.Reason, "its pool takes others")
	require.Equal(t, v1alpha1.PhaseIdle, w.apply(htcjob("small")).Status.Phase)
}

func TestAFewJobsPassBesideManyThatTheScheddRefuses(t *testing.T) {
	w := newWorld(t)
	w.schedd.Fail(scheddtest.Submit, scheddtest.Fault{Err: errLimit})
	large := w.apply(htcjob("large", queueOf(1000)))
	require.Equal(t, "LimitReached", submitted(large).Reason)
	require.Contains(t, submitted(large).Message, "MAX_JOBS_PER_OWNER: with it the account would have more jobs")
	require.Equal(t, v1alpha1.PhaseIdle, w.apply(htcjob("ten", queueOf(10))).Status.Phase)
	require.Equal(t, "LimitReached", submitted(w.apply(htcjob("as-large", queueOf(1000)))).Reason)
	require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit))
	load, err := w.PoolLoad(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, load.Reason)
	require.Equal(t, 2, load.Waiting)
	w.later(2 * time.Minute)
	require.Equal(t, v1alpha1.PhaseIdle, w.job("large").Status.Phase)
}

// bounded records how far the history was read.
type bounded struct {
	*scheddtest.Schedd
	since *[]string
}

func (b bounded) Query(ctx context.Context, id schedd.Identity, q schedd.Query, fn condor.JobFunc) error {
	if h := q.Left; h != nil && h.Limit == 0 {
		*b.since = append(*b.since, h.Since)
	}
	return b.Schedd.Query(ctx, id, q, fn)
}

func TestAFailureThatRepeatsItselfIsTriedLessAndLessAndThenNoMore(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("before"))
	w.schedd.Complete(1, 0, 0)
	w.schedd.Leave(1, 0)
	var since []string
	w.asks(bounded{w.schedd, &since})
	for i := range 200 { // its numbers differ
		w.schedd.Fail(
			scheddtest.Submit,
			scheddtest.Fault{
				Err: &condor.Error{
					Command:  "condor_submit",
					ExitCode: 1,
					Stderr:   fmt.Sprintf("ERROR: the moon, cluster %d", i),
				},
			},
		)
	}
	w.apply(htcjob("one"))
	for range 360 {
		w.later(10 * time.Second)
	}
	sent := w.schedd.Calls(scheddtest.Submit) - 1
	require.Less(t, sent, 25, "in an hour")
	require.Greater(t, sent, 10)
	require.Equal(t, "1.0", since[len(since)-1], "what left the queue before the submission is not read again")
	for range 12 * 60 {
		w.later(time.Minute)
	}
	require.Equal(t, v1alpha1.PhaseFailed, w.job("one").Status.Phase)
	require.Contains(t, submitted(w.job("one")).Message, "failed 100 times with the same words")
	require.Contains(t, submitted(w.job("one")).Message, "the moon")
	require.Equal(t, 100, w.schedd.Calls(scheddtest.Submit)-1)
}

func TestARefusalAtTheCommitIsBelievedWhenItIsRepeated(t *testing.T) {
	refusal := func(words string) scheddtest.Fault {
		return scheddtest.Fault{
			Err: &condor.Error{
				Kind:     condor.Refused,
				AtCommit: true,
				Command:  "condor_submit",
				ExitCode: 1,
				Stderr:   words,
			},
		}
	}
	for name, c := range map[string]struct {
		says  []string
		phase v1alpha1.Phase
		calls int
	}{
		"a site's own":               {[]string{"no such project", "no such project"}, v1alpha1.PhaseFailed, 2},
		"about each cluster of ours": {[]string{"bad attribute for job 70.0", "bad attribute for job 71.0"}, v1alpha1.PhaseFailed, 2},
		"what another left behind":   {[]string{"bad attribute for job 69.0"}, v1alpha1.PhaseIdle, 2},
		"the other leaves it twice":  {[]string{"bad attribute for job 69.0", "bad attribute for job 69.0"}, v1alpha1.PhaseIdle, 3},
		"two others leave something": {[]string{"bad attribute for job 69.0", "no such project"}, v1alpha1.PhaseIdle, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, words := range c.says {
				w.schedd.Fail(scheddtest.Submit, refusal(words))
			}
			w.apply(htcjob("one"))
			w.later(time.Minute)
			require.Equal(t, c.phase, w.job("one").Status.Phase)
			require.Equal(t, c.calls, w.schedd.Calls(scheddtest.Submit))
		})
	}
}

func TestOneThatCannotGoKeepsNoPlaceBeforeOthersOfItsNamespace(t *testing.T) {
	w, _, first, second, _ := newWorldOfPools(t)
	w.Site.MaxOpen = 2
	begun := w.clock
	created := func(after time.Duration) func(*v1alpha1.HTCJob) {
		return func(job *v1alpha1.HTCJob) { job.CreationTimestamp = metav1.NewTime(begun.Add(after)) }
	}
	w.apply(htcjob("there", poolOf("", "second", "")))
	w.apply(htcjob("here"))
	w.apply(htcjob("older", poolOf("", "second", ""), created(time.Second)))
	require.Equal(t, "NamespaceLimit", submitted(w.apply(htcjob("younger", created(2*time.Second)))).Reason)
	second.Down(errUnreachable)
	require.Error(t, w.Refresh(t.Context()))
	w.settle()

	first.Complete(1, 0, 0)
	require.NoError(t, w.callback("here", 0, 0))
	require.Error(t, w.Crosscheck(t.Context()), "of the second schedd")
	w.settle()
	require.Equal(t, metav1.ConditionFalse, condition(w.job("older"), v1alpha1.ConditionBackendReachable).Status)
	require.Equal(t, v1alpha1.PhaseIdle, w.job("younger").Status.Phase)
	require.Len(t, first.Jobs(), 2)

	second.Down(nil)
	first.Complete(2, 0, 0)
	require.NoError(t, w.callback("younger", 0, 0))
	w.crosscheck()
	w.later(time.Minute)
	require.Equal(t, v1alpha1.PhaseIdle, w.job("older").Status.Phase)
}
