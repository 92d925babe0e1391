// Package programtest writes programs for tests to start.
package programtest

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Write writes a program, such as a script with its first line. A program that any process has open for writing cannot
// be started (ETXTBSY, execve(2)), and a process that another goroutine starts meanwhile would have it open: so none is
// started meanwhile.
func Write(t *testing.T, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o755)) // #nosec G306 -- a program
}
