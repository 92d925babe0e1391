//go:build !releases

package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/output"
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
		AuthInfos: map[string]*clientcmdapi.AuthInfo{account: {Token: request.Status.Token}},
		Contexts: map[string]*clientcmdapi.Context{
			"lab": {Cluster: "lab", AuthInfo: account, Namespace: namespace},
		},
		CurrentContext: "lab",
	}, file))
	return file
}

// vomsProxy installs deploy/components/voms-proxy as docs/data.md says, and returns its CronJob.
func vomsProxy(t *testing.T, running *lab.Lab, namespace string) batchv1.CronJob {
	t.Helper()
	dir := t.TempDir()
	component, err := filepath.Abs("../../deploy/components/voms-proxy")
	require.NoError(t, err)
	component, err = filepath.Rel(dir, component)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"),
		fmt.Appendf(nil, `
namespace: %s
components: [%s]
patches:
- target: {kind: CronJob, name: voms-proxy}
  patch: |-
    - op: replace
      path: /spec/jobTemplate/spec/template/spec/initContainers/0/env/0/value
      value: "owls:/owls/barn"
`, namespace, component), 0o600))
	out, err := running.Run(t.Context(), "kubectl", "apply", "-k", dir)
	require.NoError(t, err, out)
	out, err = running.Run(t.Context(), "kubectl", "get", "-n", namespace, "cronjob", "voms-proxy", "-o", "json")
	require.NoError(t, err)
	var job batchv1.CronJob
	require.NoError(t, json.Unmarshal([]byte(out), &job))
	return job
}

// The commands of deploy/components/voms-proxy make a proxy at a VOMS server and renew it; jobs read it. Without the
// server the last one stays.
func TestTheComponentKeepsAProxyInASecret(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	client, err := kubernetes.NewForConfig(trial.Config(t))
	require.NoError(t, err)
	job := vomsProxy(t, b.Lab, b.Namespace)
	pod := job.Spec.JobTemplate.Spec.Template.Spec
	kubeconfig := kubeconfigOf(t, client, b.Namespace, pod.ServiceAccountName)
	server := serveVOMS(b)

	renew := func() error {
		container, who := pod.InitContainers[0], *pod.SecurityContext
		command := []string{fmt.Sprintf("--userspec=%d:%d", *who.RunAsUser, *who.FSGroup), server.image, "env", "-i"}
		for _, v := range container.Env {
			command = append(command, v.Name+"="+v.Value)
		}
		command = slices.Concat(command, container.Command, container.Args)
		if _, err := b.Lab.RunAs(t.Context(), "root", "chroot", command...); err != nil {
			return err
		}
		command = slices.Concat([]string{"sync-secret", "--kubeconfig", kubeconfig}, pod.Containers[0].Command[2:])
		command[len(command)-1] = server.image + command[len(command)-1]
		words, err := exec.CommandContext(t.Context(), b.Lab.Path("htcd", "bin", "htcd"), command...).CombinedOutput()
		require.NoError(t, err, "%s", words)
		return nil
	}
	kept := func() string {
		secret, err := client.CoreV1().Secrets(b.Namespace).Get(t.Context(), "voms-proxy", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, "true", secret.Labels["htc.cern.ch/jobs"])
		made, err := os.ReadFile(filepath.Join(server.image, "proxy", "x509up"))
		require.NoError(t, err)
		require.Equal(t, string(made), string(secret.Data["x509up"]))
		return string(made)
	}

	require.NoError(t, renew())
	first := kept()
	require.NoError(t, renew())
	renewed := kept()
	require.NotEqual(t, first, renewed)

	// The image has the VO's .lsc file, with which voms-proxy-info verifies what the server has signed.
	b.Create("reads", "voms-proxy-info --vo --fqan --acexists owls", credentials("owls voms-proxy x509up X509Proxy"),
		func(job *v1alpha1.HTCJob) { job.Spec.Script.Image = server.image })
	read := b.Fetched("reads")
	require.Equal(t, v1alpha1.PhaseSucceeded, read.Status.Phase, b.File(read, 0, output.Stderr))
	require.Equal(t, "owls\n/owls/barn/Role=NULL/Capability=NULL\n/owls/Role=NULL/Capability=NULL\n", b.Output(read, 0))

	server.stop()
	require.ErrorContains(t, renew(),
		"None of the contacted servers for owls were capable\nof returning a valid AC for the user.")
	require.Equal(t, renewed, kept())
}

// A program with the rights of deploy/components/voms-proxy keeps a Secret equal to a token that is renewed.
func TestASecretIsKeptEqualToAFile(t *testing.T) {
	t.Parallel()
	namespace := trial.Namespace(t)
	client, err := kubernetes.NewForConfig(trial.Config(t))
	require.NoError(t, err)
	running, err := lab.Find()
	require.NoError(t, err)
	vomsProxy(t, running, namespace)
	kubeconfig := kubeconfigOf(t, client, namespace, "voms-proxy")

	file := filepath.Join(t.TempDir(), "token")
	renew := func(end time.Time) string {
		encode := base64.RawURLEncoding.EncodeToString
		text := encode([]byte(`{"alg":"none"}`)) + "." + encode(fmt.Appendf(nil, `{"exp":%d}`, end.Unix())) + ".c2ln"
		require.NoError(t, os.WriteFile(file+".new", []byte(text), 0o600))
		require.NoError(t, os.Rename(file+".new", file))
		return text
	}
	token := func() string {
		secret, err := client.CoreV1().Secrets(namespace).Get(t.Context(), "voms-proxy", metav1.GetOptions{})
		require.NoError(t, err)
		return string(secret.Data["token"])
	}
	sync := func(ctx context.Context, more ...string) *exec.Cmd {
		return exec.CommandContext(ctx, running.Path("htcd", "bin", "htcd"),
			append([]string{"sync-secret", "--kubeconfig", kubeconfig, "--name", "voms-proxy", file}, more...)...)
	}

	// Once, as in the CronJob.
	first := renew(time.Now().Add(3 * time.Hour))
	words, err := sync(t.Context()).CombinedOutput()
	require.NoError(t, err, "%s", words)
	require.Equal(t, first, token())
	secret, err := client.CoreV1().Secrets(namespace).Get(t.Context(), "voms-proxy", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "true", secret.Labels["htc.cern.ch/jobs"])
	words, err = sync(t.Context()).CombinedOutput()
	require.NoError(t, err, "%s", words)
	unchanged, err := client.CoreV1().Secrets(namespace).Get(t.Context(), "voms-proxy", metav1.GetOptions{})
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
	require.NoError(t, client.RbacV1().Roles(namespace).Delete(t.Context(), "voms-proxy", metav1.DeleteOptions{}))
	words, err = refused.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(words), "forbidden")
	require.Equal(t, 1, refused.ProcessState.ExitCode())
	_, err = client.CoreV1().Secrets(namespace).Get(t.Context(), "another", metav1.GetOptions{})
	require.Error(t, err)
}
