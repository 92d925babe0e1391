package job

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
	"htc.cern.ch/htcd/internal/target/secrets"
)

// aSecret returns a world in which the namespace has its own account.
func aSecret(t *testing.T) *world {
	w := newWorld(t)
	w.accounts["default"] = "alice"
	w.own = []secrets.Own{
		{Namespace: "default", Name: "kinit-secret", Usual: true},
		{Namespace: "default", Name: "further"},
	}
	return w
}

// take does what kubectl delete secret does.
func (w *world) take(i int) {
	w.own[i].Deleting = true
	if !w.own[i].Held {
		w.own = append(w.own[:i:i], w.own[i+1:]...)
	}
	w.SecretChanged("default")
	w.settle()
}

func sentWith(secret string) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) { job.Spec.Pool = &v1alpha1.Pool{SecretName: secret} }
}

// gone deletes an HTCJob as the informer reports it.
func (w *world) gone(name string) {
	job := w.job(name)
	w.delete(name)
	require.Nil(w.t, w.job(name))
	w.Handler().OnDelete(job)
	w.settle()
}

func TestASecretIsKeptUntilTheHTCJobsSentWithItAreGone(t *testing.T) {
	w := aSecret(t)
	w.apply(htcjob("first"))
	require.True(t, w.own[0].Held)
	require.False(t, w.own[1].Held, "nothing was sent with it")
	w.apply(htcjob("second"))
	require.Equal(t, 1, w.patches, "once is enough")
	require.NoError(t, w.ends("second", 0, 0))

	w.take(0)
	require.True(t, w.own[0].Held)
	w.gone("first")
	require.True(t, w.own[0].Held, "the other was sent with it as well")
	w.gone("second")
	require.Len(t, w.own, 1, "nothing is left that needs it")
	require.Empty(t, w.schedd.Jobs())
	require.Equal(t, 2, w.patches)
}

func TestASecretThatIsNamedIsKept(t *testing.T) {
	w := aSecret(t)
	w.Controller.Site.PoolSecrets = []string{"kinit-secret", "further"}
	w.apply(htcjob("job", sentWith("further")))
	require.False(t, w.own[0].Held)
	require.True(t, w.own[1].Held)
	w.apply(htcjob("usual", sentWith("kinit-secret")))
	require.True(t, w.own[0].Held)
	w.gone("job")
	require.True(t, w.own[0].Held)
	require.False(t, w.own[1].Held)
}

func TestNothingBeginsWithASecretThatIsBeingDeleted(t *testing.T) {
	w := aSecret(t)
	w.apply(htcjob("before"))
	w.take(0)
	w.apply(htcjob("after"))
	require.Len(t, w.schedd.Jobs(), 1)
	w.later(0)
	said := meta.FindStatusCondition(w.job("after").Status.Conditions, v1alpha1.ConditionCredentials)
	require.Equal(t, metav1.ConditionFalse, said.Status)
	require.Equal(t, "SecretBeingDeleted", said.Reason)
	require.Contains(t, said.Message, "secret default/kinit-secret is being deleted")
	require.Contains(t, said.Message, secrets.Finalizer)

	// Once the namespace has no account any more, the common one sends the waiting HTCJobs.
	w.accounts["default"] = ""
	w.own = w.own[1:]
	w.SecretChanged("default")
	w.settle()
	require.Len(t, w.schedd.Jobs(), 2)
}

func TestWhatHasBegunGoesOnWithASecretThatIsBeingDeleted(t *testing.T) {
	w := aSecret(t)
	w.schedd.Down(errUnreachable, scheddtest.Submit)
	w.apply(htcjob("job"))
	require.True(t, w.own[0].Held, "the intent is there")
	w.take(0)
	w.schedd.Down(nil, scheddtest.Submit)
	for range 4 {
		w.later(time.Minute)
	}
	require.Len(t, w.schedd.Jobs(), 1)
	require.Equal(t, "alice", w.schedd.Jobs()[0].Owner)
}

func TestTheStartSeesToTheSecrets(t *testing.T) {
	w := aSecret(t)
	w.apply(htcjob("job"))
	// an earlier release sent with the first; the HTCJob of the second went while htcd was away
	w.own[0].Held, w.own[1].Held = false, true
	w.restart()
	w.SecretChanged("default") // the informer reports every Secret
	w.settle()
	require.True(t, w.own[0].Held)
	require.False(t, w.own[1].Held)
}

func TestALedgerThatIsLostLetsNoSecretGo(t *testing.T) {
	w := aSecret(t)
	w.apply(htcjob("job"))
	require.NoError(t, w.forget(t.Context(), "default", "other", "uid-job"))
	require.NoError(t, w.keeper.Tend(t.Context(), "default"))
	require.True(t, w.own[0].Held)
}

func TestAnHTCdThatMayNotPatchSecretsWorksAsBefore(t *testing.T) {
	w := aSecret(t)
	said := 0
	w.keeper.Denied = func(secrets.Own, error) { said++ }
	w.unheld = fmt.Errorf(
		"finalizer: %w",
		apierrors.NewForbidden(corev1.Resource("secrets"), "kinit-secret", errBroken),
	)
	w.apply(htcjob("job"))
	require.Len(t, w.schedd.Jobs(), 1)
	require.Equal(t, 1, said)
	w.SecretChanged("default")
	w.settle()
	w.gone("job")
	require.Empty(t, w.schedd.Jobs())

	w.unheld = errBroken
	w.apply(htcjob("another"))
	require.Empty(t, w.schedd.Jobs(), "the apiserver may have it in a moment")
	w.unheld = nil
	w.retryNow(func(reconciler.Blocker) bool { return true })
	w.settle()
	require.Len(t, w.schedd.Jobs(), 1)
}
