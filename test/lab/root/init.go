package root

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"

	"htc.cern.ch/htcd/test/lab/ports"
)

// Init runs the first process: it reserves ports, makes the root, runs the supervisor, collects orphans, and ends with
// the supervisor; the kernel then ends everything still running. The supervisor gets the ports as its last argument and
// the owner's socket as its file descriptor 3.
func Init(planText string, supervisor ...string) error {
	var plan Plan
	if err := json.Unmarshal([]byte(planText), &plan); err != nil {
		return err
	}
	if plan.Node != nil {
		if err := loopback(); err != nil {
			return err
		}
	}
	block, err := ports.Take(plan.Ports)
	if err != nil {
		return err
	}
	numbers, err := json.Marshal(block.Ports())
	if err != nil {
		return err
	}
	if err := enterNew(plan); err != nil {
		return err
	}

	if plan.Node != nil {
		if err := network(); err != nil {
			return err
		}
	}

	owner := os.NewFile(3, "owner")
	cmd := exec.Command(supervisor[0], append(supervisor[1:], planText, string(numbers))...)
	cmd.Env = []string{"PATH=" + Path, "LANG=C.UTF-8", "HOME=/root"}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{owner}
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := owner.Close(); err != nil {
		return err
	}
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait: %w", err)
		}
		if pid == cmd.Process.Pid {
			return nil
		}
	}
}

// Path is where programs are found inside.
const Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:" + KubernetesDir + ":" +
	KubernetesNodeDir + ":" + ContainerdDir
