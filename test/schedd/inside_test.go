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
	// tokensVariable names a directory of tokens: inside, the keys to sign them cannot be read.
	tokensVariable = "HTCD_TEST_TOKENS"
)

// sciTokens are claims of SciTokens for alice, by the name of their file. The unknown issuer refuses to be asked: while
// one does not answer, it blocks HTCondor's collector.
var sciTokens = map[string]map[string]any{
	"scitoken": nil,
	"wlcg": {
		"ver":      nil,
		"wlcg.ver": "1.0",
		"aud":      "https://wlcg.cern.ch/jwt/v1/any",
		"scope":    "compute.read compute.create compute.modify compute.cancel",
	},
	"audience": {
		"aud": "https://elsewhere.example.org",
	},
	"issuer": {"iss": "https://127.0.0.1:9/elsewhere"},
	"nobody": {"sub": "0b1c"},
	"reading": {
		"scope": "condor:/READ",
	},
	"scopeless": {"scope": "storage.read:/"},
	"long":      {"x": strings.Repeat("x", 11_000)},
}

// writeTokens writes an IDTOKEN of the pool for alice, and the SciTokens.
func writeTokens(l *lab.Lab, dir string) error {
	alice, err := parts.Token(
		context.Background(),
		l,
		parts.TokenAsk{Account: "alice", Life: time.Hour, Only: []string{"READ", "WRITE"}},
	)
	if err != nil {
		return err
	}
	tokens := map[string]string{"idtoken": alice}
	for name, claims := range sciTokens {
		if tokens[name], err = parts.SciToken(l, "alice", claims); err != nil {
			return err
		}
	}
	for name, text := range tokens {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

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
	if err := writeTokens(running, dir); err != nil {
		return 1, err
	}
	args := []string{
		"as",
		"htcd",
		"env",
		insideVariable + "=1",
		tokensVariable + "=" + dir,
		"LAB=" + running.Dir,
		"HTCD_LAB=" + running.Dir,
		binary,
	}
	for _, a := range os.Args[1:] {
		if !strings.HasPrefix(a, "-test.testlogfile") { // a file on the host
			args = append(args, a)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "asked"), 0o777); err != nil {
		return 1, err
	}
	if err := os.Chmod(filepath.Join(dir, "asked"), 0o777); err != nil {
		return 1, err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go answerRequests(ctx, running, dir)
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

// answerRequests does what tests inside cannot do, one request at a time: kill, start or restart the schedd, or run a
// shell script as root. What came of it is in a file that begins with "done" unless it failed.
func answerRequests(ctx context.Context, l *lab.Lab, dir string) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		request, err := os.ReadFile(filepath.Join(dir, "asked", "request"))
		if err != nil || os.Remove(filepath.Join(dir, "asked", "request")) != nil {
			continue
		}
		said, schedd := "", l.Part("schedd")
		switch what := string(request); what {
		case "kill":
			err = schedd.Kill(ctx)
		case "start":
			err = schedd.Start(ctx)
		case "restart":
			err = errors.Join(schedd.Kill(ctx), schedd.Start(ctx))
		default:
			said, err = l.RunAs(ctx, "root", "sh", "-c", what)
		}
		if said = "done" + said; err != nil {
			said = err.Error()
		}
		answer := filepath.Join(dir, "asked", "answer")
		if err := errors.Join(
			os.WriteFile(answer+".new", []byte(said), 0o644),
			os.Rename(answer+".new", answer),
		); err != nil {
			fmt.Fprintln(os.Stderr, "answer:", err)
		}
	}
}
