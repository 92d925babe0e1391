package parts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"htc.cern.ch/htcd/test/lab/root"
)

// NodeName is the only node's.
const NodeName = "lab"

// Kubelet makes the lab a node. Anybody in the lab's network, i.e. only the lab, may ask it anything.
func Kubelet(w World) (*Process, error) {
	dir := w.Lab.Path("node", "kubelet")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "config.yaml")
	text := fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %s
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
containerRuntimeEndpoint: unix://%s
cgroupDriver: cgroupfs
cgroupRoot: /%s
failCgroupV1: false
failSwapOn: false
podLogsDir: %s
resolvConf: ""
# The disk is the whole machine's; how full it is is nothing of ours.
evictionHard: {nodefs.available: "0%%", imagefs.available: "0%%", nodefs.inodesFree: "0%%", imagefs.inodesFree: "0%%", memory.available: "0%%"}
imageGCHighThresholdPercent: 100
`, w.Address, containerdSocket, w.Node.Cgroup, w.Lab.Path("log", "pods"))
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return nil, err
	}
	return &Process{
		Name: "kubelet", Log: w.Lab.Log("kubelet"), Port: 10250,
		Args: []string{root.KubernetesNodeDir + "/kubelet", "--config", config, "--kubeconfig", w.Lab.Kubeconfig(),
			// Its sockets' paths are limited to 107 bytes.
			"--root-dir=/run/kubelet", "--cert-dir=" + filepath.Join(dir, "certs"),
			"--hostname-override=" + NodeName, "--node-ip=" + w.Address, "--v=1"},
		Ready: func(ctx context.Context) error { return nodeReady(ctx, w) },
		Grace: 5 * time.Second,
	}, nil
}

func nodeReady(ctx context.Context, w World) error {
	out, err := kubectl(
		ctx,
		w,
		"",
		"get",
		"node",
		NodeName,
		"-o",
		`jsonpath={.status.conditions[?(@.type=="Ready")]['status','message']}`,
	)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(out, "True") {
		return fmt.Errorf("the node is not ready: %s", out)
	}
	return nil
}

// Scheduler assigns pods to their node.
func Scheduler(w World) *Process {
	return &Process{
		Name: "scheduler", Log: w.Lab.Log("scheduler"), Port: 10259,
		Args: []string{
			root.KubernetesNodeDir + "/kube-scheduler",
			"--kubeconfig=" + w.Lab.Kubeconfig(),
			"--bind-address=127.0.0.1",
			"--cert-dir=" + w.Lab.Path("kube", "certs"),
			"--leader-elect=false",
			"--v=1",
		},
		Ready: httpReady("https://127.0.0.1:10259/healthz", ""),
		Grace: 3 * time.Second,
	}
}

// Proxy routes the addresses of Services to their pods. The machine's limits on connections are left unchanged.
func Proxy(w World) *Process {
	return &Process{
		Name: "proxy",
		Log:  w.Lab.Log("proxy"),
		Port: 10256,
		Args: []string{
			root.KubernetesNodeDir + "/kube-proxy",
			"--kubeconfig=" + w.Lab.Kubeconfig(),
			"--proxy-mode=iptables",
			"--hostname-override=" + NodeName,
			"--cluster-cidr=" + root.PodNetwork,
			"--bind-address=" + w.Address,
			"--healthz-bind-address=127.0.0.1:10256",
			"--metrics-bind-address=127.0.0.1:10249",
			"--conntrack-max-per-core=0",
			"--conntrack-tcp-timeout-established=0",
			"--conntrack-tcp-timeout-close-wait=0",
			"--v=1",
		},
		Ready: httpReady("http://127.0.0.1:10256/livez", ""),
		Grace: 3 * time.Second,
	}
}
