package parts

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"htc.cern.ch/htcd/test/lab/root"
)

// APIServer is the kube-apiserver, with RBAC, and with the administrator known by a token.
func APIServer(w World) (*Process, error) {
	dir := w.Lab.Path("kube")
	if err := os.MkdirAll(filepath.Join(dir, "certs"), 0o755); err != nil {
		return nil, err
	}
	key := filepath.Join(dir, "service-account.key")
	if err := writeRSAKey(key); err != nil {
		return nil, err
	}
	token := make([]byte, 16)
	if _, err := rand.Read(token); err != nil {
		return nil, err
	}
	admin := hex.EncodeToString(token)
	tokens := filepath.Join(dir, "tokens.csv")
	if err := os.WriteFile(tokens, []byte(admin+",admin,admin,system:masters\n"), 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(w.Lab.Kubeconfig(), kubeconfig(w, admin), 0o600); err != nil {
		return nil, err
	}
	proxy, err := frontProxy(dir)
	if err != nil {
		return nil, err
	}
	audit := filepath.Join(dir, "audit.yaml")
	if err := os.WriteFile(audit, []byte(auditPolicy), 0o644); err != nil {
		return nil, err
	}
	healthy := httpReady(server(w)+"/readyz", admin)
	return &Process{
		Name: "apiserver", Log: w.Lab.Log("apiserver"), Port: w.Ports.APIServer,
		Args: append([]string{
			root.KubernetesDir + "/kube-apiserver",
			fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", w.Ports.EtcdClient),
			fmt.Sprintf("--secure-port=%d", w.Ports.APIServer),
			"--cert-dir=" + filepath.Join(dir, "certs"),
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + key,
			"--service-account-signing-key-file=" + key,
			"--service-cluster-ip-range=10.96.0.0/16",
			"--authorization-mode=RBAC",
			"--token-auth-file=" + tokens,
			"--audit-policy-file=" + audit,
			"--audit-log-path=" + w.Lab.Log("audit"),
			"--audit-log-maxsize=100",
			"--audit-log-maxbackup=1",
			"--shutdown-delay-duration=0",
			"--v=1",
		}, append(proxy, reached(w)...)...),
		Ready: func(ctx context.Context) error {
			if err := healthy(ctx); err != nil {
				return err
			}
			return takesHTCJobs(ctx, w)
		},
		// Asked to stop, it waits up to a minute for open watches.
		Grace: time.Second,
	}, nil
}

// takesHTCJobs returns the apiserver's error if it has HTCJobs but does not know their schema yet: until then, for up
// to 5 s, a MutatingAdmissionPolicy has it refuse them.
func takesHTCJobs(ctx context.Context, w World) error {
	if _, err := dryRun(ctx, w); err != nil && strings.Contains(err.Error(), "There can be a delay") {
		return err
	}
	return nil
}

// dryRun returns an HTCJob as the apiserver would create it.
func dryRun(ctx context.Context, w World) (string, error) {
	const job = `{"apiVersion": "htc.cern.ch/v1alpha1", "kind": "HTCJob", "metadata": {"name": "ready"}, "spec": {"script": {"image": "centos", "command": "sh", "source": "true"}}}`
	return kubectl(
		ctx,
		w,
		job,
		"create",
		"--raw",
		"/apis/htc.cern.ch/v1alpha1/namespaces/default/htcjobs?dryRun=All",
		"-f",
		"-",
	)
}

// reached returns where the apiserver can be reached: on loopback, which no pod can use, or also from the pods.
func reached(w World) []string {
	if w.Node == nil {
		return []string{"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none"}
	}
	return []string{
		"--bind-address=0.0.0.0",
		"--advertise-address=" + w.Address,
		"--kubelet-preferred-address-types=InternalIP",
	}
}

// auditPolicy records the requests of htcd's account, and who runs what in jobs, without their contents.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: ["` + HTCdUser + `"]
- level: Metadata
  resources: [{group: output.htc.cern.ch, resources: [htcjobs/exec, htcworkflows/exec]}]
- level: None
`

// HTCdUser is htcd's user at the apiserver: the service account of deploy/base/rbac.
const HTCdUser = "system:serviceaccount:default:htcd"

// ControllerManager collects garbage, deletes namespaces' content and makes their default service accounts. Only a lab
// with a node needs the rest of what Kubernetes has of controllers.
func ControllerManager(w World) *Process {
	// By this pods recognise the apiserver: it has written both its certificate and the issuer's to this file.
	common := []string{
		"--kubeconfig=" + w.Lab.Kubeconfig(),
		"--root-ca-file=" + w.Lab.Path("kube", "certs", "apiserver.crt"),
	}
	p := &Process{
		Name:  "controller-manager",
		Log:   w.Lab.Log("controller-manager"),
		Port:  w.Ports.ControllerManager,
		Grace: 3 * time.Second,
		Args: append(
			[]string{
				root.KubernetesDir + "/kube-controllers",
				fmt.Sprintf("--listen=127.0.0.1:%d", w.Ports.ControllerManager),
			},
			common...),
		Ready: httpReady(fmt.Sprintf("http://127.0.0.1:%d/healthz", w.Ports.ControllerManager), ""),
	}
	if w.Node != nil {
		p.Args = append([]string{root.KubernetesNodeDir + "/kube-controller-manager",
			"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", w.Ports.ControllerManager),
			"--cert-dir=" + w.Lab.Path("kube", "certs"),
			"--service-account-private-key-file=" + w.Lab.Path("kube", "service-account.key"),
			"--use-service-account-credentials", "--leader-elect=false", "--v=1"}, common...)
		p.Ready = httpReady(fmt.Sprintf("https://127.0.0.1:%d/healthz", w.Ports.ControllerManager), "")
	}
	return p
}

func server(w World) string { return fmt.Sprintf("https://127.0.0.1:%d", w.Ports.APIServer) }

// kubeconfig trusts whatever certificate the apiserver makes itself, since all of this is on loopback.
func kubeconfig(w World, token string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: lab
clusters:
- name: lab
  cluster: {server: "%s", insecure-skip-tls-verify: true}
users:
- name: lab
  user: {token: "%s"}
contexts:
- name: lab
  context: {cluster: lab, user: lab, namespace: default}
`, server(w), token)
}

func writeRSAKey(file string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return os.WriteFile(file, pem.EncodeToMemory(block), 0o600)
}
