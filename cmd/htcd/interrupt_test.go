package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestASecondInterruptEndsWhatWaitsForAFile(t *testing.T) {
	const pipe = "HTCD_TEST_PIPE"
	if file := os.Getenv(pipe); file != "" {
		os.Exit(run("htcd", []string{"convert", file}, nil))
	}
	file := filepath.Join(t.TempDir(), "x.sub")
	require.NoError(t, syscall.Mkfifo(file, 0o600))
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), pipe+"="+file)
	require.NoError(t, child.Start())
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	for range 600 {
		select {
		case <-ended:
			status := child.ProcessState.Sys().(syscall.WaitStatus)
			require.True(t, status.Signaled())
			require.Equal(t, syscall.SIGINT, status.Signal())
			return
		case <-time.After(100 * time.Millisecond):
		}
		_ = child.Process.Signal(os.Interrupt) // it may have ended
	}
	t.Fatal("it goes on")
}
