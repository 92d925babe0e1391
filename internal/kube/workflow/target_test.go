package workflow

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

// grid is a pool.Known with one pool, of two schedds.
type grid struct{}

func (grid) Get(name string) *v1alpha1.HTCPool {
	return &v1alpha1.HTCPool{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.HTCPoolSpec{Schedds: []v1alpha1.ScheddName{"first", "second"}},
	}
}

func (grid) Default() *v1alpha1.HTCPool { return nil }

func (grid) Labels(string) (labels.Set, bool) { return nil, true }

// ofTwo is a world with a pool of two schedds, in which the workflow one has been sent to the second.
func ofTwo(t *testing.T) (w *world, at map[string]*scheddtest.Schedd) {
	t.Helper()
	w = newWorld(t)
	at = map[string]*scheddtest.Schedd{"first": scheddtest.New(), "second": scheddtest.New()}
	all := &scheddtest.Several{Usual: "first", At: map[schedd.Endpoint]*scheddtest.Schedd{}}
	for name, s := range at {
		s.Clock(func() time.Time { return w.clock })
		all.At[schedd.Endpoint{Schedd: name}] = s
	}
	w.asks, w.Options.Pools = all, grid{}
	w.restart()
	away := &condor.Error{Kind: condor.Unreachable, Command: "condor_q"}
	at["first"].Down(away)
	flow := oneStep("one")
	flow.Spec.Pool = &v1alpha1.Pool{Name: "grid"}
	w.apply(flow)
	for range 3 {
		w.later(time.Minute)
	}
	require.Len(t, at["second"].Jobs(), 1)
	at["first"].Down(nil)
	return w, at
}

// forgets loses the ledger and what the status says.
func (w *world) forgets(status v1alpha1.HTCWorkflowStatus) {
	w.t.Helper()
	flow := w.flow("one").DeepCopy()
	flow.Status = status
	require.NoError(w.t, w.store.Update(flow))
	w.openLedger()
	w.wait()
}

func TestADAGThatTheLedgerHasLostIsLookedForAtEverySchedd(t *testing.T) {
	for name, status := range map[string]v1alpha1.HTCWorkflowStatus{
		"the status is not written yet":    {Phase: v1alpha1.PhasePending},
		"the status does not say where":    {Phase: v1alpha1.PhaseSubmitting, Attempt: 1},
		"the status is of another attempt": {Phase: v1alpha1.PhaseSubmitting, Attempt: 1, Schedd: "first"},
	} {
		t.Run(name+", adopted", func(t *testing.T) {
			w, at := ofTwo(t)
			w.forgets(status)
			require.Equal(t, "second", w.flow("one").Status.Schedd)
			require.Len(t, at["second"].Jobs(), 1)
			require.Empty(t, at["first"].Jobs())
		})
		t.Run(name+", deleted", func(t *testing.T) {
			w, at := ofTwo(t)
			at["second"].Down(&condor.Error{Kind: condor.Unreachable, Command: "condor_q"})
			w.forgets(status)
			require.Empty(t, at["first"].Jobs(), "it is not sent while one of them does not answer")
			w.delete("one")
			w.wait()
			require.NotNil(t, w.flow("one"))
			at["second"].Down(nil)
			w.wait()
			require.Nil(t, w.flow("one"))
			require.Empty(t, at["second"].Jobs())
		})
	}
}

func TestADAGThatTheLedgerHasLostIsNotSentWhileOneOfTheScheddsShowsAnotherQueue(t *testing.T) {
	w, at := ofTwo(t)
	flow := w.flow("one").DeepCopy()
	flow.CreationTimestamp = metav1.NewTime(w.clock)
	require.NoError(t, w.store.Update(flow))
	w.clock = w.clock.Add(time.Second)
	sent := at["second"].Jobs()
	at["second"].Reset()
	at["second"].Restart()
	w.forgets(v1alpha1.HTCWorkflowStatus{Phase: v1alpha1.PhasePending})
	require.Empty(t, append(at["first"].Jobs(), at["second"].Jobs()...))
	at["second"].Restore(sent)
	at["second"].Restart()
	w.wait()
	require.Equal(t, "second", w.flow("one").Status.Schedd)
	require.Empty(t, at["first"].Jobs())
}

// A DAG whose submission was interrupted is not sent again to a schedd that shows another queue.
func TestNothingIsSentAgainWhileTheScheddShowsAnotherQueue(t *testing.T) {
	for name, other := range map[string]func(*scheddtest.Schedd){
		"one that was set up since":       (*scheddtest.Schedd).Reset,
		"one that was set up long before": (*scheddtest.Schedd).Swap,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.schedd.Fail(
				scheddtest.Submit,
				scheddtest.Fault{Err: &condor.Error{Kind: condor.Timeout, Command: "condor_submit"}, After: true},
			)
			require.NoError(t, w.store.Add(oneStep("one")))
			w.Changed.Add("default/one")
			w.settle()
			sent := w.schedd.Jobs()
			require.Len(t, sent, 1)
			w.clock = w.clock.Add(time.Second)
			other(w.schedd)
			w.restart()
			w.wait()
			require.Empty(t, w.schedd.Jobs())
			_, message := w.says("one", v1alpha1.ConditionSubmitted)
			require.Contains(t, message, "it has another queue than when the attempt began")
			w.schedd.Restore(sent)
			w.wait()
			require.Equal(t, []string{"1.0"}, w.flow("one").Status.JobID)
			require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
		})
	}
}

// Of a DAG that neither the ledger nor the status knows, one empty answer of a schedd says nothing.
func TestAnOlderLedgerRepeatsNothingThoughTheScheddShowsAnotherQueue(t *testing.T) {
	w, dir := newWorld(t), t.TempDir()
	now, old := filepath.Join(dir, "now.db"), filepath.Join(dir, "old.db")
	w.opens(now)
	w.apply(oneStep("flow"))
	w.ends(1)
	require.NoError(t, ledger.Backup(t.Context(), now, old, nil))
	again := w.flow("flow").DeepCopy()
	again.Annotations = map[string]string{v1alpha1.RerunAnnotation: "x"}
	ended := again.Status
	require.NoError(t, w.store.Update(again))
	w.all()
	w.later(time.Minute)
	require.Equal(t, []string{"2.0"}, w.flow("flow").Status.JobID)
	flow := w.flow("flow").DeepCopy()
	flow.Status = ended
	require.NoError(t, w.store.Update(flow))
	sent := w.schedd.Jobs()
	w.clock = w.clock.Add(time.Second)
	w.schedd.Swap()
	w.opens(old)
	w.wait()
	require.Empty(t, w.schedd.Jobs())
	_, message := w.says("flow", v1alpha1.ConditionSubmitted)
	require.Contains(t, message, "it has another queue than when the attempt began")
	w.schedd.Restore(sent)
	w.wait()
	require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit))
	require.Equal(t, []string{"2.0"}, w.flow("flow").Status.JobID)
}

func TestADeletionRemovesWhatAnOlderLedgerDoesNotKnow(t *testing.T) {
	w, at := ofTwo(t)
	now, old := filepath.Join(t.TempDir(), "now.db"), filepath.Join(t.TempDir(), "old.db")
	w.opens(now)
	w.wait()
	at["second"].Complete(1, 0, 0)
	at["second"].Leave(1, 0)
	for range 3 {
		w.passes(1)
		w.later(time.Minute)
	}
	require.Equal(t, v1alpha1.PhaseSucceeded, w.flow("one").Status.Phase)
	require.NoError(t, ledger.Backup(t.Context(), now, old, nil))
	again := w.flow("one").DeepCopy()
	again.Annotations = map[string]string{v1alpha1.RerunAnnotation: "x"}
	require.NoError(t, w.store.Update(again))
	w.all()
	for range 3 {
		w.later(time.Minute)
	}
	require.EqualValues(t, 2, w.flow("one").Status.Attempt)
	require.Len(t, at["first"].Jobs(), 1)
	w.opens(old)
	w.delete("one")
	w.wait()
	require.Nil(t, w.flow("one"))
	require.Empty(t, at["first"].Jobs())
}
