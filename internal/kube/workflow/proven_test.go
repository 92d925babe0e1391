package workflow

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
	"htc.cern.ch/htcd/internal/target/backend"
)

// refusal is the account, which does not work if err says why.
type refusal struct {
	*accounts
	err error
}

func (r *refusal) Identity(ctx context.Context, t backend.Target) (schedd.Identity, error) {
	id, _ := r.accounts.Identity(ctx, t)
	return id, r.err
}

func (r *refusal) Common(ctx context.Context, e schedd.Endpoint) (schedd.Identity, error) {
	id, _ := r.accounts.Common(ctx, e)
	return id, r.err
}

func newRefusal(w *world) *refusal {
	r := &refusal{accounts: &accounts{common: scheddtest.Robot}}
	w.Options.Credentials, w.Options.Answering.Any = r, r.Any
	w.restart()
	return r
}

var badPassword = &backend.CredentialError{
	Reason: "BadPassword", Message: "secret htcd/kinit-secret: no Kerberos ticket: Password incorrect",
}

func TestAWrongPasswordIsShownByAWorkflowThatDoesNotNeedItNow(t *testing.T) {
	w := newWorld(t)
	account := newRefusal(w)
	w.apply(newWorkflow("runs"))
	works := func() bool {
		return meta.IsStatusConditionTrue(w.flow("runs").Status.Conditions, v1alpha1.ConditionCredentials)
	}
	require.True(t, works())

	account.err = badPassword
	w.SecretChanged()
	w.later(reconciler.BetweenWrites)
	require.False(t, works())
	require.Equal(t, "BadPassword", w.flow("runs").Status.Reason)
	require.Contains(t, w.flow("runs").Status.Message, "Password incorrect")

	w.restart()
	w.later(reconciler.BetweenWrites)
	require.Equal(t, "BadPassword", w.flow("runs").Status.Reason, "it is not known yet that it works again")

	account.err = nil
	w.SecretChanged()
	w.later(reconciler.BetweenWrites)
	require.True(t, works())
	require.Empty(t, w.flow("runs").Status.Reason)
}

func TestAWorkflowThatHadAWrongPasswordAndWaitsForSomethingElseSaysSo(t *testing.T) {
	w := newWorld(t)
	account := newRefusal(w)
	account.err = badPassword
	w.apply(newWorkflow("waits"))
	require.Equal(t, "BadPassword", w.flow("waits").Status.Reason)

	account.err = nil
	w.schedd.Down(&condor.Error{Kind: condor.Limit, Command: "condor_submit", Stderr: "MAX_JOBS_PER_OWNER"}, scheddtest.Submit)
	w.SecretChanged()
	w.later(reconciler.BetweenWrites)
	reason, _ := w.says("waits", v1alpha1.ConditionSubmitted)
	require.Equal(t, "LimitReached", reason)
	require.Equal(t, "LimitReached", w.flow("waits").Status.Reason)
}

func TestADeletedWorkflowSaysWhatItsDeletionWaitsFor(t *testing.T) {
	w := newWorld(t)
	account := newRefusal(w)
	w.apply(newWorkflow("one"))
	account.err = badPassword
	w.delete("one")
	w.later(reconciler.BetweenWrites)
	require.Equal(t, "BadPassword", w.flow("one").Status.Reason)
	require.Equal(t, v1alpha1.PhaseIdle, w.flow("one").Status.Phase)

	account.err = nil
	w.schedd.Down(&condor.Error{Kind: condor.Unreachable, Command: "condor_q", Stderr: "nobody answers"})
	w.SecretChanged()
	w.later(reconciler.BetweenWrites)
	require.Equal(t, "Unreachable", w.flow("one").Status.Reason)
	require.Contains(t, w.flow("one").Status.Message, "htc.cern.ch/abandon=true")

	w.schedd.Down(nil)
	w.later(time.Hour)
	w.later(time.Minute)
	require.Nil(t, w.flow("one"))
}
