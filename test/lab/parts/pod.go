package parts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"htc.cern.ch/htcd/test/lab/root"
)

// PodNamespace is where deploy/base puts htcd.
const PodNamespace = "htcd"

// InstallPod installs htcd as README.md says: a Secret, and deploy/base with an overlay that holds what is the site's.
func InstallPod(ctx context.Context, w World) error {
	overlay, err := writeOverlay(w)
	if err != nil {
		return err
	}
	if _, err := kubectl(ctx, w, "", "create", "namespace", PodNamespace); err != nil {
		return err
	}
	password := w.Lab.Path("node", "password")
	if err := os.WriteFile(password, []byte(Passwords["robot"]), 0o600); err != nil {
		return err
	}
	if _, err := kubectl(ctx, w, "", "-n", PodNamespace, "create", "secret", "generic", "kinit-secret",
		"--from-literal=username=robot", "--from-file=password="+password); err != nil {
		return err
	}
	if _, err := kubectl(ctx, w, "", "apply", "-k", overlay); err != nil {
		return err
	}
	return ConfigureIngress(ctx, w)
}

// PodReady waits until htcd works.
func PodReady(ctx context.Context, w World) error {
	if _, err := kubectl(
		ctx,
		w,
		"",
		"-n",
		PodNamespace,
		"rollout",
		"status",
		"deployment/htcd",
		"--timeout=90s",
	); err != nil {
		told, _ := kubectl(ctx, w, "", "-n", PodNamespace, "describe", "pods")
		logs, _ := kubectl(ctx, w, "", "-n", PodNamespace, "logs", "deployment/htcd", "--tail=15")
		return fmt.Errorf("%w\n%s\n%s", err, told, logs)
	}
	return nil
}

// writeOverlay writes what differs from deploy/base: the image's name, the schedd, its realm, and a volume.
func writeOverlay(w World) (dir string, err error) {
	dir = w.Lab.Path("node", "overlay")
	// As in a lab without a node.
	data := w.Lab.Path("htcd", "data")
	for _, d := range []string{dir, data} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return "", err
		}
	}
	deploy, err := filepath.Rel(dir, filepath.Join(w.Clone, "deploy"))
	if err != nil {
		return "", err
	}
	krb5, err := os.ReadFile(w.Lab.Path("krb", "krb5.conf"))
	if err != nil {
		return "", err
	}
	image, tag, _ := strings.Cut(htcdImage, ":")
	files := map[string]string{
		"kustomization.yaml": fmt.Sprintf(`apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: %s
resources: [%q, volume.yaml]
components: [%q, %q]
images:
- {name: htcd, newName: %s, newTag: %s}
configMapGenerator:
- {name: htcd-config, behavior: merge, files: [condor_config, krb5.conf]}
- {name: htcd-settings, behavior: merge, envs: [settings.env]}
patches:
# There is no DNS here; with this the pod, too, finds the way that jobs take to it.
- target: {kind: Deployment, name: htcd}
  patch: |
    - {op: add, path: /spec/template/spec/hostAliases, value: [{ip: %s, hostnames: [htcd.example.org]}]}
# The ingress hears once where the Service is.
- target: {kind: Service, name: htcd}
  patch: |
    - {op: add, path: /spec/clusterIP, value: 10.96.80.80}
`, PodNamespace, deploy+"/base", deploy+"/components/logs-pod", deploy+"/components/output", image, tag, w.Address),
		"volume.yaml": fmt.Sprintf(`apiVersion: v1
kind: PersistentVolume
metadata: {name: htcd}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  claimRef: {namespace: %s, name: htcd}
  local: {path: %q}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%s]}]}]}}
`, PodNamespace, data, NodeName),
		"settings.env": fmt.Sprintf(
			"HTCD_SCHEDD=%s\nHTCD_COLLECTOR=%s:%d\nHTCD_IMAGE_REGISTRY=127.0.0.1:%d\nHTCD_LOG_LEVEL=debug\nHTCD_LOGS_POD_IMAGE=%s\n",
			w.Host(),
			w.Address,
			w.Ports.Condor,
			w.Ports.Registry,
			htcdImage,
		),
		"krb5.conf": string(krb5),
		"condor_config": `LOCAL_CONFIG_FILE =
LOCAL_CONFIG_DIR =
RELEASE_DIR = /usr
LOCAL_DIR = /tmp
SEC_CLIENT_AUTHENTICATION = REQUIRED
SEC_CLIENT_AUTHENTICATION_METHODS = KERBEROS
SEC_CLIENT_INTEGRITY = REQUIRED
SEC_CLIENT_ENCRYPTION = REQUIRED
` + SiteOf(w),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// SiteOf returns the lines in which the lab's condor_config differs from another site's, and what replaces the DNS.
func SiteOf(w World) string {
	return fmt.Sprintf(`
COLLECTOR_HOST = %[2]s:%[3]d
UID_DOMAIN = %[1]s
NO_DNS = True
DEFAULT_DOMAIN_NAME = %[1]s
ENABLE_IPV6 = False
`, Domain, w.Address, w.Ports.Condor)
}

// kubectl runs it as the administrator.
func kubectl(ctx context.Context, w World, input string, args ...string) (string, error) {
	return command(
		ctx,
		nil,
		input,
		append([]string{root.KubernetesDir + "/kubectl", "--kubeconfig", w.Lab.Kubeconfig()}, args...)...)
}
