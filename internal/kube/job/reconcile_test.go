package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
	"htc.cern.ch/htcd/internal/target/backend"
)

// noTrace is the evidence of an absence.
const noTrace = "neither condor_q nor condor_history shows it"

func (w *world) reconcile(o ReconcileOptions) Report {
	w.t.Helper()
	report, err := w.Reconcile(w.t.Context(), o)
	require.NoError(w.t, err)
	return report
}

// contents returns everything that a dry run must not change.
func (w *world) contents(name string) (run ledger.Run, procs []ledger.Proc, status v1alpha1.HTCJobStatus) {
	w.t.Helper()
	require.NoError(w.t, w.book.Read(w.t.Context(), func(tx *ledger.Tx) (err error) {
		if run, err = tx.LatestRun("uid-" + name); err == nil {
			procs, err = tx.Procs(run.UID, run.Attempt, ledger.ProcFilter{})
		}
		return err
	}))
	return run, procs, w.job(name).Status
}

// broken changes the status of a row and nothing else, as somebody with the sqlite3 shell might.
func (w *world) broken(name string, status ledger.Status) {
	w.t.Helper()
	require.NoError(w.t, w.book.Write(w.t.Context(), func(tx *ledger.Tx) error {
		p, err := tx.Proc("uid-"+name, 1, 0)
		if err != nil {
			return err
		}
		p.Status = status
		return tx.UpdateProc(p)
	}))
}

func TestReconcileShowsAndRepairsWhatDiffers(t *testing.T) {
	const inQueue, inHistory = "condor_q: JobStatus 4 (Completed), ", "condor_history: JobStatus 4 (Completed), "
	for name, c := range map[string]struct {
		happens      func(w *world)
		was, is      string
		evidence     string
		phase        v1alpha1.Phase
		stillOpen    bool // it takes a second pass to be sure
		firstRunning bool
	}{
		"a lost callback of a job in the queue": {happens: func(w *world) { w.schedd.Complete(1, 0, 0) },
			was: "Running", is: "Succeeded", evidence: inQueue + "exit code 0", phase: v1alpha1.PhaseSucceeded},
		"a lost callback of a job that left the queue": {happens: func(w *world) { w.schedd.Complete(1, 0, 7); w.schedd.Leave(1, 0) },
			was: "Running", is: "Failed (exit code 7)", evidence: inHistory + "exit code 7", phase: v1alpha1.PhaseFailed},
		"a callback that HTCondor denies": {happens: func(w *world) { _ = w.callback("one", 0, 0); w.schedd.Complete(1, 0, 9) },
			was: "Succeeded", is: "Failed (exit code 9)", evidence: inQueue + "exit code 9", phase: v1alpha1.PhaseFailed},
		"a held job": {happens: func(w *world) { w.schedd.Hold(1, 0, 1, "via condor_hold (by user alice)") },
			was: "Running", is: "Held", evidence: "condor_q: JobStatus 5 (Held), via condor_hold (by user alice) (hold code 1/0)", phase: v1alpha1.PhaseHeld},
		"a removed job": {happens: func(w *world) {
			_ = scheddtest.Err(w.schedd.Change(w.t.Context(), schedd.Identity{}, schedd.Remove{Where: condor.UIDConstraint("uid-one"), Reason: "via condor_rm"}))
		}, was: "Running", is: "Failed (Removed)", evidence: "condor_history: JobStatus 3 (Removed), via condor_rm (by user robot)", phase: v1alpha1.PhaseRemoved},
		"a confirmed end that somebody's hand made another": {happens: func(w *world) {
			w.schedd.Complete(1, 0, 0)
			w.crosscheck()
			w.broken("one", ledger.StatusFailed)
		}, was: "Failed (exit code 0)", is: "Succeeded", evidence: inQueue + "exit code 0", phase: v1alpha1.PhaseSucceeded},
		"a confirmed end that somebody's hand opened": {happens: func(w *world) {
			w.schedd.Complete(1, 0, 0)
			w.schedd.Leave(1, 0)
			w.crosscheck()
			w.broken("one", ledger.StatusOpen)
		}, was: "Active", is: "Succeeded", evidence: inHistory + "exit code 0", phase: v1alpha1.PhaseSucceeded},
		"a running job that somebody's hand ended": {happens: func(w *world) { w.broken("one", ledger.StatusSucceeded) },
			was: "Succeeded", is: "Running", evidence: "condor_q: JobStatus 2 (Running), on slot1@node.test", phase: v1alpha1.PhaseRunning},
		"a job without a trace": {happens: func(w *world) { w.schedd.Lose(1, 0) },
			was: "Running", is: "Absent", evidence: noTrace + "; still so after 30s, or 1h0m0s while there is reason to doubt it, it is failed as Lost", phase: v1alpha1.PhaseRunning, stillOpen: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(htcjob("one"))
			w.schedd.Run(1, 0)
			w.crosscheck()
			c.happens(w)
			w.settle()
			want := crosscheck.Difference{
				Namespace: "default",
				Name:      "one",
				JobID:     "1.0",
				Was:       c.was,
				Is:        c.is,
				Evidence:  c.evidence,
			}

			run, procs, status := w.contents("one")
			require.Equal(
				t,
				Report{Differences: []crosscheck.Difference{want}, Checked: 1},
				w.reconcile(ReconcileOptions{DryRun: true}),
			)
			runAfter, procsAfter, statusAfter := w.contents("one")
			require.Equal(t, run, runAfter)
			require.Equal(t, procs, procsAfter)
			require.Equal(t, status, statusAfter)

			want.Repaired = !c.stillOpen
			require.Equal(
				t,
				Report{Differences: []crosscheck.Difference{want}, Checked: 1},
				w.reconcile(ReconcileOptions{}),
			)
			require.Equal(t, c.phase, w.job("one").Status.Phase, "the status is right when it returns")
			if !c.stillOpen {
				require.Empty(t, w.reconcile(ReconcileOptions{}).Differences)
				return
			}
			w.clock = w.clock.Add(time.Minute)
			want.Is, want.Evidence, want.Repaired = "Failed (Lost)", noTrace, true
			require.Equal(t, []crosscheck.Difference{want}, w.reconcile(ReconcileOptions{}).Differences)
		})
	}
}

func TestReconcileRepairsAStatusThatTheLedgerDoesNotShare(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	w.schedd.Complete(1, 0, 0)
	w.crosscheck()
	right := w.job("one").Status
	wrong := w.job("one").DeepCopy()
	wrong.Status.Phase, wrong.Status.Succeeded, wrong.Status.Failed = v1alpha1.PhaseFailed, 0, 1
	require.NoError(t, w.store.Update(wrong))
	want := crosscheck.Difference{
		Namespace: "default",
		Name:      "one",
		Was:       "phase=Failed succeeded=0 failed=1",
		Is:        "phase=Succeeded succeeded=1 failed=0",
		Evidence:  "the ledger says otherwise than .status",
	}
	require.Equal(t, []crosscheck.Difference{want}, w.reconcile(ReconcileOptions{DryRun: true}).Differences)
	require.Equal(t, wrong.Status, w.job("one").Status)
	want.Repaired = true
	require.Equal(t, []crosscheck.Difference{want}, w.reconcile(ReconcileOptions{}).Differences)
	require.Equal(t, right, w.job("one").Status)
}

func TestAScheddThatDoesNotAnswerKeepsNoStatusFromBeingRepaired(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	w.schedd.Complete(1, 0, 0)
	w.crosscheck()
	wrong := w.job("one").DeepCopy()
	wrong.Status.Phase = v1alpha1.PhaseFailed
	require.NoError(t, w.store.Update(wrong))
	w.schedd.Down(errUnreachable)
	report, err := w.Reconcile(t.Context(), ReconcileOptions{})
	require.ErrorIs(t, err, errUnreachable)
	require.Len(t, report.Differences, 1)
	require.Equal(t, v1alpha1.PhaseSucceeded, w.job("one").Status.Phase)
}

func TestReconcileKeepsToItsScope(t *testing.T) {
	w := newWorld(t)
	for i, name := range []string{"one", "two"} {
		w.apply(htcjob(name, queueOf(2)))
		w.schedd.Complete(i+1, -1, 3)
	}
	require.Equal(
		t,
		Report{Differences: []crosscheck.Difference{}},
		w.reconcile(ReconcileOptions{Namespace: "another"}),
	)
	report := w.reconcile(ReconcileOptions{Namespace: "default", Name: "two"})
	require.Equal(t, 2, report.Checked)
	require.Equal(t, []string{"2.0", "2.1"}, []string{report.Differences[0].JobID, report.Differences[1].JobID})
	require.EqualValues(t, 2, w.job("one").Status.Active)
	require.EqualValues(t, 2, w.job("two").Status.Failed)
}

func TestReconcileConcludesNothingWithoutAnAnswer(t *testing.T) {
	for name, breaks := range map[string]func(w *world){
		"of the schedd":    func(w *world) { w.schedd.Down(errUnreachable) },
		"of the apiserver": func(w *world) { w.unlisted = errBroken },
		"of the KDC": func(w *world) {
			w.denied = &backend.CredentialError{Reason: "KDCUnreachable", Message: "no KDC answered"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(htcjob("one"))
			breaks(w)
			run, procs, status := w.contents("one")
			report, err := w.Reconcile(t.Context(), ReconcileOptions{DryRun: true})
			require.Error(t, err)
			require.Empty(t, report.Differences)
			w.settle()
			runAfter, procsAfter, statusAfter := w.contents("one")
			require.Equal(t, run, runAfter)
			require.Equal(t, procs, procsAfter)
			require.Equal(t, status, statusAfter)
		})
	}
}

func TestReconcileLeavesEndedRunsAloneThatTheScheddHasForgotten(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	w.schedd.Complete(1, 0, 0)
	w.crosscheck()
	w.schedd.Lose(1, 0)
	run, procs, status := w.contents("one")
	w.clock = w.clock.Add(time.Hour)
	require.Equal(t, Report{Differences: []crosscheck.Difference{}, Checked: 1}, w.reconcile(ReconcileOptions{}))
	w.settle()
	runAfter, procsAfter, statusAfter := w.contents("one")
	require.Equal(t, run, runAfter)
	require.Equal(t, procs, procsAfter)
	require.Equal(t, status, statusAfter)
}

func TestReconcileTellsTwoRunsOfOneClusterNumberApart(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("one"))
	w.schedd.Complete(1, 0, 0)
	w.crosscheck()
	w.schedd.Lose(1, 0) // the schedd was set up again and counts from 1
	require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error {
		run := ledger.Run{
			UID:       "uid-two",
			Attempt:   1,
			Namespace: "default",
			Name:      "two",
			State:     ledger.Submitted,
			Cluster:   1,
			Procs:     1,
			Submitted: w.clock,
		}
		if err := tx.InsertRun(run); err != nil {
			return err
		}
		return tx.InsertProcs(run, 1)
	}))
	w.schedd.Put(
		condor.Job{Cluster: 1, Tag: condor.Tag{UID: "uid-two", Attempt: 1}, Status: condor.Running, StageInFinish: 1},
	)
	report := w.reconcile(ReconcileOptions{})
	require.Equal(t, 2, report.Checked)
	require.Len(t, report.Differences, 1)
	require.Equal(t, "two", report.Differences[0].Name)
}

func TestReconcileSaysWhatNeverRan(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(j *condor.Job)
		leaves  bool
		is      string
	}{
		"because its files never arrived": {func(j *condor.Job) {
			j.LastStatus, j.Status, j.RemoveReason, j.StageInFinish = condor.Held, condor.Removed, "Staging of job files failed", 0
		}, true, "NeverRan"},
		"because its files will never arrive": {func(j *condor.Job) {
			j.Status, j.HoldReasonCode, j.StageInFinish, j.QDate = condor.Held, 16, 0, 1
		}, false, "HalfSpooled"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(htcjob("one"))
			w.schedd.Edit(1, 0, c.happens)
			if c.leaves {
				w.schedd.Leave(1, 0)
			}
			for _, dry := range []bool{true, false} {
				report := w.reconcile(ReconcileOptions{DryRun: dry})
				require.Len(t, report.Differences, 1)
				require.Equal(
					t,
					[]any{"1", c.is, !dry},
					[]any{report.Differences[0].JobID, report.Differences[0].Is, report.Differences[0].Repaired},
				)
			}
			w.settle()
			w.crosscheck()
			require.EqualValues(t, 2, w.job("one").Status.Attempt)
		})
	}
}
