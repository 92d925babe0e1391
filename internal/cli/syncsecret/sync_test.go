package syncsecret

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// token returns a JWT with that end.
func token(end time.Time) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{}`)) + "." + encode(fmt.Appendf(nil, `{"exp":%d}`, end.Unix())) + ".c2ln"
}

type fixture struct {
	*Sync
	client *fake.Clientset
	log    *strings.Builder
	dir    string
}

func setUp(t *testing.T, objects ...runtime.Object) fixture {
	t.Helper()
	f := fixture{client: fake.NewClientset(objects...), log: &strings.Builder{}, dir: t.TempDir()}
	f.Sync = &Sync{
		Secrets: f.client.CoreV1().Secrets("a"),
		Name:    "wlcg",
		Files:   []File{{"token", filepath.Join(f.dir, "token")}},
		Labels:  map[string]string{"marked": "true"},
		Log:     zerolog.New(f.log),
		Now:     func() time.Time { return now },
	}
	return f
}

func (f fixture) file(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600))
}

func (f fixture) secret(t *testing.T) *corev1.Secret {
	t.Helper()
	secret, err := f.Secrets.Get(t.Context(), f.Name, metav1.GetOptions{})
	require.NoError(t, err)
	return secret
}

// writes counts the requests that change something.
func (f fixture) writes() (n int) {
	for _, action := range f.client.Actions() {
		if action.GetVerb() != "get" {
			n++
		}
	}
	return n
}

func TestASecretFollowsItsFiles(t *testing.T) {
	f := setUp(t)
	f.file(t, "token", token(now.Add(3*time.Hour)))
	require.NoError(t, f.Once(t.Context()))
	require.Equal(t, token(now.Add(3*time.Hour)), string(f.secret(t).Data["token"]))
	require.Equal(t, map[string]string{"marked": "true"}, f.secret(t).Labels)

	require.NoError(t, f.Once(t.Context()))
	require.Equal(t, 1, f.writes(), "an unchanged file causes no write")

	f.file(t, "token", token(now.Add(4*time.Hour)))
	require.NoError(t, f.Once(t.Context()))
	require.Equal(t, token(now.Add(4*time.Hour)), string(f.secret(t).Data["token"]))
	require.NotContains(t, f.log.String(), token(now.Add(4*time.Hour)))
}

func TestOtherKeysAndLabelsOfASecretStay(t *testing.T) {
	f := setUp(
		t,
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "wlcg"},
			Data:       map[string][]byte{"other": []byte("x")},
		},
	)
	f.file(t, "token", "plain")
	require.NoError(t, f.Once(t.Context()))
	require.Equal(t, map[string][]byte{"other": []byte("x"), "token": []byte("plain")}, f.secret(t).Data)
	require.Empty(t, f.secret(t).Labels)
}

func TestAYoungerCredentialIsKept(t *testing.T) {
	later := token(now.Add(2 * time.Hour))
	f := setUp(
		t,
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "wlcg"},
			Data:       map[string][]byte{"token": []byte(later)},
		},
	)
	for _, file := range []string{token(now.Add(time.Hour)), "half writ"} {
		f.file(t, "token", file)
		require.NoError(t, f.Once(t.Context()))
		require.Equal(t, later, string(f.secret(t).Data["token"]))
	}
	require.Contains(
		t,
		f.log.String(),
		"the Secret's ends at 2026-11-22T14:00:00Z, later than the file's at 2026-11-22T13:00:00Z",
	)
	require.Contains(t, f.log.String(), "it ends soon, at 2026-11-22T13:00:00Z")
	require.Contains(t, f.log.String(), "it may be half written")
}

func TestNothingIsWrittenUnlessAllFilesCanBeRead(t *testing.T) {
	f := setUp(t)
	f.Files = append(f.Files, File{"more", filepath.Join(f.dir, "more")})
	f.file(t, "token", "a")
	require.ErrorIs(t, f.Once(t.Context()), os.ErrNotExist)
	f.file(t, "more", "")
	require.ErrorContains(t, f.Once(t.Context()), "is empty")
	f.file(t, "more", strings.Repeat("x", maxFiles))
	require.ErrorContains(t, f.Once(t.Context()), "at most 1 MiB")
	require.Zero(t, f.writes())
}

func TestAConflictIsResolvedByReadingAgain(t *testing.T) {
	f := setUp(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "wlcg"}})
	f.file(t, "token", "a")
	conflicts := 2
	f.client.PrependReactor("update", "secrets", func(k8stesting.Action) (bool, runtime.Object, error) {
		if conflicts--; conflicts >= 0 {
			return true, nil, apierrors.NewConflict(corev1.Resource("secrets"), "wlcg", errors.New("changed"))
		}
		return false, nil, nil
	})
	require.NoError(t, f.Once(t.Context()))
	require.Equal(t, "a", string(f.secret(t).Data["token"]))
}

func TestItGoesOnAfterAFailure(t *testing.T) {
	f := setUp(t)
	ctx, cancel := context.WithCancel(t.Context())
	tried := 0
	f.client.PrependReactor("create", "secrets", func(k8stesting.Action) (bool, runtime.Object, error) {
		if tried++; tried == 3 {
			cancel()
		}
		return true, nil, apierrors.NewForbidden(corev1.Resource("secrets"), "wlcg", errors.New("no right"))
	})
	f.file(t, "token", "a")
	f.Every(ctx, time.Millisecond)
	require.Equal(t, 3, tried)
	require.Contains(t, f.log.String(), "no right")
}

func TestALongOutageIsNotMetWithTriesWithoutPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := setUp(t)
		ctx, cancel := context.WithCancel(t.Context())
		const tries = 100
		tried := 0
		f.client.PrependReactor("create", "secrets", func(k8stesting.Action) (bool, runtime.Object, error) {
			if tried++; tried == tries {
				cancel()
			}
			return true, nil, apierrors.NewServiceUnavailable("away")
		})
		f.file(t, "token", "a")
		began := time.Now()
		f.Every(ctx, time.Minute)
		require.Greater(t, time.Since(began), (tries-10)*time.Minute)
	})
}

func TestArguments(t *testing.T) {
	files, err := Files([]string{"/tmp/x509up_u1000", "x509up=/tmp/other", "a=b=c"})
	require.NoError(t, err)
	require.Equal(t, []File{{"x509up_u1000", "/tmp/x509up_u1000"}, {"x509up", "/tmp/other"}, {"a", "b=c"}}, files)

	for _, arguments := range [][]string{nil, {""}, {"key="}, {"=file"}, {"a b=file"}, {"..=file"}, {"/x/a", "/y/a"}} {
		_, err := Files(arguments)
		require.Error(t, err, arguments)
	}
}
