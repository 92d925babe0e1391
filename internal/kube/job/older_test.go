package job

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

// rows are an HTCJob's rows in the ledger.
type rows struct {
	runs  []ledger.Run
	procs []ledger.Proc
}

func (w *world) rows(name string) (all rows) {
	w.t.Helper()
	require.NoError(w.t, w.book.Read(w.t.Context(), func(tx *ledger.Tx) (err error) {
		if all.runs, err = tx.Runs(ledger.RunFilter{Name: name}); err != nil {
			return err
		}
		for _, run := range all.runs {
			procs, err := tx.Procs(run.UID, run.Attempt, ledger.ProcFilter{})
			if err != nil {
				return err
			}
			all.procs = append(all.procs, procs...)
		}
		return nil
	}))
	return all
}

// putBack restores the old rows of an HTCJob and starts a new htcd.
func (w *world) putBack(old rows) {
	w.t.Helper()
	require.NoError(w.t, w.book.Write(w.t.Context(), func(tx *ledger.Tx) error {
		if err := tx.DeleteRuns(old.runs[0].UID); err != nil {
			return err
		}
		for _, run := range old.runs {
			if err := tx.InsertRun(run); err != nil {
				return err
			}
			if run.State == ledger.Submitted {
				if err := tx.InsertProcs(run, run.Procs); err != nil {
					return err
				}
			}
		}
		for _, p := range old.procs {
			if err := tx.UpdateProc(p); err != nil {
				return err
			}
		}
		return nil
	}))
	w.clock = w.clock.Add(time.Minute)
	w.restart()
}

// ranTwice returns a world with an HTCJob whose second attempt has just begun, and the rows from before that.
func ranTwice(t *testing.T, spec ...func(*v1alpha1.HTCJob)) (*world, rows) {
	t.Helper()
	w := newWorld(t)
	w.apply(htcjob("one", spec...))
	w.completes(1)
	old := w.rows("one")
	w.annotate("one", v1alpha1.RerunAnnotation, "again")
	require.EqualValues(t, 2, w.job("one").Status.ClusterID)
	return w, old
}

func TestAnOlderLedgerRepeatsNothing(t *testing.T) {
	ends := func(w *world, _ *rows) {
		w.schedd.Complete(2, 0, 3)
		w.crosscheck()
		w.schedd.Leave(2, 0)
	}
	wipes := func(w *world, _ *rows) {
		job := w.job("one").DeepCopy()
		job.Status = v1alpha1.HTCJobStatus{Phase: v1alpha1.PhasePending}
		require.NoError(w.t, w.store.Update(job))
	}
	for name, happens := range map[string][]func(*world, *rows){
		"the second attempt runs":                             nil,
		"it has ended":                                        {ends},
		"it runs, and the status is lost":                     {wipes},
		"it has ended, and the status is lost":                {ends, wipes},
		"the ledger has it as an intent, and it has ended":    {intends, ends},
		"the ledger has it as an intent, and status is lost":  {intends, wipes},
		"the ledger has it as an intent, and nobody knows it": {intends, ends, func(w *world, _ *rows) { w.schedd.Lose(2, 0) }},
	} {
		t.Run(name, func(t *testing.T) {
			w, old := ranTwice(t)
			for _, f := range happens {
				f(w, &old)
			}
			phase := w.job("one").Status.Phase
			w.putBack(old)
			for range 3 {
				w.settle()
				w.later(5 * time.Second)
				if phase != v1alpha1.PhasePending {
					require.EqualValues(t, 2, w.job("one").Status.Attempt, "the status takes nothing back")
					require.Equal(t, phase, w.job("one").Status.Phase)
				}
			}
			require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit))
			require.EqualValues(t, 2, w.job("one").Status.Attempt)
			require.Equal(t, []string{"2.0"}, w.job("one").Status.JobID)
			require.Equal(t, "again", w.run("one").Rerun)
		})
	}
}

// Of what neither the ledger nor the status knows, one empty answer of a schedd says nothing.
func TestAnOlderLedgerRepeatsNothingThoughTheScheddShowsAnotherQueue(t *testing.T) {
	for name, other := range otherQueues {
		t.Run(name, func(t *testing.T) {
			w, old := ranTwice(t)
			w.do(func(job *v1alpha1.HTCJob) { job.Status = v1alpha1.HTCJobStatus{Phase: v1alpha1.PhasePending} })
			sent := w.schedd.Jobs()
			w.clock = w.clock.Add(time.Second)
			other(w.schedd)
			w.putBack(old)
			for range 3 {
				w.settle()
				w.later(5 * time.Minute)
			}
			require.Empty(t, w.schedd.Jobs())
			require.Contains(
				t,
				condition(w.job("one"), v1alpha1.ConditionSubmitted).Message,
				"it has another queue than when the attempt began",
			)
			w.schedd.Restore(sent)
			for range 3 {
				w.later(5 * time.Minute)
			}
			require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit))
			require.EqualValues(t, 2, w.job("one").Status.Attempt)
			require.Equal(t, []string{"2.0"}, w.job("one").Status.JobID)
		})
	}
}

func TestAnAttemptThatAnOlderLedgerDoesNotKnowIsLookedForTwice(t *testing.T) {
	w, old := ranTwice(t)
	w.do(func(job *v1alpha1.HTCJob) { job.Status = v1alpha1.HTCJobStatus{Phase: v1alpha1.PhasePending} })
	sent := w.schedd.Jobs()
	w.schedd.Restore(nil) // as if it were not mounted when it is asked first
	w.putBack(old)
	w.settle()
	require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit))
	w.schedd.Restore(sent)
	for range 3 {
		w.later(5 * time.Second)
	}
	require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit))
	require.Equal(t, []string{"2.0"}, w.job("one").Status.JobID)
}

// A status that somebody edits after htcd was killed in the middle of a submission.
func TestAnEndThatSomebodyWritesIntoTheStatusDoesNotHideAnOpenSubmission(t *testing.T) {
	for name, attempt := range map[string]int32{"of that attempt": 1, "of a later one": 5} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.schedd.Fail(scheddtest.Submit, scheddtest.Fault{Err: errBroken, After: true})
			w.apply(htcjob("one"))
			require.Equal(t, ledger.Intent, w.run("one").State)
			w.do(func(job *v1alpha1.HTCJob) {
				job.Status = v1alpha1.HTCJobStatus{
					Phase:              v1alpha1.PhaseSucceeded,
					Attempt:            attempt,
					ClusterID:          77,
					JobID:              []string{"77.0"},
					Succeeded:          1,
					SpecHash:           job.SpecHash(),
					ObservedGeneration: 1,
					StartTime:          new(metav1.NewTime(w.clock)),
					CompletionTime:     new(metav1.NewTime(w.clock)),
				}
			})
			w.clock = w.clock.Add(time.Minute)
			w.restart()
			for range 4 {
				w.settle()
				w.crosscheck()
				w.later(10 * time.Second)
			}
			require.Equal(t, v1alpha1.PhaseIdle, w.job("one").Status.Phase)
			require.EqualValues(t, 1, w.job("one").Status.Attempt)
			require.Equal(t, []string{"1.0"}, w.job("one").Status.JobID)
			require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
		})
	}
}

// intends changes the backup to one taken when the second attempt was about to be sent.
func intends(_ *world, old *rows) {
	run := old.runs[0]
	run.Attempt, run.State, run.Cluster, run.Rerun = 2, ledger.Intent, 0, "again"
	run.Confirmed, run.Submitted, run.Ended = false, time.Time{}, time.Time{}
	old.runs = append(old.runs, run)
}

func TestWhatWasSuspendedIsSentAgainThoughTheLedgerIsOlder(t *testing.T) {
	for name, resumed := range map[string]bool{"resumed before": true, "resumed afterwards": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(htcjob("one", queueOf(2)))
			w.schedd.Run(1, -1)
			old := w.rows("one")
			w.suspend("one", true)
			if resumed {
				w.do(func(job *v1alpha1.HTCJob) { job.Spec.Suspend = false })
			}
			w.putBack(old)
			w.crosscheck()
			w.later(crosscheck.BetweenChecks)
			if !resumed {
				job := w.job("one")
				require.Equal(t, v1alpha1.PhaseSuspended, job.Status.Phase)
				require.Equal(t, []int32{0, 0, 0}, counts(job), "what was removed has not failed")
				w.suspend("one", false)
				w.later(2 * recovery.AbsentTwice)
			}
			job := w.job("one")
			require.EqualValues(t, 2, job.Status.Attempt)
			require.Equal(t, []int32{2, 0, 0}, counts(job))
			require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit))
		})
	}
}

func TestAnEditIsRunThoughTheAttemptBeforeItWasForgotten(t *testing.T) {
	ends := func(w *world) { w.completes(1) }
	for name, happens := range map[string]func(*world){"it has ended": ends, "it runs": func(*world) {}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(htcjob("one"))
			happens(w)
			w.do(func(job *v1alpha1.HTCJob) {
				job.Generation, job.Spec.Script.Source = 2, "exit 3\n"
				job.Status = v1alpha1.HTCJobStatus{Phase: v1alpha1.PhasePending}
			})
			require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.DeleteRuns("uid-one") }))
			w.clock = w.clock.Add(time.Minute)
			w.restart()
			for range 3 {
				w.settle()
				w.later(5 * time.Second)
			}
			if w.schedd.Calls(scheddtest.Submit) == 1 {
				require.Equal(t, "1.0", w.job("one").Status.JobID[0])
				w.completes(1)
			}
			w.later(recovery.AbsentTwice + time.Second)
			require.EqualValues(t, 2, w.job("one").Status.Attempt)
			require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit))
			w.completes(2)
			w.later(time.Hour)
			require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit))
		})
	}
}

// do changes an object unnoticed by any htcd.
func (w *world) do(change func(*v1alpha1.HTCJob)) {
	w.t.Helper()
	job := w.job("one").DeepCopy()
	change(job)
	require.NoError(w.t, w.store.Update(job))
}

func TestAnHTCJobDoesNotExpireByTheEndThatAnOlderLedgerKnows(t *testing.T) {
	w, old := ranTwice(t, func(job *v1alpha1.HTCJob) { job.Spec.TTLSecondsAfterFinished = new(int32(1)) })
	w.putBack(old)
	w.later(time.Hour)
	require.NotNil(t, w.job("one"))
}

func TestDeletingRemovesWhatAnOlderLedgerDoesNotKnow(t *testing.T) {
	w, old := ranTwice(t)
	w.putBack(old)
	job := w.job("one").DeepCopy()
	job.DeletionTimestamp = new(metav1.NewTime(w.clock))
	w.write(job)
	w.settle()
	w.later(5 * time.Second)
	require.Nil(t, w.job("one"))
	for _, j := range w.schedd.Jobs() {
		require.Equal(t, condor.Completed, j.Status)
	}
}

func TestWhatThisHtcdHasBegunItNeedNotLookFor(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	w.completes(1)
	asked := w.schedd.Calls(scheddtest.History)
	w.annotate("one", v1alpha1.RerunAnnotation, "again")
	require.EqualValues(t, 2, w.job("one").Status.ClusterID)
	require.Equal(t, asked, w.schedd.Calls(scheddtest.History))
}

// An informer's object may be older than what has been done for it since.
func TestAStaleObjectBeginsAndStopsNothing(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	suspended := w.suspend("one", true).DeepCopy()
	require.Equal(t, v1alpha1.PhaseSuspended, suspended.Status.Phase)
	w.suspend("one", false)
	w.completes(2)
	older := w.annotate("one", v1alpha1.RerunAnnotation, "a").DeepCopy()
	w.completes(3)
	w.annotate("one", v1alpha1.RerunAnnotation, "b")
	run, sent := w.run("one"), w.schedd.Calls(scheddtest.Submit)
	require.Equal(t, []any{4, 4, "b"}, []any{run.Attempt, run.Cluster, run.Rerun})

	require.NoError(t, w.submit(t.Context(), older, lifecycle.Situation{Job: older, Run: &run}, 5))
	require.NoError(
		t,
		w.stop(
			t.Context(),
			suspended,
			lifecycle.Situation{Job: suspended, Run: &run},
			lifecycle.Decision{Reason: crosscheck.StopSuspended},
		),
	)
	require.Equal(t, sent, w.schedd.Calls(scheddtest.Submit))
	require.Equal(t, run, w.run("one"))
	require.Equal(t, condor.Idle, w.schedd.Jobs()[len(w.schedd.Jobs())-1].Status)
}

// completes lets a cluster of one job succeed.
func (w *world) completes(cluster int) {
	w.t.Helper()
	w.schedd.Complete(cluster, 0, 0)
	w.crosscheck()
}

func TestAnEditIsSeenThoughTheGenerationIsTheSame(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	restored := w.job("one").DeepCopy() // etcd was restored and then the spec edited, so the generation is not new
	restored.Spec.Script.Source = "exit 3\n"
	w.apply(restored)
	w.completes(1)
	job := w.job("one")
	require.EqualValues(t, 2, job.Status.Attempt)
	require.Equal(t, job.Generation, job.Status.ObservedGeneration)
}

func TestStagedFilesThatNoRunHasAreRemovedAtTheStart(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("sent"))
	require.NoDirExists(t, w.run("sent").TempDir, "HTCondor has them")
	require.NoError(
		t,
		os.MkdirAll(filepath.Join(w.run("sent").TempDir, "left"), 0o700),
		"htcd was killed before it removed them, or is newer",
	)
	w.schedd.Fail(scheddtest.Submit, scheddtest.Fault{Err: errBroken})
	w.apply(htcjob("open"))
	require.NoError(t, os.MkdirAll(filepath.Join(w.Staging, "uid-forgotten-1", "left"), 0o700))
	for range 2 {
		require.NoError(t, w.adoptOrphans(t.Context()))
	}
	w.removeAside()
	staged, err := os.ReadDir(w.Staging)
	require.NoError(t, err)
	require.Len(t, staged, 1)
	require.Equal(t, filepath.Base(w.run("open").TempDir), staged[0].Name())
}

// readThen is a ledger that something happens to as soon as it has been read.
type readThen struct {
	ledger.Store
	happens func()
}

func (r readThen) Read(ctx context.Context, fn func(*ledger.Tx) error) error {
	defer r.happens()
	return r.Store.Read(ctx, fn)
}

func TestADAGThatIsStagedWhileLeftoversAreFoundKeepsItsFiles(t *testing.T) {
	w := newWorld(t)
	dag := filepath.Join(w.Staging, "uid-of-a-workflow-1")
	w.Ledger = readThen{w.Ledger, func() { require.NoError(t, os.MkdirAll(dag, 0o700)) }}
	require.NoError(t, w.adoptOrphans(t.Context()))
	w.removeAside()
	require.DirExists(t, dag)
}

func TestAStatusEditedByHandOutranksNothing(t *testing.T) {
	forged := v1alpha1.HTCJobStatus{
		Phase:     v1alpha1.PhaseSucceeded,
		Succeeded: 5,
		Attempt:   99,
		JobID:     []string{"1.0"},
		ClusterID: 77,
		SpecHash:  "forged",
	}
	for name, c := range map[string]struct {
		happens func(*world)
		phase   v1alpha1.Phase
		asked   bool // HTCondor has to be asked first
	}{
		"while it runs":                           {func(w *world) { w.schedd.Run(1, 0); w.crosscheck() }, v1alpha1.PhaseRunning, false},
		"after its end":                           {func(w *world) { w.completes(1) }, v1alpha1.PhaseSucceeded, false},
		"while no htcd ran, and its job runs on":  {func(w *world) { w.schedd.Run(1, 0); w.crosscheck(); w.clock = w.clock.Add(time.Minute) }, v1alpha1.PhaseRunning, true},
		"before it was sent, as it was suspended": {func(w *world) { w.suspend("one", true) }, v1alpha1.PhaseSuspended, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(htcjob("one"))
			c.happens(w)
			w.do(func(job *v1alpha1.HTCJob) { job.Status = forged })
			if c.asked {
				w.schedd.Down(errUnreachable)
				w.restart()
				w.settle()
				require.EqualValues(t, 99, w.job("one").Status.Attempt, "it might be an older ledger")
				w.schedd.Down(nil)
				w.later(time.Minute)
				w.crosscheck()
			}
			w.Changed.Add("default/one")
			w.settle()
			w.later(5 * time.Second)
			job := w.job("one")
			require.EqualValues(t, 1, job.Status.Attempt)
			require.Equal(t, c.phase, job.Status.Phase)

			w.do(func(job *v1alpha1.HTCJob) {
				job.Status, job.Generation, job.Spec.Suspend, job.Spec.Script.Source = forged, 2, false, "exit 4\n"
			})
			for range 3 {
				w.Changed.Add("default/one")
				w.settle()
				w.later(5 * time.Second)
			}
			if c.phase == v1alpha1.PhaseRunning {
				require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit), "the attempt that runs comes to its end first")
				w.completes(1)
				w.later(5 * time.Second)
			}
			require.EqualValues(t, 2, w.job("one").Status.Attempt)
			require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit))
		})
	}
}

func TestAnEndedHTCJobsStatusThatIsEditedWhileNoHtcdRunsIsNotBelieved(t *testing.T) {
	for name, attempt := range map[string]int32{"attempts that never were": 99, "another end": 1} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(htcjob("one"))
			w.completes(1)
			job := w.job("one").DeepCopy()
			told := job.Status
			job.Status.Attempt, job.Status.ClusterID, job.Status.Succeeded, job.Status.Phase =
				attempt, 7, 0, v1alpha1.PhaseFailed
			require.NoError(t, w.store.Update(job))
			w.SameLedger = true
			w.restart()
			w.settle()
			w.later(time.Minute)
			require.EqualValues(t, 1, w.job("one").Status.Attempt)
			require.Equal(t, told.Phase, w.job("one").Status.Phase)
			require.Equal(t, told.JobID, w.job("one").Status.JobID)
			w.annotate("one", v1alpha1.RerunAnnotation, "again")
			require.EqualValues(t, 2, w.job("one").Status.Attempt)
			require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit))
		})
	}
}

func TestWhatSomebodyWritesIntoTheStatusWhileNoHtcdRunsIsReplacedByTheLedgers(t *testing.T) {
	edits := map[string]func(*v1alpha1.HTCJobStatus){
		"it has ended": func(s *v1alpha1.HTCJobStatus) {
			s.Phase, s.Active, s.Succeeded, s.Failed, s.CompletionTime = v1alpha1.PhaseFailed, 0, 0, 1, s.StartTime
			s.Conditions = []metav1.Condition{
				{Type: v1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Reason: "ByHand"},
			}
		},
		"it runs": func(s *v1alpha1.HTCJobStatus) {
			s.Phase, s.Active, s.Succeeded, s.CompletionTime, s.Conditions = v1alpha1.PhaseRunning, 1, 0, nil, nil
		},
		"nothing":                 func(s *v1alpha1.HTCJobStatus) { *s = v1alpha1.HTCJobStatus{Phase: v1alpha1.PhasePending} },
		"other clusters":          func(s *v1alpha1.HTCJobStatus) { s.ClusterID, s.JobID = 7, []string{"7.0"} },
		"another spec was sent":   func(s *v1alpha1.HTCJobStatus) { s.SpecHash, s.Rerun, s.ObservedGeneration = "forged", "forged", 7 },
		"there is no such HTCJob": func(s *v1alpha1.HTCJobStatus) { s.Attempt = 0 },
	}
	for name, edit := range edits {
		for state, ended := range map[string]bool{"while its job runs": false, "after its end": true} {
			t.Run(name+", "+state, func(t *testing.T) {
				w := newWorld(t)
				w.apply(htcjob("one"))
				w.schedd.Run(1, 0)
				if w.crosscheck(); ended {
					w.completes(1)
				}
				told := w.job("one").DeepCopy().Status
				require.Equal(t, ended, told.Phase.Terminal())
				w.do(func(job *v1alpha1.HTCJob) { edit(&job.Status) })
				w.clock = w.clock.Add(time.Minute)
				w.restart() // of an htcd that was killed: nothing says that the ledger is the same
				for range 3 {
					w.crosscheck()
					w.later(time.Minute)
				}
				now := w.job("one").DeepCopy().Status
				for _, kind := range []string{v1alpha1.ConditionSubmitted, v1alpha1.ConditionComplete,
					v1alpha1.ConditionFailed} {
					before, after := meta.FindStatusCondition(
						told.Conditions,
						kind,
					), meta.FindStatusCondition(
						now.Conditions,
						kind,
					)
					require.NotNil(t, after, kind)
					require.Equal(
						t,
						[]any{before.Status, before.Reason, before.Message},
						[]any{after.Status, after.Reason, after.Message},
					)
				}
				now.Conditions, now.LastChecked = told.Conditions, told.LastChecked
				require.Equal(t, told, now)
				if !ended {
					w.completes(1)
				}
				require.Equal(t, v1alpha1.PhaseSucceeded, w.job("one").Status.Phase)
				require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
			})
		}
	}
}
