package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"htc.cern.ch/htcd/internal/ledger"
)

// needsReexec tells errors after which this process must not go on, but a new htcd in its place can: the Lease was
// lost, or the ledger file turned out to be damaged or gone.
func needsReexec(err error) bool {
	return errors.Is(err, errLeaseLost) || errors.Is(err, ledger.ErrCorrupt) || errors.Is(err, ledger.ErrLost)
}

// reexec puts a new htcd with the same arguments in the place of this one (execve(2)), and returns only when that cannot
// be done.
//
// It is as safe as ending the process, which is what a former leader must do: the kernel ends every other thread
// before the new program begins, and with the threads, by their death signal, the condor_* tools that they started
// (package tool); all files, locks and connections are closed. So whatever a goroutine was about to do, it does not
// do it; and nothing is remembered that another htcd may have made untrue. Stopping the goroutines one by one could not
// promise that: one that waits for a disk does not listen.
//
// Unlike ending it keeps the container: the kubelet would restart it later and later, up to five minutes, when the
// apiserver is away several times. And it keeps the process id, and with it the name in the Lease, so that where no
// other htcd has taken the Lease this one goes on as soon as the apiserver answers.
func reexec() error {
	program, err := os.Executable()
	if err == nil {
		err = syscall.Exec(program, os.Args, os.Environ()) // #nosec G204 -- this same program, with the arguments it was given
	}
	return fmt.Errorf("re-exec: %w", err)
}
