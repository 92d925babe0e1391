package parts

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"htc.cern.ch/htcd/test/lab/root"
)

//go:embed apptainer.sh
var apptainerScript string

// Apptainer puts a wrapper before the real one that keeps the unpacked images of robot and alice.
func Apptainer() error {
	for _, name := range []string{"apptainer", "singularity"} {
		if err := os.WriteFile("/usr/local/bin/"+name, []byte(apptainerScript), 0o755); err != nil {
			return err
		}
	}
	for _, account := range []string{"robot", "alice"} {
		if _, err := directory(account, 0o755, root.UnpackedDir, account); err != nil {
			return err
		}
	}
	return nil
}

// Unpack runs every image of the registry once as robot, so that no job of htcd's usual account spends its time on it.
func Unpack(ctx context.Context, w World) error {
	images, err := os.ReadDir(root.ImagesDir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	robot, err := credential("robot")
	if err != nil {
		return err
	}
	for _, image := range images {
		url := fmt.Sprintf("docker://127.0.0.1:%d/%s", w.Ports.Registry, image.Name())
		cmd := exec.CommandContext(ctx, "apptainer", "--quiet", "exec", "--contain", url, "true")
		cmd.Env = []string{"PATH=" + root.Path, "HOME=/nonexistent", "APPTAINER_NOHTTPS=1"}
		cmd.Dir = "/tmp"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: robot}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("run image %s: %w: %s", image.Name(), err, out)
		}
	}
	return nil
}
