package workflow

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
	"htc.cern.ch/htcd/internal/target/backend"
)

// accounts are credentials: the common account, and that of namespace default, if it has one.
type accounts struct{ common, own string }

func (a *accounts) Identity(ctx context.Context, t backend.Target) (schedd.Identity, error) {
	if a.own != "" && t.Namespace == "default" {
		return schedd.Identity{CCache: a.own, Endpoint: t.Endpoint}, nil
	}
	return a.Common(ctx, t.Endpoint)
}

func (a *accounts) Common(_ context.Context, e schedd.Endpoint) (schedd.Identity, error) {
	return schedd.Identity{CCache: a.common, Endpoint: e}, nil
}

func (a *accounts) Any(ctx context.Context, e schedd.Endpoint) (schedd.Identity, error) {
	return a.Common(ctx, e)
}

// withAccounts restarts htcd with other credentials.
func (w *world) withAccounts(a *accounts) {
	w.Options.Credentials, w.Options.Answering.Any = a, a.Any
	w.restart()
}

// sends has DAGMan, which is cluster dag, send a node of the first DAG of a workflow.
func (w *world) sends(dag, number int, flow *v1alpha1.HTCWorkflow) (cluster int) {
	w.t.Helper()
	var owner string
	for _, j := range w.schedd.Jobs() {
		if j.Cluster == dag {
			owner = j.Owner
		}
		cluster = max(cluster, j.Cluster+1)
	}
	for _, j := range w.schedd.Gone() {
		cluster = max(cluster, j.Cluster+1)
	}
	w.schedd.Put(
		condor.Job{
			Cluster:              cluster,
			Owner:                owner,
			Status:               condor.Idle,
			StageInFinish:        1,
			EnteredCurrentStatus: w.clock.Unix(),
			Node:                 condor.NodeTag{UID: string(flow.UID), DAG: 1, Number: number},
		},
	)
	return cluster
}

// passes lets so many minutes pass, with a cross-check in each.
func (w *world) passes(minutes int) {
	w.t.Helper()
	for range minutes {
		require.NoError(w.t, w.Crosscheck(w.t.Context()))
		w.later(time.Minute)
	}
}

func TestAWorkflowLivesWithTheAccountThatItWasSentAs(t *testing.T) {
	common, own := accounts{common: "robot"}, accounts{common: "robot", own: "alice"}
	for name, tt := range map[string]struct {
		sent, since accounts
		owner       string
	}{
		"of all namespaces": {common, common, "robot"},
		"of its namespace":  {own, own, "alice"},
		"of all namespaces, until its namespace has its own":    {common, own, "robot"},
		"of all namespaces, whose Secret has had another since": {accounts{common: "robot"}, accounts{common: "robot2"}, "robot"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			now := tt.sent
			w.withAccounts(&now)
			flow := w.apply(oneStep("one"))
			require.Equal(t, tt.owner, w.schedd.Jobs()[0].Owner)
			now = tt.since
			first, second := w.sends(1, 0, flow), w.sends(1, 1, flow)
			w.passes(1)
			require.Equal(t, v1alpha1.NodeCounts{Total: 2, Idle: 2}, w.flow("one").Status.Nodes)
			w.schedd.Run(first, 0)
			w.passes(1)
			require.Equal(t, v1alpha1.NodeCounts{Total: 2, Running: 1, Idle: 1}, w.flow("one").Status.Nodes)
			w.schedd.Complete(first, 0, 0)
			w.schedd.Leave(first, 0)
			w.schedd.Complete(second, 0, 1)
			w.schedd.Leave(second, 0)
			w.passes(1)
			require.Equal(t, v1alpha1.NodeCounts{Total: 2, Done: 1, Failed: 1}, w.flow("one").Status.Nodes)
			w.schedd.Complete(1, 0, 1)
			w.passes(3)
			status := w.flow("one").Status
			require.Equal(t, v1alpha1.PhaseFailed, status.Phase)
			require.Len(t, status.Failures, 1)
			require.Equal(t, "ExitCode", status.Failures[0].Reason, "not Lost")

			if tt.since.common != tt.sent.common {
				_, message := w.says("one", v1alpha1.ConditionOutputFetched)
				require.Contains(t, message, "nothing of DAG 1.0 of the account robot can be fetched")
				now = tt.sent
				w.fetches.Add("default/one") // as after a minute
				w.later(time.Minute)
			}
			reason, message := w.says("one", v1alpha1.ConditionOutputFetched)
			require.Equal(t, "Fetched", reason, message)
			require.Empty(t, w.schedd.Jobs(), "DAGMan's job has left the queue")
			w.delete("one")
			w.later(time.Minute)
			require.Nil(t, w.flow("one"))
		})
	}
}

func TestCallbacksOfAWorkflowAreConfirmedWhateverItsAccount(t *testing.T) {
	for _, own := range []string{"", "alice"} {
		t.Run("account "+own, func(t *testing.T) {
			w := newWorld(t)
			w.withAccounts(&accounts{common: "robot", own: own})
			flow := w.apply(oneStep("one"))
			var hash []byte
			require.NoError(t, w.book.Read(t.Context(), func(tx *ledger.Tx) error {
				run, err := tx.Run(string(flow.UID), 1)
				hash = run.TokenHash
				return err
			}))
			for number := range 2 {
				cluster := w.sends(1, number, flow)
				id := condor.Job{Cluster: cluster}.ID()
				require.NoError(
					t,
					w.Record(
						t.Context(),
						notify.Callback{
							Namespace: "default",
							Name:      "one",
							JobID:     id,
							Node:      &notify.Node{Number: number},
						},
						hash,
					),
				)
				w.schedd.Complete(cluster, 0, 0)
				w.schedd.Leave(cluster, 0)
			}
			w.schedd.Complete(1, 0, 0)
			w.passes(3)
			require.Equal(t, v1alpha1.PhaseSucceeded, w.flow("one").Status.Phase)
		})
	}
}

func TestADeletedWorkflowOfTheCommonAccountLeavesTheQueueOnceItsNamespaceHasItsOwn(t *testing.T) {
	w := newWorld(t)
	now := accounts{common: scheddtest.Robot}
	w.withAccounts(&now)
	flow := w.apply(oneStep("one"))
	w.sends(1, 0, flow)
	w.passes(1)
	now.own = "alice"
	w.schedd.Complete(1, 0, 1)
	w.schedd.Down(&condor.Error{Kind: condor.Unreachable, Command: "condor_transfer_data"}, scheddtest.Transfer)
	w.delete("one")
	w.passes(3)
	require.Nil(t, w.flow("one"))
	require.Empty(t, w.schedd.Jobs())
	require.Empty(t, w.schedd.Gone()[0].RemoveReason, "DAGMan had ended: it is let go, not removed")
}
