package job

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
	"htc.cern.ch/htcd/internal/target/backend"
)

// newWorldOfPools returns a world with the schedds "first", which is the usual one, and "second", and "first" of a pool
// "far"; spec.pool may name all of them.
func newWorldOfPools(t *testing.T) (w *world, p *scheddtest.Several, first, second, far *scheddtest.Schedd) {
	t.Helper()
	w = newWorld(t)
	first, second, far = scheddtest.New(), scheddtest.New(), scheddtest.New()
	p = &scheddtest.Several{Usual: "first", At: map[schedd.Endpoint]*scheddtest.Schedd{
		{Schedd: "first"}: first, {Schedd: "second"}: second, {Collector: "far", Schedd: "first"}: far,
	}}
	w.asks(p)
	w.Controller.Site.AllowPools = []string{"second", "far/*"}
	w.Controller.Site.Collector = "near"
	return w, p, first, second, far
}

func poolOf(collector, schedd, secret string) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) {
		job.Spec.Pool = &v1alpha1.Pool{Collector: collector, Schedd: schedd, SecretName: secret}
	}
}

// targetAt returns the usual account's target at an endpoint.
func targetAt(endpoint schedd.Endpoint) backend.Target {
	return backend.Target{Endpoint: endpoint, Account: backend.Account{Namespace: "default"}}
}

func (w *world) latestRun(name string) ledger.Run {
	w.t.Helper()
	run, err := w.latest(w.t.Context(), "uid-"+name)
	require.NoError(w.t, err)
	return run
}

func TestAnHTCJobGoesWhereItsSpecSays(t *testing.T) {
	w, _, first, second, far := newWorldOfPools(t)
	for name, c := range map[string]struct {
		pool   []func(*v1alpha1.HTCJob)
		at     *scheddtest.Schedd
		target backend.Target
	}{
		"nowhere":           {nil, first, targetAt(schedd.Endpoint{Schedd: "first"})},
		"to-the-second":     {[]func(*v1alpha1.HTCJob){poolOf("", "second", "")}, second, targetAt(schedd.Endpoint{Schedd: "second"})},
		"to-the-usual-pool": {[]func(*v1alpha1.HTCJob){poolOf("near", "second", "")}, second, targetAt(schedd.Endpoint{Schedd: "second"})},
		"far-away":          {[]func(*v1alpha1.HTCJob){poolOf("far", "first", "")}, far, targetAt(schedd.Endpoint{Collector: "far", Schedd: "first"})},
	} {
		before := len(c.at.Jobs())
		job := w.apply(htcjob(name, c.pool...))
		require.Len(t, c.at.Jobs(), before+1, name)
		require.Equal(t, c.target.Endpoint.Schedd, job.Status.Schedd, name)
		require.Equal(t, c.target, backend.TargetOf(w.latestRun(name)), name)
	}
	for _, name := range []string{"nowhere", "to-the-second", "to-the-usual-pool", "far-away"} {
		w.delete(name)
		require.Nil(t, w.job(name))
	}
	for _, at := range []*scheddtest.Schedd{first, second, far} {
		require.Empty(t, at.Jobs())
	}
}

func TestWhatMayNotBeNamedIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		pool    func(*v1alpha1.HTCJob)
		allowed []string
		secrets []string
		says    string
	}{
		"a schedd where none may be named":  {poolOf("", "second", ""), nil, nil, "--allow-pools names no other"},
		"a schedd that is not among them":   {poolOf("", "other", ""), []string{"second"}, nil, "schedd other is not one that htcd may send jobs to; its administrator allows second (--allow-pools)"},
		"a pool that is not among them":     {poolOf("evil", "second", ""), []string{"second"}, nil, "schedd second of pool evil is not one"},
		"a pool without a schedd":           {poolOf("far", "", ""), []string{"far/*"}, nil, "which of its schedds"},
		"a Secret where none may be named":  {poolOf("", "", "mine"), nil, nil, "--namespace-secrets is not set"},
		"a Secret that htcd may not read":   {poolOf("", "", "token"), nil, []string{"kinit-secret", "mine"}, "kinit-secret, mine only"},
		"the schedd before the Secret":      {poolOf("", "other", "token"), nil, nil, "--allow-pools"},
		"the usual pool's schedd elsewhere": {poolOf("far", "first", ""), []string{"first"}, nil, "schedd first of pool far is not one"},
	} {
		t.Run(name, func(t *testing.T) {
			w, _, first, second, far := newWorldOfPools(t)
			w.Controller.Site.AllowPools, w.Controller.Site.PoolSecrets = c.allowed, c.secrets
			job := w.apply(htcjob("job", c.pool))
			require.Equal(t, v1alpha1.PhaseFailed, job.Status.Phase)
			said := condition(job, v1alpha1.ConditionSubmitted)
			require.Equal(t, "Refused", said.Reason)
			require.Contains(t, said.Message, c.says)
			for _, at := range []*scheddtest.Schedd{first, second, far} {
				require.Zero(
					t,
					at.Calls(scheddtest.Queue)+at.Calls(scheddtest.Submit)+at.Calls(scheddtest.Account),
					"nobody was shown a ticket",
				)
			}
		})
	}
}

func TestWhoNamesASecretIsSentAskedAboutAndRemovedAsItsAccount(t *testing.T) {
	w, _, first, _, _ := newWorldOfPools(t)
	w.Controller.Site.PoolSecrets = []string{"kinit-secret", "alice"}
	w.apply(htcjob("hers", poolOf("", "", "alice")))
	require.Equal(t, "alice", first.Jobs()[0].Owner)
	require.Equal(t, "alice", w.latestRun("hers").Secret)

	w.apply(htcjob("ours"))
	var asked []string
	for _, g := range backend.Groups([]ledger.Run{w.latestRun("hers"), w.latestRun("ours")}) {
		id, err := w.Questioner(t.Context(), g.Target)
		require.NoError(t, err)
		asked = append(asked, id.CCache)
	}
	require.Equal(t, []string{scheddtest.Robot, "alice"}, asked)
	w.delete("hers")
	require.Nil(t, w.job("hers"))
}

func TestEqualNumbersOfTwoScheddsAreNotMistaken(t *testing.T) {
	w, _, first, second, _ := newWorldOfPools(t)
	w.apply(htcjob("here", queueOf(2)))
	w.apply(htcjob("there", queueOf(2), poolOf("", "second", "")))
	require.Equal(t, w.job("here").Status.JobID, w.job("there").Status.JobID)
	first.Complete(1, 0, 0)
	second.Complete(1, -1, 3)
	second.Leave(1, 1)
	w.clock = w.clock.Add(time.Minute)
	w.crosscheck()
	require.EqualValues(t, []int32{1, 1, 0}, counts(w.job("here")))
	require.EqualValues(t, []int32{0, 0, 2}, counts(w.job("there")))

	report, err := w.Reconcile(t.Context(), ReconcileOptions{})
	require.NoError(t, err)
	require.Empty(t, report.Differences)
	require.Equal(t, 4, report.Checked)
}

func TestACallbackIsItsOwnAttemptsAlsoWhereTheNextHasTheSameNumber(t *testing.T) {
	w, _, first, _, _ := newWorldOfPools(t)
	w.apply(htcjob("moves"))
	first.Complete(1, 0, 1)
	w.crosscheck()
	token := notify.Hash("the token of the first attempt")
	run := w.latestRun("moves")
	run.TokenHash = token
	require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.UpdateRun(run) }))

	again := w.job("moves").DeepCopy()
	again.Generation++
	poolOf("", "second", "")(again)
	job := w.apply(again)
	require.Equal(t, "second", job.Status.Schedd)
	require.Equal(t, []string{"1.0"}, job.Status.JobID)

	late := notify.Callback{Namespace: "default", Name: "moves", JobID: "1.0", Retcode: 1}
	require.NoError(t, w.Record(t.Context(), late, token), "it says what is known")
	w.settle()
	require.EqualValues(t, 1, w.job("moves").Status.Active, "and nothing about the second attempt")
	require.ErrorIs(t, w.Record(t.Context(), late, notify.Hash("nobody's")), notify.ErrForbidden)
	require.NoError(t, w.callback("moves", 0, 0))
	require.Equal(t, v1alpha1.PhaseSucceeded, w.job("moves").Status.Phase)

	w.delete("moves")
	require.Empty(t, first.Jobs(), "both attempts are taken out, each where it is")
	require.Nil(t, w.job("moves"))
}

func TestADeadScheddTaintsNobodyElsesHTCJob(t *testing.T) {
	w, _, first, second, _ := newWorldOfPools(t)
	w.apply(htcjob("here"))
	w.apply(htcjob("there", poolOf("", "second", "")))
	second.Down(errUnreachable)
	w.clock = w.clock.Add(time.Minute)
	first.Complete(1, 0, 0)
	require.ErrorContains(t, w.Crosscheck(t.Context()), "schedd second: ")
	w.settle()
	w.apply(htcjob("later-there", poolOf("", "second", "")))
	reachable := func(name string) metav1.ConditionStatus {
		return condition(w.job(name), v1alpha1.ConditionBackendReachable).Status
	}
	require.Equal(t, v1alpha1.PhaseSucceeded, w.job("here").Status.Phase)
	require.Equal(t, metav1.ConditionTrue, reachable("here"))
	require.Equal(t, metav1.ConditionFalse, reachable("there"))
	require.Equal(t, metav1.ConditionFalse, reachable("later-there"))
	require.Empty(t, w.latestRunOrNone("later-there"), "nothing is begun at a schedd that does not answer")

	w.apply(htcjob("later-here"))
	require.Equal(t, metav1.ConditionTrue, reachable("later-here"))
	require.Len(t, first.Jobs(), 2)

	w.delete("there")
	require.NotNil(t, w.job("there"), "it waits for its schedd")
	require.Equal(t, schedd.Endpoint{Schedd: "second"}, w.backendOf(reconciler.Deleting)(t.Context(), "default/there"))
	require.Equal(
		t,
		schedd.Endpoint{Schedd: "second"},
		w.backendOf(reconciler.Submitting)(t.Context(), "default/later-there"),
	)
	require.Equal(
		t,
		schedd.Endpoint{Schedd: "first"},
		w.backendOf(reconciler.Asking)(t.Context(), "default/later-here"),
	)

	second.Down(nil)
	require.NoError(t, w.Refresh(t.Context()))
	w.settle()
	w.later(time.Minute)
	require.Nil(t, w.job("there"))
	require.Equal(t, v1alpha1.PhaseIdle, w.job("later-there").Status.Phase)
	require.Equal(t, metav1.ConditionTrue, reachable("later-there"))
}

func (w *world) latestRunOrNone(name string) ledger.Run {
	run, _ := w.latest(w.t.Context(), "uid-"+name)
	return run
}

func TestARunStaysWhereItWasSentWhateverTheSitesCommandSaysNow(t *testing.T) {
	w, p, first, second, _ := newWorldOfPools(t)
	first.Fail(scheddtest.Submit, scheddtest.Fault{Err: errBroken, After: true})
	w.apply(htcjob("broken-off"))
	require.Equal(t, ledger.Intent, w.latestRun("broken-off").State)

	p.Usual = "second"
	w.apply(htcjob("new"))
	require.Equal(t, "second", w.job("new").Status.Schedd)
	w.restart()
	w.later(time.Minute)
	require.Equal(t, "first", w.job("broken-off").Status.Schedd, "found where it was sent")
	require.Len(t, first.Jobs(), 1)
	require.Len(t, second.Jobs(), 1)

	first.Complete(1, 0, 0)
	w.crosscheck()
	require.Equal(t, v1alpha1.PhaseSucceeded, w.job("broken-off").Status.Phase)
}

func TestWhatItsScheddNeverGotIsSentWhereNewOnesGo(t *testing.T) {
	w, p, first, second, _ := newWorldOfPools(t)
	first.Fail(scheddtest.Submit, scheddtest.Fault{Err: errBroken})
	w.apply(htcjob("job"))
	p.Usual = "second"
	w.later(time.Minute)
	w.later(time.Minute)
	require.Empty(t, first.Jobs())
	require.Len(t, second.Jobs(), 1)
	require.Equal(t, "second", w.job("job").Status.Schedd)
}

func TestAnIntentWithoutAHomeIsAnOlderHtcdsAndWentToTheUsualSchedd(t *testing.T) {
	w, _, first, _, _ := newWorldOfPools(t)
	first.Fail(scheddtest.Submit, scheddtest.Fault{Err: errBroken, After: true})
	w.apply(htcjob("old"))
	run := w.latestRun("old")
	run.Schedd = ""
	require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.UpdateRun(run) }))
	w.later(time.Minute)
	require.Equal(t, "first", w.job("old").Status.Schedd)
	require.Len(t, first.Jobs(), 1)
}

func TestAfterALostLedgerARunIsLookedForWhereItsStatusSays(t *testing.T) {
	w, p, _, second, _ := newWorldOfPools(t)
	w.apply(htcjob("one", poolOf("", "second", "")))
	w.apply(htcjob("usual"))
	require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error {
		return errors.Join(tx.DeleteRuns("uid-one"), tx.DeleteRuns("uid-usual"))
	}))
	p.Usual = "second"
	w.restart()
	w.settle()
	require.Equal(t, targetAt(schedd.Endpoint{Schedd: "second"}), backend.TargetOf(w.latestRun("one")))
	require.Equal(t, targetAt(schedd.Endpoint{Schedd: "first"}), backend.TargetOf(w.latestRun("usual")))
	second.Complete(1, 0, 0)
	w.crosscheck()
	require.Equal(t, v1alpha1.PhaseSucceeded, w.job("one").Status.Phase)
}

func TestAPassLeavesOutTheScheddAtWhichOneIsStillRunning(t *testing.T) {
	w, _, first, second, _ := newWorldOfPools(t)
	w.apply(htcjob("here"))
	w.apply(htcjob("there", poolOf("", "second", "")))
	stuck := make(chan struct{})
	second.Fail(scheddtest.Queue, scheddtest.Fault{Block: stuck})
	asked := second.Calls(scheddtest.Queue)
	done := make(chan error, 1)
	go func() { done <- w.Crosscheck(context.WithoutCancel(t.Context())) }()
	require.Eventually(
		t,
		func() bool { return second.Calls(scheddtest.Queue) > asked },
		10*time.Second,
		time.Millisecond,
	)

	first.Complete(1, 0, 0)
	require.Eventually(t, func() bool {
		require.NoError(t, w.Crosscheck(t.Context()))
		return w.latestRun("here").Confirmed
	}, 10*time.Second, time.Millisecond)
	require.Equal(t, asked+1, second.Calls(scheddtest.Queue))
	close(stuck)
	require.NoError(t, <-done)
}

// ofTwo is a world with a pool of two schedds, in which the HTCJob one has been sent to the second.
func ofTwo(t *testing.T) (w *world, at map[string]*scheddtest.Schedd) {
	t.Helper()
	w = newWorld(t, withPools(cluster{"grid": v1alpha1.HTCPoolSpec{Schedds: []v1alpha1.ScheddName{"first", "second"}}}))
	at = map[string]*scheddtest.Schedd{"first": scheddtest.New(), "second": scheddtest.New()}
	p := &scheddtest.Several{Usual: "first", At: map[schedd.Endpoint]*scheddtest.Schedd{}}
	for name, s := range at {
		s.Clock(func() time.Time { return w.clock })
		p.At[schedd.Endpoint{Schedd: name}] = s
	}
	w.asks(p)
	w.apply(htcjob("filler", inGrid, queueOf(3)))
	w.apply(htcjob("one", inGrid))
	require.Len(t, at["second"].Jobs(), 1)
	w.delete("filler")
	for range 3 {
		w.later(5 * time.Second)
	}
	require.Empty(t, at["first"].Jobs())
	return w, at
}

func TestAnAttemptThatTheLedgerHasLostIsLookedForAtEverySchedd(t *testing.T) {
	for name, status := range map[string]v1alpha1.HTCJobStatus{
		"the status is not written yet":    {Phase: v1alpha1.PhasePending},
		"the status does not say where":    {Phase: v1alpha1.PhaseSubmitting, Attempt: 1},
		"the status is of another attempt": {Phase: v1alpha1.PhaseSubmitting, Attempt: 1, Schedd: "first"},
	} {
		for what, do := range map[string]func(*world, map[string]*scheddtest.Schedd){
			"adopted": func(w *world, at map[string]*scheddtest.Schedd) {
				require.Equal(w.t, "second", w.job("one").Status.Schedd)
				require.Equal(w.t, v1alpha1.PhaseIdle, w.job("one").Status.Phase)
				require.Len(w.t, at["second"].Jobs(), 1)
				require.Empty(w.t, at["first"].Jobs())
			},
			"deleted": func(w *world, at map[string]*scheddtest.Schedd) {
				w.delete("one")
				for range 3 {
					w.later(5 * time.Second)
				}
				require.Nil(w.t, w.job("one"))
				require.Empty(w.t, at["second"].Jobs())
			},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				w, at := ofTwo(t)
				w.do(func(job *v1alpha1.HTCJob) { job.Status = status })
				if what == "deleted" {
					at["second"].Down(errUnreachable)
				}
				w.loseLedger()
				for range 3 {
					w.later(10 * time.Second)
				}
				at["second"].Down(nil)
				if what == "adopted" {
					w.later(10 * time.Second)
				}
				do(w, at)
			})
		}
	}
}

func TestAnAttemptThatTheLedgerHasLostIsNotSentWhileOneOfTheScheddsDoesNotAnswer(t *testing.T) {
	w, at := ofTwo(t)
	w.do(func(job *v1alpha1.HTCJob) { job.Status = v1alpha1.HTCJobStatus{Phase: v1alpha1.PhasePending} })
	at["second"].Down(errUnreachable)
	w.loseLedger()
	for range 5 {
		w.later(time.Minute)
	}
	require.Empty(t, at["first"].Jobs())
	require.Contains(t, w.job("one").Status.Message, "at schedd second, one of 2 where it may be")
	at["second"].Down(nil)
	for range 5 {
		w.later(time.Minute)
	}
	require.Equal(t, "second", w.job("one").Status.Schedd)
}

func TestAnAttemptThatTheLedgerHasLostIsNotSentWhileOneOfTheScheddsShowsAnotherQueue(t *testing.T) {
	w, at := ofTwo(t)
	w.do(func(job *v1alpha1.HTCJob) {
		job.CreationTimestamp, job.Status = metav1.NewTime(w.clock), v1alpha1.HTCJobStatus{Phase: v1alpha1.PhasePending}
	})
	w.clock = w.clock.Add(time.Second)
	sent := at["second"].Jobs()
	at["second"].Reset()
	at["second"].Restart()
	w.loseLedger()
	for range 5 {
		w.later(time.Minute)
	}
	require.Empty(t, append(at["first"].Jobs(), at["second"].Jobs()...))
	require.Contains(t, w.job("one").Status.Message, "it has another queue than when the attempt began")
	at["second"].Restore(sent)
	at["second"].Restart()
	for range 5 {
		w.later(time.Minute)
	}
	require.Equal(t, "second", w.job("one").Status.Schedd)
	require.Empty(t, at["first"].Jobs())
}
