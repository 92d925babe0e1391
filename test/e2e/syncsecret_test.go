//go:build !releases

package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/trial"
)

// kubeconfigOf writes a kubeconfig for a service account.
func kubeconfigOf(t *testing.T, client kubernetes.Interface, namespace, account string) string {
	t.Helper()
	request, err := client.CoreV1().ServiceAccounts(
		namespace,
	).CreateToken(
		t.Context(),
		account,
		&authenticationv1.TokenRequest{},
		metav1.CreateOptions{},
	)
	require.NoError(t, err)
	server := rest.AnonymousClientConfig(trial.Config(t))
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"lab": {Server: server.Host, CertificateAuthority: server.CAFile,
			CertificateAuthorityData: server.CAData, InsecureSkipTLSVerify: server.Insecure}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{account: {Token: request.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{"lab": {Cluster: "lab", AuthInfo: account, Namespace: namespace}},
		CurrentContext: "lab",
	}, file))
	return file
}

// A program with the rights of examples/sync-secret/cronjob.yaml keeps a Secret equal to a token that is renewed.
func TestASecretIsKeptEqualToAFile(t *testing.T) {
	t.Parallel()
	namespace := trial.Namespace(t)
	client, err := kubernetes.NewForConfig(trial.Config(t))
	require.NoError(t, err)
	running, err := lab.Find()
	require.NoError(t, err)
	manifest, err := filepath.Abs("../../examples/sync-secret/cronjob.yaml")
	require.NoError(t, err)
	out, err := running.Run(t.Context(), "kubectl", "apply", "-n", namespace, "-f", manifest)
	require.NoError(t, err, out)
	require.Contains(t, out, "cronjob.batch/sync-secret created")
	kubeconfig := kubeconfigOf(t, client, namespace, "sync-secret")

	file := filepath.Join(t.TempDir(), "token")
	renew := func(end time.Time) string {
		encode := base64.RawURLEncoding.EncodeToString
		text := encode([]byte(`{"alg":"none"}`)) + "." + encode(fmt.Appendf(nil, `{"exp":%d}`, end.Unix())) + ".c2ln"
		require.NoError(t, os.WriteFile(file+".new", []byte(text), 0o600))
		require.NoError(t, os.Rename(file+".new", file))
		return text
	}
	token := func() string {
		secret, err := client.CoreV1().Secrets(namespace).Get(t.Context(), "atlas-proxy", metav1.GetOptions{})
		require.NoError(t, err)
		return string(secret.Data["token"])
	}
	sync := func(ctx context.Context, more ...string) *exec.Cmd {
		return exec.CommandContext(ctx, running.Path("htcd", "bin", "htcd"),
			append([]string{"sync-secret", "--kubeconfig", kubeconfig, "--name", "atlas-proxy", file}, more...)...)
	}

	// Once, as in the CronJob.
	first := renew(time.Now().Add(3 * time.Hour))
	words, err := sync(t.Context()).CombinedOutput()
	require.NoError(t, err, "%s", words)
	require.Equal(t, first, token())
	secret, err := client.CoreV1().Secrets(namespace).Get(t.Context(), "atlas-proxy", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "true", secret.Labels["htc.cern.ch/jobs"])
	words, err = sync(t.Context()).CombinedOutput()
	require.NoError(t, err, "%s", words)
	unchanged, err := client.CoreV1().Secrets(namespace).Get(t.Context(), "atlas-proxy", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, secret.ResourceVersion, unchanged.ResourceVersion)

	// Again and again, as in the unit of systemd.
	var log strings.Builder
	going := sync(t.Context(), "--every", "1s")
	going.Stdout, going.Stderr = &log, &log
	require.NoError(t, going.Start())
	second := renew(time.Now().Add(4 * time.Hour))
	require.Eventually(t, func() bool { return token() == second }, trial.Patience, 100*time.Millisecond)
	renew(time.Now().Add(time.Minute)) // an older proxy, restored by somebody
	require.Never(t, func() bool { return token() != second }, 3*time.Second, 300*time.Millisecond)
	require.NoError(t, going.Process.Signal(os.Interrupt))
	require.NoError(t, going.Wait(), log.String())
	require.Contains(t, log.String(), "later than the file's")
	require.NotContains(t, log.String(), second)

	// What it may not do is said, and nothing is printed of the content.
	refused := exec.CommandContext(
		t.Context(),
		running.Path("htcd", "bin", "htcd"),
		"sync-secret",
		"--kubeconfig",
		kubeconfig,
		"--name",
		"another",
		file,
	)
	require.NoError(t, client.RbacV1().Roles(namespace).Delete(t.Context(), "sync-secret", metav1.DeleteOptions{}))
	words, err = refused.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(words), "forbidden")
	require.Equal(t, 1, refused.ProcessState.ExitCode())
	_, err = client.CoreV1().Secrets(namespace).Get(t.Context(), "another", metav1.GetOptions{})
	require.Error(t, err)
}
