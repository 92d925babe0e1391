//go:build kueue

package multikueue

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// twoClusters returns the test's namespace in both labs: HTCJobs of the first one's are sent to the second.
func twoClusters(t *testing.T) (manager, worker *trial.Bench) {
	t.Helper()
	dir := os.Getenv("HTCD_LAB")
	t.Setenv("HTCD_LAB", os.Getenv("HTCD_LAB_MANAGER"))
	manager = trial.New(t)
	start(manager)
	t.Setenv("HTCD_LAB", dir)
	worker = trial.New(t)
	start(worker)
	client, err := v1alpha1.NewClient(trial.Config(t))
	require.NoError(t, err)
	worker.Namespace, worker.Jobs = manager.Namespace, client.HTCJobs(manager.Namespace)
	apply(worker, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+worker.Namespace+"}\n")
	t.Cleanup(func() {
		_, err := worker.Lab.Run(
			context.WithoutCancel(t.Context()),
			"kubectl",
			"delete",
			"namespace",
			worker.Namespace,
			"--wait=false",
		)
		require.NoError(t, err)
	})
	apply(worker, fmt.Sprintf(queue, "")+account)
	apply(manager, asJSON(t, map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "worker", "namespace": "kueue-system"},
		"stringData": map[string]any{"kubeconfig": asJSON(t, remote(worker))},
	}))
	apply(manager, fmt.Sprintf(queue, "admissionChecksStrategy: {admissionChecks: [{name: worker}]}")+check)
	for _, b := range []*trial.Bench{manager, worker} {
		b.ApplyText(
			"apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {name: team}\nspec: {clusterQueue: htcondor}\n",
		)
	}
	manager.Eventually(func() bool {
		out, err := manager.Lab.Run(t.Context(), "kubectl", "wait", "--for=condition=Active", "--timeout=1s",
			"multikueuecluster/worker", "admissioncheck/worker", "clusterqueue/htcondor")
		return err == nil && strings.Count(out, "condition met") == 3
	}, func() string {
		out, _ := manager.Lab.Run(
			t.Context(),
			"kubectl",
			"get",
			"multikueueclusters,admissionchecks,clusterqueues",
			"-o",
			"yaml",
		)
		return "the manager does not reach the worker:\n" + out
	})
	return manager, worker
}

const (
	queue = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: htcondor}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: htcondor}
spec:
  namespaceSelector: {}
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: htcondor, resources: [{name: cpu, nominalQuota: 2}]}]}]
  %s
---
`
	check = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: worker}
spec:
  controllerName: kueue.x-k8s.io/multikueue
  parameters: {apiGroup: kueue.x-k8s.io, kind: MultiKueueConfig, name: worker}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueConfig
metadata: {name: worker}
spec: {clusters: [worker]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueCluster
metadata: {name: worker}
spec: {clusterSource: {kubeConfig: {locationType: Secret, location: worker}}}
`
	// account is Kueue of the manager in the worker, with the rights that docs/kueue.md names; jobs are of Kueue's own
	// kinds.
	account = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: multikueue, namespace: kueue-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: multikueue}
rules:
- {apiGroups: [kueue.x-k8s.io], resources: [workloads], verbs: [create, delete, get, list, patch, update, watch]}
- {apiGroups: [kueue.x-k8s.io], resources: [workloads/status], verbs: [get, patch, update]}
- {apiGroups: [htc.cern.ch], resources: [htcjobs], verbs: [create, delete, get, list, watch]}
- {apiGroups: [batch], resources: [jobs], verbs: [create, delete, get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: multikueue}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: multikueue}
subjects: [{kind: ServiceAccount, name: multikueue, namespace: kueue-system}]
`
)

// apply repeats until it is taken: Kueue does not serve its webhooks from the beginning.
func apply(b *trial.Bench, manifest string) {
	b.T.Helper()
	var err error
	b.Eventually(func() bool {
		_, err = b.Lab.RunInput(
			b.T.Context(),
			manifest,
			"kubectl",
			"apply",
			"--server-side",
			"--force-conflicts",
			"-f",
			"-",
		)
		return err == nil
	}, func() string { return fmt.Sprintf("not applied: %v\n%s", err, manifest) })
}

// remote is a kubeconfig of Kueue's account in a cluster. Kueue takes none that does not verify the certificate.
func remote(b *trial.Bench) map[string]any {
	b.T.Helper()
	token, err := b.Lab.Run(
		b.T.Context(),
		"kubectl",
		"-n",
		"kueue-system",
		"create",
		"token",
		"multikueue",
		"--duration=2h",
	)
	require.NoError(b.T, err)
	authority, err := os.ReadFile(b.Lab.Path("kube", "certs", "apiserver.crt"))
	require.NoError(b.T, err)
	return map[string]any{
		"apiVersion":      "v1",
		"kind":            "Config",
		"current-context": "worker",
		"clusters": []any{map[string]any{"name": "worker", "cluster": map[string]any{
			"server":                     trial.Config(b.T).Host,
			"certificate-authority-data": base64.StdEncoding.EncodeToString(authority),
		}}},
		"users": []any{map[string]any{"name": "worker", "user": map[string]any{"token": strings.TrimSpace(token)}}},
		"contexts": []any{
			map[string]any{"name": "worker", "context": map[string]any{"cluster": "worker", "user": "worker"}},
		},
	}
}

func asJSON(t *testing.T, object map[string]any) string {
	t.Helper()
	text, err := json.Marshal(object)
	require.NoError(t, err)
	return string(text)
}

// start starts Kueue beside a lab, with its own manifests and webhooks, and gives htcd its rights and flag.
func start(b *trial.Bench) {
	b.T.Helper()
	ctx := b.T.Context()
	c, clone, err := b.Cache()
	require.NoError(b.T, err)
	kueue, err := c.Kueue(ctx, filepath.Join(clone, "test", "parts", "kueue", trial.PeerRelease()))
	require.NoError(b.T, err)
	port := freePort(b.T)
	dir := b.T.TempDir()
	require.NoError(
		b.T,
		os.WriteFile(
			filepath.Join(dir, "kustomization.yaml"),
			fmt.Appendf(nil, manifests, relative(b.T, dir, kueue)),
			0o600,
		),
	)
	text, err := b.Lab.Run(ctx, "kubectl", "kustomize", dir)
	require.NoError(b.T, err)
	text = regexp.MustCompile(`(?m)^( +)path: /(mutate|validate|convert)`).
		ReplaceAllString(text, fmt.Sprintf("${1}port: %d\n$0", port))
	apply(b, text)
	rights, err := os.ReadFile(filepath.Join(clone, "deploy", "components", "kueue", "clusterrole.yaml"))
	require.NoError(b.T, err)
	apply(b, strings.ReplaceAll(string(rights), "namespace: htcd", "namespace: default"))

	file, certificates := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "certificates")
	require.NoError(b.T, os.WriteFile(file, fmt.Appendf(nil, configuration, port, certificates), 0o600))
	cmd := exec.Command(filepath.Join(kueue, "bin", "kueue"), "--config="+file)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+b.Lab.Kubeconfig())
	log, err := os.Create(b.Lab.Log("kueue"))
	require.NoError(b.T, err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(b.T, cmd.Start())
	b.T.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // it may have failed, as its log says
	})
	// Kueue makes its certificate itself, and waits until it is in its file system.
	b.Eventually(
		func() bool { return mount(b, certificates) },
		func() string { return "Kueue makes no certificate: " + b.Lab.Log("kueue") },
	)
	require.NoError(b.T, b.Lab.Part("htcd").Restart(ctx, "--kueue"))
	b.T.Cleanup(func() { require.NoError(b.T, b.Lab.Part("htcd").Restart(context.WithoutCancel(ctx))) })
}

// mount writes the files of Kueue's Secret into a directory, as a kubelet would.
func mount(b *trial.Bench, dir string) bool {
	out, err := b.Lab.Run(
		b.T.Context(),
		"kubectl",
		"-n",
		"kueue-system",
		"get",
		"secret",
		"kueue-webhook-server-cert",
		"-o",
		"json",
	)
	if err != nil {
		return false
	}
	var secret struct{ Data map[string][]byte }
	require.NoError(b.T, json.Unmarshal([]byte(out), &secret))
	if len(secret.Data["tls.key"]) == 0 {
		return false
	}
	require.NoError(b.T, os.MkdirAll(dir, 0o700))
	for _, name := range []string{"ca.crt", "tls.key", "tls.crt"} { // the last is what Kueue waits for
		require.NoError(b.T, os.WriteFile(filepath.Join(dir, name), secret.Data[name], 0o600))
	}
	return true
}

// manifests are Kueue's own, without what would be a pod.
const manifests = `resources: [%q]
patches:
- {target: {kind: Deployment}, patch: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: all}, $patch: delete}"}
- {target: {kind: APIService}, patch: "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: all}, $patch: delete}"}
- target: {kind: Service, name: kueue-webhook-service}
  patch: |
    apiVersion: v1
    kind: Service
    metadata: {name: kueue-webhook-service}
    spec: {type: ExternalName, externalName: localhost, selector: null, ports: null}
`

const configuration = `apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
namespace: kueue-system
health: {healthProbeBindAddress: "0"}
metrics: {bindAddress: "0"}
webhook: {host: 127.0.0.1, port: %d, certDir: %q}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: true, webhookServiceName: kueue-webhook-service, webhookSecretName: kueue-webhook-server-cert}
featureGates: {VisibilityOnDemand: false}
integrations:
  frameworks: [batch/job]
  externalFrameworks: [HTCJob.v1alpha1.htc.cern.ch]
multiKueue:
  workerLostTimeout: 10s
  externalFrameworks: [{name: HTCJob.v1alpha1.htc.cern.ch}]
`

func relative(t *testing.T, from, kueue string) string {
	path, err := filepath.Rel(from, filepath.Join(kueue, "config", "default"))
	require.NoError(t, err)
	return path
}

func freePort(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
