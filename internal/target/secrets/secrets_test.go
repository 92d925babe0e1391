package secrets

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

// When a Secret changes, all HTCJobs that wait for credentials are tried; a finalizer is no such change.
func TestAFinalizerWakesNobody(t *testing.T) {
	client := fake.NewClientset()
	s := NewWatcher(client, Options{Namespace: "htcd", Name: "kinit-secret", PerNamespace: true})
	ctx, stop := context.WithCancel(t.Context())
	ended, told := make(chan error, 1), make(chan string, 10)
	go func() {
		ended <- s.Run(ctx, func(namespace string) { told <- "changed " + namespace }, func(namespace string) { told <- "touched " + namespace })
	}()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
	require.True(t, cache.WaitForCacheSync(ctx.Done(), s.HasSynced))
	own := client.CoreV1().Secrets("physics")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "kinit-secret", ResourceVersion: "1"}}
	_, err := own.Create(t.Context(), secret, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, "changed physics", <-told)
	secret.Finalizers, secret.ResourceVersion = []string{Finalizer}, "2"
	_, err = own.Update(t.Context(), secret, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, "touched physics", <-told)
	secret.Data, secret.ResourceVersion = map[string][]byte{"token": []byte("another")}, "3"
	_, err = own.Update(t.Context(), secret, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, "changed physics", <-told)
	require.NoError(t, own.Delete(t.Context(), "kinit-secret", metav1.DeleteOptions{}))
	require.Equal(t, "changed physics", <-told)
}

func TestTheFinalizerOfASecret(t *testing.T) {
	client := fake.NewClientset()
	for _, key := range []string{"htcd/kinit-secret", "physics/kinit-secret", "physics/further", "physics/other"} {
		namespace, name, err := cache.SplitMetaNamespaceKey(key)
		require.NoError(t, err)
		_, err = client.CoreV1().Secrets(
			namespace,
		).Create(
			t.Context(),
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}},
			metav1.CreateOptions{},
		)
		require.NoError(t, err)
	}
	s := NewWatcher(
		client,
		Options{Namespace: "htcd", Name: "kinit-secret", PerNamespace: true, Further: []string{"further"}},
	)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, func(string) {}, func(string) {}) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
	require.True(t, cache.WaitForCacheSync(ctx.Done(), s.HasSynced))
	require.Empty(t, s.Own("htcd"), "the common one is no namespace's own")
	own := s.Own("physics")
	require.Equal(
		t,
		[]Own{{Namespace: "physics", Name: "further"}, {Namespace: "physics", Name: "kinit-secret", Usual: true}},
		own,
	)
	others := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "physics", Name: "further", Finalizers: []string{"somebody.else/s"}},
	}
	_, err := client.CoreV1().Secrets("physics").Update(t.Context(), others, metav1.UpdateOptions{})
	require.NoError(t, err)
	finalizers := func() []string {
		secret, err := client.CoreV1().Secrets("physics").Get(t.Context(), "further", metav1.GetOptions{})
		require.NoError(t, err)
		return secret.Finalizers
	}
	for range 2 {
		require.NoError(t, s.Hold(t.Context(), own[0]))
		require.ElementsMatch(t, []string{"somebody.else/s", Finalizer}, finalizers())
	}
	for range 2 {
		require.NoError(t, s.LetGo(t.Context(), own[0]))
		require.Equal(t, []string{"somebody.else/s"}, finalizers())
	}
}

func TestWhereASecretIsLookedForThatTheWatchDoesNotShow(t *testing.T) {
	var there []runtime.Object
	for _, namespace := range []string{"htcd", "physics"} {
		there = append(there, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kinit-secret"}})
	}
	for _, c := range []struct {
		o         Options
		namespace string
		unseen    bool
	}{
		{Options{PerNamespace: true}, "physics", true},
		{Options{PerNamespace: true}, "biology", false},
		{Options{PerNamespace: true}, "htcd", false}, // the common one
		{Options{PerNamespace: true, Directory: "/etc/account"}, "htcd", true},
		{Options{PerNamespace: true, Watched: "biology"}, "physics", false},
		{Options{}, "physics", false},
	} {
		c.o.Namespace, c.o.Name = "htcd", "kinit-secret"
		unseen, err := NewWatcher(fake.NewClientset(there...), c.o).Unseen(t.Context(), c.namespace)
		require.NoError(t, err)
		require.Equal(t, c.unseen, unseen, "%+v", c)
	}
}
