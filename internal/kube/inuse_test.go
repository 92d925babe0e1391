package kube

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

// aSecret gives the namespace an account of its own.
func aSecret(t *testing.T) *world {
	w := newWorld(t)
	w.accounts["default"] = "alice"
	w.own = []OwnSecret{{Namespace: "default", Name: "kinit-secret", Usual: true}, {Namespace: "default", Name: "further"}}
	return w
}

// take is kubectl delete secret.
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

// gone is what the informer tells of an HTCJob that is deleted.
func (w *world) gone(name string) {
	job := w.job(name)
	w.delete(name)
	require.Nil(w.t, w.job(name))
	w.lookAtSecrets(job)
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
	require.Equal(t, reasonSecretDeleting, said.Reason)
	require.Contains(t, said.Message, "secret default/kinit-secret is being deleted")
	require.Contains(t, said.Message, v1alpha1.InUseFinalizer)

	// When the namespace has no account any more, the common one sends what waits.
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
	w.own[0].Held, w.own[1].Held = false, true // an earlier release sent it; an HTCJob went while htcd was away
	w.restart()
	w.SecretChanged("default") // the informer tells of every Secret
	w.settle()
	require.True(t, w.own[0].Held)
	require.False(t, w.own[1].Held)
}

func TestALedgerThatIsLostLetsNoSecretGo(t *testing.T) {
	w := aSecret(t)
	w.apply(htcjob("job"))
	require.NoError(t, w.forget(t.Context(), "default", "other", "uid-job"))
	require.NoError(t, w.tendSecrets(t.Context(), "default"))
	require.True(t, w.own[0].Held)
}

func TestAnHTCdThatMayNotPatchSecretsWorksAsBefore(t *testing.T) {
	w := aSecret(t)
	w.unheld = fmt.Errorf("finalizer: %w", apierrors.NewForbidden(corev1.Resource("secrets"), "kinit-secret", errBroken))
	w.apply(htcjob("job"))
	require.Len(t, w.schedd.Jobs(), 1)
	require.True(t, w.secretUse.denied.Load(), "it was said")
	w.SecretChanged("default")
	w.settle()
	w.gone("job")
	require.Empty(t, w.schedd.Jobs())

	w.unheld = errBroken
	w.apply(htcjob("another"))
	require.Empty(t, w.schedd.Jobs(), "the apiserver may have it in a moment")
	w.unheld = nil
	w.retryNow(func(blocker) bool { return true })
	w.settle()
	require.Len(t, w.schedd.Jobs(), 1)
	require.False(t, w.secretUse.denied.Load())
}

func TestWhenTheFinalizerIsDue(t *testing.T) {
	for _, c := range []struct{ held, deleting, needed, due bool }{
		{needed: true, due: true},
		{needed: true, held: true},
		{needed: true, deleting: true}, // Kubernetes would refuse it
		{needed: true, held: true, deleting: true},
		{},
		{held: true, due: true},
		{held: true, deleting: true, due: true},
		{deleting: true},
	} {
		require.Equal(t, c.due, OwnSecret{Held: c.held, Deleting: c.deleting}.due(c.needed), "%+v", c)
	}
}

// Everybody's HTCJobs that wait for credentials are tried when one changes: a finalizer is no such change.
func TestAFinalizerWakesNobody(t *testing.T) {
	client := fake.NewClientset()
	s := NewSecretCredentials(client, SecretOptions{Namespace: "htcd", Name: "kinit-secret", PerNamespace: true}, ticketer{})
	ctx, stop := context.WithCancel(t.Context())
	ended, told := make(chan error, 1), make(chan string, 10)
	go func() {
		ended <- s.Run(ctx, func(namespace string) { told <- "changed " + namespace }, func(namespace string) { told <- "touched " + namespace })
	}()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
	require.True(t, cache.WaitForCacheSync(ctx.Done(), s.HasSynced))
	secrets := client.CoreV1().Secrets("physics")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "kinit-secret", ResourceVersion: "1"}}
	_, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, "changed physics", <-told)
	secret.Finalizers, secret.ResourceVersion = []string{v1alpha1.InUseFinalizer}, "2"
	_, err = secrets.Update(t.Context(), secret, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, "touched physics", <-told)
	secret.Data, secret.ResourceVersion = map[string][]byte{"token": []byte("another")}, "3"
	_, err = secrets.Update(t.Context(), secret, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, "changed physics", <-told)
	require.NoError(t, secrets.Delete(t.Context(), "kinit-secret", metav1.DeleteOptions{}))
	require.Equal(t, "changed physics", <-told)
}

func TestTheFinalizerOfASecret(t *testing.T) {
	s := secretsOf(t, true, nil, map[string]string{"htcd/kinit-secret": "robot", "physics/kinit-secret": "alice", "physics/further": "carol", "physics/other": "eve"})
	require.Empty(t, s.Own("htcd"), "the common one is no namespace's own")
	own := s.Own("physics")
	require.Equal(t, []OwnSecret{{Namespace: "physics", Name: "further"}, {Namespace: "physics", Name: "kinit-secret", Usual: true}}, own)
	others := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "physics", Name: "further", Finalizers: []string{"somebody.else/s"}}}
	_, err := s.client.CoreV1().Secrets("physics").Update(t.Context(), others, metav1.UpdateOptions{})
	require.NoError(t, err)
	finalizers := func() []string {
		secret, err := s.client.CoreV1().Secrets("physics").Get(t.Context(), "further", metav1.GetOptions{})
		require.NoError(t, err)
		return secret.Finalizers
	}
	for range 2 {
		require.NoError(t, s.Hold(t.Context(), own[0]))
		require.ElementsMatch(t, []string{"somebody.else/s", v1alpha1.InUseFinalizer}, finalizers())
	}
	for range 2 {
		require.NoError(t, s.LetGo(t.Context(), own[0]))
		require.Equal(t, []string{"somebody.else/s"}, finalizers())
	}
}
