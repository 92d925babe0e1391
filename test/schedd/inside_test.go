// Package schedd_test tests internal/schedd and its ticket keeper with the real HTCondor, Kerberos and apptainer of a
// running lab. The tools are inside the lab's Debian root, so the test binary runs itself there as htcd's account.
package schedd_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/lab/parts"
)

const (
	insideVariable = "HTCD_TEST_INSIDE"
	// tokenVariable names a file with a token for alice: inside, the pool's key cannot be read.
	tokenVariable = "HTCD_TEST_TOKEN"
)

func TestMain(m *testing.M) {
	if os.Getenv(insideVariable) != "" {
		os.Exit(m.Run())
	}
	code, err := inside()
	if err != nil {
		fmt.Fprintln(os.Stderr, "run the tests inside the lab:", err)
		code = 1
	}
	os.Exit(code)
}

// inside runs this binary inside the lab and returns its exit code.
func inside() (int, error) {
	running, err := lab.Find()
	if err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp(running.Dir, "schedd-test-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return 1, err
	}
	binary := filepath.Join(dir, "schedd.test")
	if err := copyFile(binary, "/proc/self/exe"); err != nil {
		return 1, err
	}
	alice, err := parts.Token(context.Background(), running, parts.TokenAsk{Account: "alice", Life: time.Hour, Only: []string{"READ", "WRITE"}})
	if err != nil {
		return 1, err
	}
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte(alice), 0o644); err != nil {
		return 1, err
	}
	args := []string{"as", "htcd", "env", insideVariable + "=1", tokenVariable + "=" + token, "LAB=" + running.Dir, "HTCD_LAB=" + running.Dir, binary}
	for _, a := range os.Args[1:] {
		if !strings.HasPrefix(a, "-test.testlogfile") { // a file on the host
			args = append(args, a)
		}
	}
	cmd := exec.Command(running.Bin("lab"), args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
