package jobsecrets

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

func secret(name, label string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "physics", Name: name, Labels: map[string]string{Label: label}},
		Data:       map[string][]byte{"key": []byte("value")},
	}
}

func TestOnlyMarkedSecretsAreRead(t *testing.T) {
	client := fake.NewClientset(
		secret("marked", "true"),
		secret("other", "false"),
		secret("kinit-secret", "true"),
		secret("denied", "true"),
		secret("broken", "true"),
	)
	client.PrependReactor("get", "secrets", func(a k8stesting.Action) (bool, runtime.Object, error) {
		switch a.(k8stesting.GetAction).GetName() {
		case "denied":
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "denied", nil)
		case "broken":
			return true, nil, apierrors.NewInternalError(errors.New("broken"))
		}
		return false, nil, nil
	})
	r := NewReader(client.CoreV1(), []string{"kinit-secret"})
	for name, c := range map[string]struct{ name, key, reason string }{
		"marked":              {"marked", "key", ""},
		"another key":         {"marked", "another", ReasonNoKey},
		"not marked":          {"other", "key", ReasonNotMarked},
		"absent":              {"absent", "key", ReasonNotFound},
		"an account's":        {"kinit-secret", "key", ReasonAccount},
		"not to be read":      {"denied", "key", ReasonForbidden},
		"the apiserver fails": {"broken", "key", "?"},
	} {
		value, err := r.Read(t.Context(), "physics", c.name, c.key, 100)
		e, told := errors.AsType[*Unusable](err)
		switch {
		case c.reason == "":
			require.NoError(t, err, name)
			require.Equal(t, "value", string(value))
		case c.reason == "?":
			require.Error(t, err)
			require.False(t, told, name)
		default:
			require.True(t, told, name)
			require.Equal(t, c.reason, e.Reason, name)
			require.NotContains(t, err.Error(), "value")
		}
	}
	_, err := r.Read(t.Context(), "physics", "marked", "key", 4)
	require.ErrorContains(t, err, "5 bytes")
}

func TestManyAskersNeedOneRequestAndSeeAChange(t *testing.T) {
	client := fake.NewClientset(secret("marked", "true"))
	r := NewReader(client.CoreV1(), nil)
	var mu sync.Mutex
	now := time.Now()
	r.now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	read := func() string {
		value, err := r.Read(t.Context(), "physics", "marked", "key", 100)
		require.NoError(t, err)
		return string(value)
	}
	for range 100 {
		require.Equal(t, "value", read())
	}
	require.Len(t, client.Actions(), 1)

	changed := secret("marked", "true")
	changed.Data["key"] = []byte("another")
	_, err := client.CoreV1().Secrets("physics").Update(t.Context(), changed, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, "value", read())
	mu.Lock()
	now = now.Add(fresh)
	mu.Unlock()
	require.Equal(t, "another", read())

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = r.Read(ctx, "physics", "marked", "key", 100)
	require.NoError(t, err, "it is known")
	require.Len(t, r.known, 1)
}

func TestNoMoreIsKeptOfSecretsThanABound(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("get", "secrets", func(a k8stesting.Action) (bool, runtime.Object, error) {
		large := secret(a.(k8stesting.GetAction).GetName(), "true")
		large.Data["large"] = make([]byte, 1<<20)
		return true, large, nil
	})
	r := NewReader(client.CoreV1(), nil)
	for i := range 200 {
		value, err := r.Read(t.Context(), "physics", fmt.Sprint("s", i), "key", 100)
		require.NoError(t, err)
		require.Equal(t, "value", string(value))
	}
	require.Len(t, r.known, 63, "of 1 MiB and 5 bytes each")
}
