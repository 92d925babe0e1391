package parts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab/root"
)

// HTCd is htcd itself, as an ordinary user with exactly the Kubernetes rights that deploy/base/rbac grants.
func HTCd(w World) (*Process, error) {
	if _, err := directory("htcd", 0o700, w.Lab.Path("htcd", "data")); err != nil {
		return nil, err
	}
	return &Process{
		Name: "htcd", Log: w.Lab.Log("htcd"), Port: w.Ports.Receiver,
		Args: []string{w.Lab.Path("htcd", "bin", "htcd"), "run"}, Account: "htcd",
		// The name that a container restarted in its pod has: a Process never starts one before the last is dead.
		Env:   append(HTCdEnv(w), "HTCD_IDENTITY=lab"),
		Ready: httpReady(fmt.Sprintf("http://127.0.0.1:%d/readyz", w.Ports.Health), ""),
		Grace: 40 * time.Second,
	}, nil
}

// HTCdEnv is htcd's configuration, which its subcommands share.
func HTCdEnv(w World) []string {
	return []string{
		"HTCD_KUBECONFIG=" + w.Lab.Path("kube", "htcd.kubeconfig"),
		"HTCD_DATA=" + w.Lab.Path("htcd", "data"),
		"HTCD_TICKET_DIR=/dev/shm/htcd",
		fmt.Sprintf("HTCD_LISTEN=127.0.0.1:%d", w.Ports.Receiver),
		fmt.Sprintf("HTCD_HEALTH_LISTEN=127.0.0.1:%d", w.Ports.Health),
		fmt.Sprintf("HTCD_OUTPUT_LISTEN=127.0.0.1:%d", w.Ports.Output),
		fmt.Sprintf("HTCD_CALLBACK_URL=https://127.0.0.1:%d/cloudevents", w.Ports.ReceiverNet),
		"HTCD_CALLBACK_CA=" + ReceiverCA(w),
		"HTCD_TLS_CERT=" + receiverFile(w, "receiver.crt"),
		"HTCD_TLS_KEY=" + receiverFile(w, "receiver.key"),
		fmt.Sprintf("HTCD_IMAGE_REGISTRY=127.0.0.1:%d", w.Ports.Registry),
		fmt.Sprintf("HTCD_ALLOW_REGISTRIES=http://127.0.0.1:%[1]d,http://localhost:%[1]d", w.Ports.Registry),
		fmt.Sprintf("HTCD_EPHEMERAL_REGISTRIES=http://localhost:%d", w.Ports.Registry),
		"HTCD_ALLOW_URL_SCHEMES=https,root,davs",
		"HTCD_ALLOW_WRITABLE_ROOT=true",
		"HTCD_CONDOR_CONFIG=" + w.Lab.Path("condor", "client.conf"),
		"HTCD_KRB5_CONFIG=" + w.Lab.Path("krb", "krb5.conf"),
		"HTCD_KINIT_SECRET_NAMESPACE=default",
		"HTCD_POD_NAMESPACE=default",
		"HTCD_LEADER_ELECT=true",
		"HTCD_TRUST_CREATOR=true",
		"HTCD_LOGS_POD_IMAGE=" + htcdImage, // nothing runs it here
		"HTCD_LOG_LEVEL=debug",
	}
}

// Install puts into Kubernetes what htcd needs there: the CRD and RBAC rules of deploy/base, the Secret with robot's
// password, and a kubeconfig of the service account.
func Install(ctx context.Context, w World) error {
	kubectl := func(input string, args ...string) (string, error) {
		args = append([]string{root.KubernetesDir + "/kubectl", "--kubeconfig", w.Lab.Kubeconfig()}, args...)
		return command(ctx, nil, input, args...)
	}
	if _, err := kubectl("", "apply", "-k", Kustomization(w.Clone)); err != nil {
		return err
	}
	port := fmt.Sprintf(`{"spec":{"service":{"port":%d}}}`, w.Ports.Output)
	if _, err := kubectl(
		"",
		"patch",
		"apiservice",
		"v1alpha1.output.htc.cern.ch",
		"--type=merge",
		"-p",
		port,
	); err != nil {
		return err
	}
	secret, err := json.Marshal(map[string]any{
		"apiVersion": "v1",
		"kind":       "Secret",
		"metadata":   map[string]string{"name": "kinit-secret", "namespace": "default"},
		"stringData": map[string]string{"username": "robot", "password": Passwords["robot"]},
	})
	if err != nil {
		return err
	}
	if _, err := kubectl(string(secret), "apply", "-f", "-"); err != nil {
		return err
	}
	token, err := kubectl("", "create", "token", "htcd", "--namespace", "default", "--duration", "8760h")
	if err != nil {
		return err
	}
	file := w.Lab.Path("kube", "htcd.kubeconfig")
	if err := os.WriteFile(file, kubeconfig(w, strings.TrimSpace(token)), 0o600); err != nil {
		return err
	}
	uid, gid, err := Account("htcd")
	if err != nil {
		return err
	}
	if err := os.Chown(file, int(uid), int(gid)); err != nil {
		return err
	}
	// The policies are in effect some time after they were applied, and HTCJobs may be refused for some time after
	// that.
	for {
		job, err := dryRun(ctx, w)
		if err == nil && strings.Contains(job, v1alpha1.CreatorAnnotation) {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Kustomization is the directory that places deploy/base into the lab's namespace.
func Kustomization(clone string) string { return filepath.Join(clone, "test", "lab", "kustomize") }
