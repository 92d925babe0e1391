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
		fmt.Appendf(nil, "namespace: %s\ncomponents: [%s]\n", namespace, component), 0o600))
	out, err := running.Run(t.Context(), "kubectl", "apply", "-k", dir)
	require.NoError(t, err, out)
	out, err = running.Run(t.Context(), "kubectl", "get", "-n", namespace, "cronjob", "voms-proxy", "-o", "json")
	require.NoError(t, err)
	var job batchv1.CronJob
	require.NoError(t, json.Unmarshal([]byte(out), &job))
	return job
}

// authority makes a certificate of a robot and its authority's, with modes as in a Pod whose fsGroup is the robot's.
const authority = `set -e; cd $1; mkdir certificate key proxy ca
openssl req -x509 -newkey rsa:2048 -nodes -subj /O=Lab/CN=CA -keyout ca.key -out ca.pem
openssl req -newkey rsa:2048 -nodes -subj /O=Lab/CN=robot -keyout certificate/userkey.pem -out csr
openssl x509 -req -in csr -CA ca.pem -CAkey ca.key -CAcreateserial -out certificate/usercert.pem
cp ca.pem ca/$(openssl x509 -in ca.pem -noout -hash).0
chown root:robot certificate/*; chmod 440 certificate/*; chown robot key proxy`

// The commands of deploy/components/voms-proxy make a proxy and renew it. The lab has no VOMS server: voms-proxy-fake
// stands for voms-proxy-init where it would ask one.
func TestTheComponentKeepsAProxyInASecret(t *testing.T) {
	t.Parallel()
	namespace := trial.Namespace(t)
	client, err := kubernetes.NewForConfig(trial.Config(t))
	require.NoError(t, err)
	running, err := lab.Find()
	require.NoError(t, err)
	job := vomsProxy(t, running, namespace)
	pod := job.Spec.JobTemplate.Spec.Template.Spec
	kubeconfig := kubeconfigOf(t, client, namespace, pod.ServiceAccountName)
	dir := running.Path("voms-" + namespace)
	require.NoError(t, os.Mkdir(dir, 0o755))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	_, err = running.RunAs(t.Context(), "root", "sh", "-c", authority, "sh", dir)
	require.NoError(t, err)

	renew := func(from, to string) (secret string) {
		require.Contains(t, pod.InitContainers[0].Args[0], from)
		script := strings.ReplaceAll(pod.InitContainers[0].Args[0], from, to)
		for _, mount := range pod.InitContainers[0].VolumeMounts {
			script = strings.ReplaceAll(script, mount.MountPath+"/", dir+mount.MountPath+"/")
		}
		_, err := running.RunAs(
			t.Context(),
			"robot",
			"env",
			"X509_CERT_DIR="+dir+"/ca",
			"VOMS=owls",
			"sh",
			"-ec",
			script,
		)
		require.NoError(t, err)
		command := append([]string{"--kubeconfig", kubeconfig}, pod.Containers[0].Command[2:]...)
		command[len(command)-1] = dir + command[len(command)-1]
		words, err := exec.CommandContext(t.Context(), running.Path("htcd", "bin", "htcd"),
			append([]string{"sync-secret"}, command...)...).CombinedOutput()
		require.NoError(t, err, "%s", words)
		kept, err := client.CoreV1().Secrets(namespace).Get(t.Context(), "voms-proxy", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, "true", kept.Labels["htc.cern.ch/jobs"])
		made, err := os.ReadFile(filepath.Join(dir, "proxy", "x509up"))
		require.NoError(t, err)
		require.Equal(t, string(made), string(kept.Data["x509up"]))
		return string(made)
	}
	first := renew(`--voms "$VOMS" `, "")
	renewed := renew(`voms-proxy-init --voms "$VOMS" --valid 24:00`, `voms-proxy-fake -voms "$VOMS" -fqan /owls `+
		`-uri voms.lab:15000 -hours 48 -hostcert /certificate/usercert.pem -hostkey /key/userkey.pem`)
	require.NotEqual(t, first, renewed)
	info, err := running.RunAs(t.Context(), "robot", "env", "X509_CERT_DIR="+dir+"/ca",
		"voms-proxy-info", "--dont-verify-ac", "--vo", "--file", dir+"/proxy/x509up")
	require.NoError(t, err)
	require.Equal(t, "owls\n", info)
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
