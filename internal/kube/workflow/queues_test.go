package workflow

import (
	"context"
	"errors"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

func TestEachQueueIsInTheDocs(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/metrics.md")
	require.NoError(t, err)
	row := regexp.MustCompile("(?m)^.*`htcd_workflow_queue_depth`.*$").FindString(string(doc))
	for queue := range newWorld(t).Waiting() {
		require.Contains(t, row, "`"+queue+"`")
	}
}

func TestAResyncLooksAtWhatIsNotOverAndNewsGoFirst(t *testing.T) {
	w := newWorld(t)
	running, over := newWorkflow("running"), newWorkflow("over")
	over.Status.Phase = v1alpha1.PhaseSucceeded
	changed := running.DeepCopy()
	changed.ResourceVersion = "2"
	events := w.Handler()
	events.OnAdd(newWorkflow("old"), true)
	events.OnUpdate(running, running)
	events.OnUpdate(over, over)
	require.Equal(t, []int{2, 0}, []int{w.Routine.Len(), w.Changed.Len()})
	events.OnAdd(newWorkflow("new"), false)
	events.OnUpdate(running, changed)
	require.Equal(t, []int{2, 2}, []int{w.Routine.Len(), w.Changed.Len()})
}

// slow is a schedd whose condor_rm does not return until it is released.
type slow struct {
	*scheddtest.Schedd
	began, letGo chan struct{}
}

func (s slow) Change(ctx context.Context, id schedd.Identity, c schedd.Change) (schedd.Outcome, error) {
	if _, is := c.(schedd.Remove); is {
		s.began <- struct{}{}
		<-s.letGo
	}
	return s.Schedd.Change(ctx, id, c)
}

func TestASubmissionDoesNotWaitForARemoval(t *testing.T) {
	w := newWorld(t)
	w.apply(newWorkflow("gone"))
	s := slow{w.schedd, make(chan struct{}, 10), make(chan struct{})}
	w.asks = s
	w.restart()
	w.settle()

	require.NoError(t, objects{w}.Delete(t.Context(), w.flow("gone")))
	key, _ := w.Changed.Get()
	w.SyncOne(t.Context(), key)
	w.Changed.Done(key)
	key, _ = w.Actions.Queues[reconciler.Deleting].Get()
	removed := make(chan struct{})
	go func() { w.ActOne(t.Context(), reconciler.Deleting, key); close(removed) }()
	<-s.began

	require.Equal(t, v1alpha1.PhaseIdle, w.apply(newWorkflow("new")).Status.Phase)
	require.False(t, w.Actions.Claim(key, w.clock), "nobody else acts for what is being removed")
	close(s.letGo)
	<-removed
}

func TestALimitThatAnHTCJobMetHoldsBackWorkflowsToo(t *testing.T) {
	w := newWorld(t)
	limit := &condor.Error{
		Kind:     condor.Limit,
		Command:  "condor_submit",
		ExitCode: 1,
		Stderr:   "ERROR: Number of submitted jobs would exceed MAX_JOBS_PER_OWNER",
	}
	id, err := w.Common(t.Context(), schedd.Endpoint{Schedd: scheddtest.Name})
	require.NoError(t, err)
	w.Limits.Met(id, 1, limit, w.clock.Add(time.Minute))
	w.apply(newWorkflow("one"))
	require.Zero(t, w.schedd.Calls(scheddtest.Submit))
	reason, _ := w.says("one", v1alpha1.ConditionSubmitted)
	require.Equal(t, "LimitReached", reason)
	w.later(2 * time.Minute)
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
}

func TestAWorkflowIsWokenWhenSomethingElseWasTakenOrTheScheddAnswersAgain(t *testing.T) {
	w := newWorld(t)
	limit := &condor.Error{
		Kind:     condor.Limit,
		Command:  "condor_submit",
		ExitCode: 1,
		Stderr:   "ERROR: Number of submitted jobs would exceed MAX_JOBS_PER_OWNER",
	}
	id, err := w.Common(t.Context(), schedd.Endpoint{Schedd: scheddtest.Name})
	require.NoError(t, err)
	w.Limits.Met(id, 1, limit, w.clock.Add(time.Hour))
	w.apply(newWorkflow("limited"))
	require.Zero(t, w.schedd.Calls(scheddtest.Submit))
	w.Limits.Over(id, 1) // by an HTCJob
	w.settle()
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))

	w.sender.Schedd = w.Answering // as in the daemon
	silent := &condor.Error{Kind: condor.Unreachable, Command: "condor_q", Stderr: "no schedd"}
	w.schedd.Down(silent)
	require.Error(t, scheddtest.Err(w.Answering.Ping(t.Context(), id, schedd.Reading)))
	w.apply(newWorkflow("unreached"))
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
	w.schedd.Down(nil)
	require.NoError(t, scheddtest.Err(w.Answering.Ping(t.Context(), id, schedd.Reading)))
	w.settle()
	require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit))
}

func TestWorkflowsAreCheckedTogether(t *testing.T) {
	w := newWorld(t)
	var keys []string
	for _, name := range w.several(3) {
		keys = append(keys, "default/"+name)
	}
	asks := func(keys ...string) []int {
		queue, history := w.schedd.Calls(scheddtest.Queue), w.schedd.Calls(scheddtest.History)
		w.checkers.Serve(t.Context(), keys)
		return []int{w.schedd.Calls(scheddtest.Queue) - queue, w.schedd.Calls(scheddtest.History) - history}
	}
	one := asks(keys[0])
	require.Equal(t, one, asks(keys...))
	require.Equal(t, []int{1, 1, 1}, []int{
		w.checks.NumRequeues(keys[0]) - 1, w.checks.NumRequeues(keys[1]), w.checks.NumRequeues(keys[2]),
	})
	require.Equal(t, one, asks(append(keys, "default/unknown")...))
	require.Zero(t, w.checks.NumRequeues("default/unknown"))
}

func TestThePassesOverNodesAreCounted(t *testing.T) {
	w := newWorld(t)
	w.apply(newWorkflow("w"))
	w.passed = nil
	require.NoError(t, w.Crosscheck(t.Context()))
	w.schedd.Down(errors.New("no answer"), scheddtest.History)
	require.Error(t, w.nodes.Crosscheck(t.Context()))
	require.Len(t, w.passed, 2)
	require.Regexp(t, "^cross-check at [a-z.]+: <nil>$", w.passed[0])
	require.Regexp(t, "^cross-check at [a-z.]+: .*no answer$", w.passed[1])
}
