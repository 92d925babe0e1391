package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/rs/zerolog"

	"htc.cern.ch/htcd/internal/ledger"
)

// Run is htcd run: it works until ctx ends. When this process must not continue, another htcd takes its place.
func Run(ctx context.Context, o Options, log zerolog.Logger) error {
	reap()
	d, err := newDaemon(o, log)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	err = d.run(ctx)
	if needsReexec(err) && ctx.Err() == nil {
		log.Error().Err(err).Msg("this process must not continue; restarting it")
		if errors.Is(err, errLeaseLost) {
			_ = os.Setenv(leaseLost, "true") // it fails for names that cannot be
		}
		err = errors.Join(err, reexec())
	}
	return err
}

// leaseLost is the environment variable that tells a process that its predecessor could not keep the Lease. Its name is
// not that of a setting, which would begin with HTCD_.
const leaseLost = "LEASE_OF_HTCD_LOST"

// reap collects the commands that were killed when this process replaced another; until then they are zombies. A
// process that was started otherwise has no children yet.
func reap() {
	for {
		if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
			return
		}
	}
}

// needsReexec reports whether this process must stop after such an error but a new htcd in its place can go on: the
// Lease was lost, the ledger file is damaged or gone, or the apiserver's state is an older one.
func needsReexec(err error) bool {
	return errors.Is(err, errLeaseLost) || errors.Is(err, errOlderState) ||
		errors.Is(err, ledger.ErrCorrupt) || errors.Is(err, ledger.ErrLost)
}

// reexec replaces this process with a new htcd with the same arguments (execve(2)), and returns only on failure.
//
// It is as safe as ending the process, which is what a former leader must do: the kernel ends every other thread before
// the new program begins, and with the threads, by their death signal, the condor_* tools they started (package tool);
// all files, locks and connections are closed. So no goroutine finishes what it was about to do, and nothing is
// remembered that another htcd may have made untrue. Stopping the goroutines one by one could not guarantee that: one
// that waits for a disk does not react.
//
// Unlike an exit it keeps the container: the kubelet would restart it later and later, up to five minutes, if the
// apiserver is away several times. And it keeps the process id, and with it the name in the Lease, so that if no other
// htcd has taken the Lease, this one continues as soon as the apiserver answers.
func reexec() error {
	program, err := os.Executable()
	if err == nil {
		err = syscall.Exec(
			program,
			os.Args,
			os.Environ(),
		) // #nosec G204 -- this same program, with the arguments it was given
	}
	return fmt.Errorf("re-exec: %w", err)
}
