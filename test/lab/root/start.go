package root

import (
	"encoding/json"
	"os"
	"os/exec"
	"syscall"
)

// Plan is what the root is made of. All paths are absolute.
type Plan struct {
	// Top is a directory to build the new root on.
	Top string
	// Debian is the cached root, mounted read-only.
	Debian string
	// Kubernetes is the directory of its programs, seen as KubernetesDir.
	Kubernetes string
	// Images are the layer files by image name, seen below ImagesDir.
	Images map[string]string
	// Unpacked is a directory of the machine where apptainer keeps unpacked images, by content. It is seen as
	// UnpackedDir, and each account has its own in it.
	Unpacked string
	// Writable lists directories seen where they are on the host.
	Writable []string
	// Ports is a directory of reservations; see package ports.
	Ports string
	// Hosts is a file that is seen as /etc/hosts.
	Hosts string
	// Node makes it a lab with a node, in its own network; nil for a lab in the host's network.
	Node *Node
	// WithoutHTCd leaves out htcd and what is installed for it.
	WithoutHTCd bool
	// HTCdArgs are flags added to htcd's own.
	HTCdArgs []string
}

// Node is what a lab with a node has in addition.
type Node struct {
	// Kubernetes and Containerd are directories of programs, seen as KubernetesNodeDir and ContainerdDir.
	Kubernetes, Containerd string
	// Helm is the directory of helm, which runs on the host.
	Helm string
	// Cgroup is the name of the cgroup that all pods are in.
	Cgroup string
}

// NodeAddress is where the parts of a lab with a node are reached from its pods.
const NodeAddress = "10.88.0.1"

// Where parts of a Plan appear inside.
const (
	KubernetesDir = "/opt/kubernetes"
	ImagesDir     = "/opt/layers"
	UnpackedDir   = "/var/cache/apptainer"

	KubernetesNodeDir = "/opt/kubernetes-node"
	ContainerdDir     = "/opt/containerd"
)

// Start begins a lab: program, called with args and the plan, is its first process, detached from this session. owner
// becomes its file descriptor 3.
func Start(plan Plan, owner, log *os.File, program string, args ...string) (pid int, err error) {
	text, err := json.Marshal(plan)
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(program, append(args, string(text))...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{owner}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
	}
	if plan.Node != nil {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWNET
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	// Collected if this process outlives it, so that no zombie is mistaken for a running lab.
	go func() { _ = cmd.Wait() }()
	return cmd.Process.Pid, nil
}
