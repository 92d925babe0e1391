package lab

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Run runs one of the lab's commands (see Bin) in the lab's directory and returns its standard output. The error
// contains the command and its standard error.
func (l *Lab) Run(ctx context.Context, name string, args ...string) (string, error) {
	return l.RunInput(ctx, "", name, args...)
}

// RunInput is Run with text on the command's standard input.
func (l *Lab) RunInput(ctx context.Context, input, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, l.Bin(name), args...)
	cmd.Dir = l.Dir
	cmd.Stdin = strings.NewReader(input)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err,
			strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// RunAs runs any program of the Debian root as one of its accounts (root, htcd, robot, alice, admin) with that
// account's own Kerberos ticket, if it has one.
func (l *Lab) RunAs(ctx context.Context, account, name string, args ...string) (string, error) {
	return l.Run(ctx, "lab", append([]string{"as", account, name}, args...)...)
}
