package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/target/backend"
)

var badPasswordError = &backend.CredentialError{
	Reason:  "BadPassword",
	Message: "secret htcd/kinit-secret: no Kerberos ticket: Password incorrect",
}

func TestAWrongPasswordIsShownByHTCJobsThatDoNotNeedItNow(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("runs"))
	w.apply(htcjob("ended"))
	require.NoError(t, w.ends("ended", 0, 0))
	w.denied = badPasswordError
	w.SecretChanged("htcd")
	w.settle()
	said := condition(w.job("runs"), v1alpha1.ConditionCredentials)
	require.Equal(t, metav1.ConditionFalse, said.Status)
	require.Equal(t, "BadPassword", said.Reason)
	require.Contains(t, said.Message, "Password incorrect")
	require.Equal(t, v1alpha1.PhaseIdle, w.job("runs").Status.Phase)
	require.Equal(t, metav1.ConditionTrue, condition(w.job("ended"), v1alpha1.ConditionCredentials).Status)

	w.denied = nil
	w.SecretChanged("htcd")
	w.settle()
	require.Equal(t, metav1.ConditionTrue, condition(w.job("runs"), v1alpha1.ConditionCredentials).Status)
}

func TestManyChangesOfASecretAreOneLook(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("runs"))
	before := w.asked.Load()
	for range 100 {
		w.SecretChanged("htcd")
	}
	w.settle()
	require.Equal(t, before+2, w.asked.Load(), "for the common account, and for the namespace without one of its own")
}

func TestARestartForgetsNoWrongPassword(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("runs"))
	w.denied = badPasswordError
	w.SecretChanged("htcd")
	w.settle()
	before := w.writes
	w.restart()
	w.settle()
	require.Equal(t, before, w.writes, "it was never True in between")
	w.Prover.Prove(t.Context(), true)
	w.settle()
	require.Equal(t, before, w.writes)
	require.Equal(t, "BadPassword", condition(w.job("runs"), v1alpha1.ConditionCredentials).Reason)
}

func TestASecretThatIsNotReadYetIsNoFaultAtOnce(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("runs"))
	w.denied = &backend.CredentialError{Reason: "SecretUnreadable", Message: "not read yet"}
	w.SecretChanged("htcd")
	w.settle()
	require.Equal(t, metav1.ConditionTrue, condition(w.job("runs"), v1alpha1.ConditionCredentials).Status)
	w.Prover.Prove(t.Context(), true)
	w.settle()
	require.Equal(t, "SecretUnreadable", condition(w.job("runs"), v1alpha1.ConditionCredentials).Reason)
}

func TestEachHTCJobSaysWhatItsOwnAccountIsWorth(t *testing.T) {
	w := newWorld(t)
	w.Site.PoolSecrets = []string{"kinit-secret", "hers"}
	w.apply(htcjob("usual"))
	w.apply(htcjob("hers", func(job *v1alpha1.HTCJob) { job.Spec.Pool = &v1alpha1.Pool{SecretName: "hers"} }))
	w.refused = map[string]error{"hers": badPasswordError}
	w.Prover.Prove(t.Context(), true)
	w.later(time.Minute)
	require.Equal(t, metav1.ConditionTrue, condition(w.job("usual"), v1alpha1.ConditionCredentials).Status)
	require.Equal(t, "BadPassword", condition(w.job("hers"), v1alpha1.ConditionCredentials).Reason)
}
