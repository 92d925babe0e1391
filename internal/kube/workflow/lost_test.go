package workflow

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
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

// wait lets a lost ledger be noticed, more than twice.
func (w *world) wait() {
	for range 5 {
		w.later(time.Minute)
		require.NoError(w.t, w.Crosscheck(w.t.Context()))
	}
}

func TestWhatALostDAGWaitsForStandsInACondition(t *testing.T) {
	t.Parallel()
	s := newSituation(t)
	s.Workflow.Finalizers, s.Workflow.Status.JobID = []string{v1alpha1.Finalizer}, []string{"7.0"}
	require.True(t, s.lost())
	status := newStatus(s, lifecycle.View{Blocker: &lifecycle.Blocker{Reason: "Retrying", Message: "no answer"}})
	require.Len(t, status.Conditions, 1)
	require.Equal(t, "no answer", meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionSubmitted).Message)
}

func TestAnEndedWorkflowsStatusThatIsEditedIsNotBelieved(t *testing.T) {
	for name, restarts := range map[string]bool{"while no htcd runs": true, "while one runs": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(oneStep("flow"))
			w.ends(1)
			flow := w.flow("flow").DeepCopy()
			told := flow.Status
			require.Equal(t, v1alpha1.PhaseSucceeded, told.Phase)
			flow.Status.Attempt, flow.Status.JobID, flow.Status.Phase = 99, []string{"7.0"}, v1alpha1.PhaseFailed
			require.NoError(t, w.store.Update(flow))
			if w.SameLedger = restarts; restarts {
				w.restart()
			}
			w.all()
			w.wait()
			require.EqualValues(t, 1, w.flow("flow").Status.Attempt)
			require.Equal(t, told.Phase, w.flow("flow").Status.Phase)
			require.Equal(t, told.JobID, w.flow("flow").Status.JobID)
			require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
		})
	}
}

func TestWhatSomebodyWritesIntoTheStatusWhileNoHtcdRunsIsReplacedByTheLedgers(t *testing.T) {
	ended := func(s *v1alpha1.HTCWorkflowStatus) { s.Phase, s.CompletionTime = v1alpha1.PhaseFailed, s.StartTime }
	edits := map[string]func(*v1alpha1.HTCWorkflowStatus){
		"it has ended":          ended,
		"it runs":               func(s *v1alpha1.HTCWorkflowStatus) { s.Phase, s.CompletionTime = v1alpha1.PhaseRunning, nil },
		"nothing":               func(s *v1alpha1.HTCWorkflowStatus) { *s = v1alpha1.HTCWorkflowStatus{Phase: v1alpha1.PhasePending} },
		"another DAG":           func(s *v1alpha1.HTCWorkflowStatus) { s.JobID = []string{"7.0"} },
		"another spec was sent": func(s *v1alpha1.HTCWorkflowStatus) { s.SpecHash, s.Rerun, s.ObservedGeneration = "forged", "forged", 7 },
		"a later DAG":           func(s *v1alpha1.HTCWorkflowStatus) { s.JobID = append(s.JobID, "7.0") },
		"a later attempt":       func(s *v1alpha1.HTCWorkflowStatus) { s.Attempt, s.JobID = 99, []string{"7.0"} },
		"a later attempt's end": func(s *v1alpha1.HTCWorkflowStatus) { ended(s); s.Attempt, s.JobID = 99, []string{"7.0"} },
		"a later attempt's end, without its DAGs": func(s *v1alpha1.HTCWorkflowStatus) { ended(s); s.Attempt, s.JobID = 99, nil },
	}
	for name, edit := range edits {
		for state, over := range map[string]bool{"while it runs": false, "after its end": true} {
			t.Run(name+", "+state, func(t *testing.T) {
				w := newWorld(t)
				w.apply(oneStep("flow"))
				w.SameLedger = over && strings.Contains(name, "later") // else nobody can tell
				if w.passes(1); over {
					w.ends(1)
				}
				told := w.flow("flow").DeepCopy().Status
				require.Equal(t, over, told.Phase.Terminal())
				flow := w.flow("flow").DeepCopy()
				edit(&flow.Status)
				require.NoError(t, w.store.Update(flow))
				w.clock = w.clock.Add(time.Minute)
				w.restart()
				w.wait()
				now := w.flow("flow").DeepCopy().Status
				before := meta.FindStatusCondition(told.Conditions, v1alpha1.ConditionSubmitted)
				after := meta.FindStatusCondition(now.Conditions, v1alpha1.ConditionSubmitted)
				require.NotNil(t, after)
				require.Equal(
					t,
					[]any{before.Status, before.Reason, before.Message},
					[]any{after.Status, after.Reason, after.Message},
				)
				now.Conditions, now.LastChecked = told.Conditions, told.LastChecked
				require.Equal(t, told, now)
				if !over {
					w.ends(1)
				}
				require.Equal(t, v1alpha1.PhaseSucceeded, w.flow("flow").Status.Phase)
				require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
			})
		}
	}
}

// A status that somebody edits after htcd was killed in the middle of a submission.
func TestAnEndThatSomebodyWritesIntoTheStatusDoesNotHideAnOpenSubmission(t *testing.T) {
	for name, attempt := range map[string]int32{"of that attempt": 1, "of a later one": 5} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.schedd.Fail(scheddtest.Submit, scheddtest.Fault{Err: errors.New("killed"), After: true})
			w.apply(oneStep("flow"))
			flow := w.flow("flow").DeepCopy()
			flow.Status = v1alpha1.HTCWorkflowStatus{
				Phase:              v1alpha1.PhaseSucceeded,
				Attempt:            attempt,
				JobID:              []string{"77.0"},
				SpecHash:           flow.SpecHash(),
				ObservedGeneration: 1,
				StartTime:          new(metav1.NewTime(w.clock)),
				CompletionTime:     new(metav1.NewTime(w.clock)),
			}
			require.NoError(t, w.store.Update(flow))
			w.clock = w.clock.Add(time.Minute)
			w.restart()
			w.wait()
			require.False(t, w.flow("flow").Status.Phase.Terminal())
			require.EqualValues(t, 1, w.flow("flow").Status.Attempt)
			require.Equal(t, []string{"1.0"}, w.flow("flow").Status.JobID)
			require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
		})
	}
}

// A ledger that is put back may have a DAG as an intent that has ended since, and that the history has forgotten.
func TestAnEndThatHTCondorDoesNotDenyStandsThoughTheLedgerHasAnIntent(t *testing.T) {
	w := newWorld(t)
	w.apply(oneStep("flow"))
	w.ends(1)
	told := w.flow("flow").DeepCopy().Status
	require.Equal(t, v1alpha1.PhaseSucceeded, told.Phase)
	require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error {
		run, err := tx.LatestRun("uid-flow")
		require.NoError(t, err)
		require.NoError(t, tx.DeleteRuns("uid-flow"))
		run.State, run.Cluster, run.Confirmed, run.Submitted, run.Ended =
			ledger.Intent, 0, false, time.Time{}, time.Time{}
		return tx.InsertRun(run)
	}))
	w.schedd.Forget()
	w.clock = w.clock.Add(time.Minute)
	w.restart()
	w.wait()
	asked := w.schedd.Calls(scheddtest.Queue)
	w.later(time.Minute)
	require.Equal(t, asked, w.schedd.Calls(scheddtest.Queue), "it is not asked any more")
	require.Equal(t, told.Phase, w.flow("flow").Status.Phase)
	require.Equal(t, told.JobID, w.flow("flow").Status.JobID)
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
}

func TestADAGIsAdoptedWhenTheLedgerIsLost(t *testing.T) {
	w := newWorld(t)
	before := w.apply(newWorkflow("flow")).Status
	require.Equal(t, []string{"1.0"}, before.JobID)
	w.openLedger()
	w.wait()
	require.Equal(t, before.JobID, w.flow("flow").Status.JobID)
	require.Equal(t, before.Nodes, w.flow("flow").Status.Nodes)
	w.ends(1)
	require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit), "the next level follows")
	require.Equal(t, []string{"1.0", "2.0"}, w.flow("flow").Status.JobID)

	w.openLedger()
	w.wait()
	require.Equal(t, []string{"1.0", "2.0"}, w.flow("flow").Status.JobID)
	require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit), "the second one is adopted after the first")
	w.ends(2)
	require.Equal(t, v1alpha1.PhaseSucceeded, w.flow("flow").Status.Phase)
	require.Equal(t, v1alpha1.NodeCounts{Total: 3, Done: 3}, w.flow("flow").Status.Nodes)
	w.fetchAgain("flow")
	reason, _ := w.says("flow", v1alpha1.ConditionOutputFetched)
	require.Equal(t, "Fetched", reason)
}

func TestWhatWasSentAfterTheLastStatusIsFound(t *testing.T) {
	w := newWorld(t)
	w.apply(newWorkflow("flow"))
	old := w.flow("flow").Status
	w.ends(1)
	stale := w.flow("flow").DeepCopy()
	require.Equal(t, []string{"1.0", "2.0"}, stale.Status.JobID)
	stale.Status = old
	require.NoError(t, w.store.Update(stale))
	w.openLedger()
	w.wait()
	require.Equal(t, []string{"1.0", "2.0"}, w.flow("flow").Status.JobID)
	require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit))
}

func TestALaterDAGThatCannotBeProvedIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.apply(newWorkflow("flow"))
	w.ends(1)
	w.schedd.Edit(2, 0, func(j *condor.Job) { j.Tag.Nodes = "00" })
	w.openLedger()
	w.wait()
	reason, message := w.says("flow", v1alpha1.ConditionSubmitted)
	require.Equal(t, reasonLedgerLost, reason)
	require.Contains(t, message, "apply it again")
	require.Equal(t, []string{"1.0", "2.0"}, w.flow("flow").Status.JobID, "the status keeps what it knows")
	require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit))
	w.delete("flow")
	w.wait()
	require.Nil(t, w.flow("flow"))
	require.Empty(t, w.schedd.Jobs())
}

func TestALaterAttemptIsAdoptedWithItsNumber(t *testing.T) {
	w := newWorld(t)
	w.apply(oneStep("flow"))
	w.ends(1)
	again := w.flow("flow").DeepCopy()
	again.Annotations = map[string]string{v1alpha1.RerunAnnotation: "x"}
	require.NoError(t, w.store.Update(again))
	w.restart()
	for range 2 { // nobody else has sent one since
		w.later(time.Minute)
	}
	require.EqualValues(t, 2, w.flow("flow").Status.Attempt)
	w.openLedger()
	w.wait()
	require.EqualValues(t, 2, w.flow("flow").Status.Attempt)
	require.Equal(t, []string{"2.0"}, w.flow("flow").Status.JobID)
	w.ends(2)
	require.Equal(t, v1alpha1.PhaseSucceeded, w.flow("flow").Status.Phase)
	require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit))
}

func TestWhichLostDAGComesNext(t *testing.T) {
	status := func(attempt int32, phase v1alpha1.Phase, ids ...string) v1alpha1.HTCWorkflowStatus {
		return v1alpha1.HTCWorkflowStatus{Attempt: attempt, Phase: phase, JobID: ids}
	}
	row := func(number, cluster int) DAG { return DAG{Run: ledger.Run{Attempt: number, Cluster: cluster}} }
	running := v1alpha1.PhaseRunning
	for name, c := range map[string]struct {
		status  v1alpha1.HTCWorkflowStatus
		attempt int // of the ledger
		rows    []DAG
		sent    map[int]int
		want    lostDAG
		says    string // of an error
	}{
		"nothing was sent":                              {status(0, ""), 0, nil, nil, lostDAG{}, ""},
		"the first is in no status":                     {status(0, ""), 0, nil, map[int]int{1: 8}, lostDAG{number: 1}, ""},
		"the first, and another":                        {status(1, running, "8.0", "9.0"), 0, nil, map[int]int{1: 8, 2: 9}, lostDAG{number: 1, told: true}, ""},
		"the second":                                    {status(1, running, "8.0", "9.0"), 1, []DAG{row(1, 8)}, map[int]int{1: 8, 2: 9}, lostDAG{number: 2, told: true}, ""},
		"one that the status does not know yet":         {status(1, running, "8.0"), 1, []DAG{row(1, 8)}, map[int]int{1: 8, 2: 9}, lostDAG{number: 2}, ""},
		"that of a third attempt":                       {status(3, running, "12.0"), 0, nil, map[int]int{3: 10, 4: 11, 5: 12}, lostDAG{number: 5, attempts: 2, told: true}, ""},
		"after those before it":                         {status(3, running, "12.0"), 2, []DAG{row(2, 0)}, map[int]int{5: 12}, lostDAG{number: 5, told: true}, ""},
		"one sent after the status of an ended attempt": {status(1, v1alpha1.PhaseFailed), 0, nil, map[int]int{1: 8}, lostDAG{number: 1, attempts: 1}, ""},
		"one that the history has no more":              {status(1, running, "8.0", "9.0"), 0, nil, map[int]int{2: 9}, lostDAG{}, "its DAG 8.0"},
		"a second without a first":                      {status(0, ""), 0, nil, map[int]int{2: 9}, lostDAG{}, "but not the first"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Situation{
				Workflow: &v1alpha1.HTCWorkflow{Status: c.status},
				Attempt:  c.attempt,
				DAGs:     c.rows,
			}.nextLost(
				c.sent,
				nil,
			)
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestADAGOfAnEarlierSpecIsNotAdopted(t *testing.T) {
	w := newWorld(t)
	changed := w.apply(newWorkflow("flow")).DeepCopy()
	changed.Spec.Sequences.Count = new(int32(3))
	require.NoError(t, w.store.Update(changed))
	w.openLedger()
	w.wait()
	reason, message := w.says("flow", v1alpha1.ConditionSubmitted)
	require.Equal(t, reasonLedgerLost, reason)
	require.Contains(t, message, "DAG 1.0, of an earlier spec")
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
}

func TestWhatHasEndedStaysSoWhenTheLedgerIsLost(t *testing.T) {
	w := newWorld(t)
	w.apply(oneStep("flow"))
	w.ends(1)
	before := w.flow("flow").Status
	require.Equal(t, v1alpha1.PhaseSucceeded, before.Phase)
	w.openLedger()
	w.wait()
	require.Equal(t, before, w.flow("flow").Status)
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))

	again := w.flow("flow").DeepCopy()
	again.Annotations = map[string]string{v1alpha1.RerunAnnotation: "x"}
	require.NoError(t, w.store.Update(again))
	w.wait()
	require.EqualValues(t, 2, w.flow("flow").Status.Attempt)
	require.Equal(t, []string{"2.0"}, w.flow("flow").Status.JobID)
	require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit))
}

func TestAnEndedWorkflowOfWhichNothingIsLeftCanBeRunAgain(t *testing.T) {
	for _, resume := range []v1alpha1.Resume{v1alpha1.ResumeAll, v1alpha1.ResumeFromFailure} {
		w := newWorld(t)
		w.apply(oneStep("flow"))
		w.ends(1)
		w.openLedger()
		w.schedd.Forget()
		changed := w.flow("flow").DeepCopy()
		changed.Spec.Sequences.Count, changed.Spec.Resume, changed.Generation = new(int32(3)), resume, 2
		require.NoError(t, w.store.Update(changed))
		w.wait()
		require.EqualValues(t, 2, w.flow("flow").Status.Attempt, resume)
		require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit), resume)
	}
}

// Its status says Idle from the edit to the next DAG.
func TestAWorkflowThatWasEditedAfterItsEndRunsAgainWhenTheLedgerIsLost(t *testing.T) {
	for _, owner := range []string{scheddtest.Robot, "another"} {
		w := newWorld(t)
		w.apply(oneStep("flow"))
		w.ends(1)
		w.schedd.Put(w.schedd.Gone()...)
		w.schedd.Edit(1, 0, func(j *condor.Job) { j.Owner, j.Status = owner, condor.Running })
		changed := w.flow("flow").DeepCopy()
		changed.Spec.Sequences.Count, changed.Spec.Resume = new(int32(3)), v1alpha1.ResumeFromFailure
		changed.Generation, changed.Status.Phase = 2, v1alpha1.PhaseIdle
		require.NoError(t, w.store.Update(changed))
		w.openLedger()
		w.wait()
		reason, _ := w.says("flow", v1alpha1.ConditionSubmitted)
		require.Equal(t, reasonLedgerLost, reason, "as long as HTCondor says that it has not ended")
		require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))

		w.schedd.Edit(1, 0, func(j *condor.Job) { j.Status = condor.Completed })
		w.wait()
		w.wait()
		require.EqualValues(t, 2, w.flow("flow").Status.Attempt, owner)
		require.Equal(t, []string{"2.0"}, w.flow("flow").Status.JobID, owner)
		require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit), owner)
	}
}

func TestAnEditDuringAnAttemptForgetsNothingWhenTheLedgerIsLost(t *testing.T) {
	fetched := metav1.Condition{Type: v1alpha1.ConditionOutputFetched, Status: metav1.ConditionTrue}
	job := func(number, cluster int, status condor.JobStatus) condor.Job {
		return condor.Job{Cluster: cluster, Status: status, Tag: condor.Tag{Attempt: number}}
	}
	for name, c := range map[string]struct {
		nodes v1alpha1.NodeCounts
		found sending.Found
		want  bool
	}{
		"it has ended":                      {v1alpha1.NodeCounts{Total: 3, Done: 1, Failed: 1, Futile: 1}, sending.Found{Left: []condor.Job{job(1, 7, condor.Completed)}}, true},
		"nothing is known any more":         {v1alpha1.NodeCounts{Total: 3, Done: 3}, sending.Found{}, true},
		"nodes had not ended":               {v1alpha1.NodeCounts{Total: 3, Done: 2}, sending.Found{Left: []condor.Job{job(1, 7, condor.Completed)}}, false},
		"no node was known":                 {v1alpha1.NodeCounts{}, sending.Found{Left: []condor.Job{job(1, 7, condor.Completed)}}, false},
		"DAGMan has not ended":              {v1alpha1.NodeCounts{Total: 3, Done: 3}, sending.Found{Queued: []condor.Job{job(1, 7, condor.Running)}}, false},
		"a later DAG has":                   {v1alpha1.NodeCounts{Total: 3, Done: 3}, sending.Found{Left: []condor.Job{job(1, 7, condor.Completed), job(2, 8, condor.Completed)}}, false},
		"another account's, as it says":     {v1alpha1.NodeCounts{Total: 3, Done: 3}, sending.Found{Others: []condor.Job{job(1, 7, condor.Running)}}, false},
		"another account's, with its tag":   {v1alpha1.NodeCounts{Total: 3, Done: 3}, sending.Found{Others: []condor.Job{job(1, 9, condor.Running)}}, true},
		"an earlier attempt's waits for it": {v1alpha1.NodeCounts{Total: 3, Done: 3}, sending.Found{Queued: []condor.Job{job(1, 6, condor.Removed), job(2, 7, condor.Completed)}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSituation(t)
			s.Workflow.Status = v1alpha1.HTCWorkflowStatus{
				Attempt: 1, Phase: v1alpha1.PhaseIdle, JobID: []string{"7.0"}, SpecHash: "before", Nodes: c.nodes,
				Conditions: []metav1.Condition{fetched},
			}
			s.Attempt, s.DAGs = 0, nil
			require.Equal(t, c.want, s.forgettable(true, []sending.At{{Found: c.found}}))
		})
	}
}

func TestADAGWhoseFilesNeverArrivedIsSentAgainInItsPlaceWhenTheLedgerIsLost(t *testing.T) {
	w := newWorld(t)
	unstaged := func(cluster int) {
		w.schedd.Edit(cluster, 0, func(j *condor.Job) {
			j.LastStatus, j.Status, j.RemoveReason = condor.Held, condor.Removed, "Staging of job files failed"
		})
		w.schedd.Leave(cluster, 0)
		w.openLedger()
		w.wait()
	}
	w.apply(newWorkflow("flow"))
	unstaged(1)
	require.Equal(t, []string{"2.0"}, w.flow("flow").Status.JobID)
	w.ends(2)
	require.Equal(t, []string{"2.0", "3.0"}, w.flow("flow").Status.JobID)
	unstaged(3)
	_, message := w.says("flow", v1alpha1.ConditionSubmitted)
	require.Equal(t, []string{"2.0", "4.0"}, w.flow("flow").Status.JobID, message)
	w.ends(4)
	status := w.flow("flow").Status
	require.Equal(t, v1alpha1.PhaseSucceeded, status.Phase)
	require.Equal(t, v1alpha1.NodeCounts{Total: 3, Done: 3}, status.Nodes)
	require.EqualValues(t, 1, status.Attempt)
}

func TestALostAttemptWhoseFilesNeverArrivedComesAfterTheDAGsOfThoseBefore(t *testing.T) {
	s := Situation{Workflow: &v1alpha1.HTCWorkflow{Status: v1alpha1.HTCWorkflowStatus{
		Attempt: 2, Phase: v1alpha1.PhaseIdle, JobID: []string{"9.0"},
	}}}
	got, err := s.nextLost(map[int]int{1: 7, 2: 8}, map[int]int{3: 9})
	require.NoError(t, err)
	require.Equal(t, lostDAG{number: 1, attempts: 1, again: 3}, got)
}

// suspended suspends a workflow whose DAG then waits in the queue, removed, for its output to be fetched.
func (w *world) suspended(name string) {
	w.t.Helper()
	w.schedd.Down(errors.New("no answer"), scheddtest.Transfer)
	w.suspend(name, true)
	w.schedd.Put(w.schedd.Gone()...)
	require.Equal(w.t, v1alpha1.PhaseSuspended, w.flow(name).Status.Phase)
}

func (w *world) suspend(name string, is bool) {
	w.t.Helper()
	w.setSuspend(name, is)
	for range 3 {
		w.later(time.Minute)
	}
}

func (w *world) setSuspend(name string, is bool) {
	w.t.Helper()
	flow := w.flow(name).DeepCopy()
	flow.Spec.Suspend = is
	flow.Generation++
	require.NoError(w.t, w.store.Update(flow))
}

func TestADAGThatHtcdHadSuspendedIsNoFailureWhenTheLedgerIsLost(t *testing.T) {
	w := newWorld(t)
	w.apply(oneStep("flow"))
	w.suspended("flow")
	w.openLedger()
	w.suspend("flow", false)
	w.wait()
	status := w.flow("flow").Status
	require.EqualValues(t, 2, status.Attempt)
	require.Equal(t, []string{"2.0"}, status.JobID)
	require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit))
}

func TestEndedDAGsOfAttemptsThatNobodyKnowsAnyMoreLeaveTheQueue(t *testing.T) {
	w := newWorld(t)
	w.apply(oneStep("flow"))
	w.suspended("flow")
	w.suspend("flow", false)
	require.Equal(t, []string{"2.0"}, w.flow("flow").Status.JobID)
	require.Len(t, w.schedd.Jobs(), 2)
	w.openLedger()
	w.wait()
	require.Equal(t, []string{"2.0"}, w.flow("flow").Status.JobID)
	require.EqualValues(t, 2, w.flow("flow").Status.Attempt)
	require.Len(t, w.schedd.Jobs(), 1)
}

func TestOutputThatAnEndedWorkflowOwesIsFetchedWhenTheLedgerIsLost(t *testing.T) {
	w := newWorld(t)
	w.apply(oneStep("flow"))
	w.schedd.Down(errors.New("no answer"), scheddtest.Transfer)
	w.ends(1)
	before := w.flow("flow").Status
	require.Equal(t, v1alpha1.PhaseSucceeded, before.Phase)
	w.schedd.Down(nil, scheddtest.Transfer)
	w.openLedger()
	w.wait()
	reason, _ := w.says("flow", v1alpha1.ConditionOutputFetched)
	require.Equal(t, "Fetched", reason)
	require.Equal(t, v1alpha1.PhaseSucceeded, w.flow("flow").Status.Phase)
	require.Equal(t, before.Nodes, w.flow("flow").Status.Nodes)
	require.Empty(t, w.schedd.Jobs(), "DAGMan's job has left the queue")
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
}

func TestNoDAGIsCalledLostWhileTheScheddShowsAQueueYoungerThanTheWorkflow(t *testing.T) {
	w := newWorld(t)
	flow := newWorkflow("flow")
	flow.CreationTimestamp = metav1.NewTime(w.clock)
	w.apply(flow)
	queue := w.schedd.Jobs()
	w.schedd.Reset()
	w.openLedger()
	w.wait()
	reason, message := w.says("flow", v1alpha1.ConditionSubmitted)
	require.NotEqual(t, reasonLedgerLost, reason)
	require.Contains(t, message, "its spool is not mounted")
	w.schedd.Restore(queue)
	w.wait()
	require.Equal(t, []string{"1.0"}, w.flow("flow").Status.JobID)
	reason, _ = w.says("flow", v1alpha1.ConditionSubmitted)
	require.Equal(t, "Submitted", reason)
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
}

// Its Secret has another account since then, and its status was not written any more.
func TestADAGThatTheLedgerHasLostIsNotSentAgainWithOtherCredentials(t *testing.T) {
	w := newWorld(t)
	before := w.apply(newWorkflow("flow")).Status
	w.ends(1)
	require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit))
	w.schedd.Edit(2, 0, func(j *condor.Job) { j.Owner = "another" })
	flow := w.flow("flow").DeepCopy()
	flow.Status = before
	require.NoError(t, w.store.Update(flow))
	w.openLedger()
	w.wait()
	require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit))
	require.Contains(
		t,
		fmt.Sprint(w.flow("flow").Status.Conditions),
		"job 2.0 of the account another carries this HTCWorkflow's tag",
	)
	w.schedd.Edit(2, 0, func(j *condor.Job) { j.Owner = scheddtest.Robot })
	w.wait()
	require.Equal(t, []string{"1.0", "2.0"}, w.flow("flow").Status.JobID)
	require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit))
}
