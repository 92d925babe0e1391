package parts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"htc.cern.ch/htcd/test/lab/root"
)

// containerdSocket is where containerd listens.
const containerdSocket = "/run/containerd/containerd.sock"

// Containerd runs the pods' containers, and connects them to the bridge.
func Containerd(w World) (*Process, error) {
	dir := w.Lab.Path("node", "containerd")
	network := filepath.Join(dir, "network")
	if err := os.MkdirAll(network, 0o755); err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "config.toml")
	for file, text := range map[string]string{
		config: fmt.Sprintf(containerdConfig, filepath.Join(dir, "root"), containerdSocket, pauseImage, network),
		filepath.Join(network, "lab.conflist"): fmt.Sprintf(`{"cniVersion": "1.0.0", "name": "lab", "plugins": [{
  "type": "bridge", "bridge": %q, "isGateway": true, "hairpinMode": true,
  "ipam": {"type": "host-local", "dataDir": "/run/cni", "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}
}]}`, root.Bridge, root.PodNetwork),
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	return &Process{
		Name: "containerd", Log: w.Lab.Log("containerd"),
		Args: []string{root.ContainerdDir + "/containerd", "--config", config},
		Ready: func(ctx context.Context) error {
			_, err := ctr(ctx, "version")
			return err
		},
	}, nil
}

func ctr(ctx context.Context, args ...string) (string, error) {
	return command(
		ctx,
		nil,
		"",
		append(
			[]string{root.ContainerdDir + "/ctr", "--address", containerdSocket, "--namespace", "k8s.io"},
			args...)...)
}

// Adjusting a container's score below that of the whole machine's other processes takes a right that a lab may not
// have.
const containerdConfig = `version = 3
root = %q
state = "/run/containerd"
[grpc]
  address = %q
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = %q
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["/usr/lib/cni"]
  conf_dir = %q
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  BinaryName = "/usr/sbin/runc"
`
