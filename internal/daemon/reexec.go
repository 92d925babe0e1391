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
	if os.Getenv(leaseLost) != "" {
		reap()
	}
	d, err := newDaemon(o, log)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	err = d.run(ctx)
	if needsReexec(err) && ctx.Err() == nil {
		log.Error().Err(err).Msg("this process must not continue; restarting it")
		err = errors.Join(err, reexec(errors.Is(err, errLeaseLost)))
	}
	return err
}

// leaseLost is the variable of the environment that tells a process that the one in its place could not keep the Lease.
const leaseLost = "LEASE_OF_HTCD_LOST"

// reap collects the commands that were killed with the process before this one; until then they are zombies.
func reap() {
	for {
		if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
			return
		}
	}
}

// needsReexec reports whether this process must stop after such an error but a new htcd in its place can go on: the
// Lease was lost, or the ledger file is damaged or gone.
func needsReexec(err error) bool {
	return errors.Is(err, errLeaseLost) || errors.Is(err, ledger.ErrCorrupt) || errors.Is(err, ledger.ErrLost)
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
func reexec(lost bool) error {
	environment := os.Environ()
	if lost {
		environment = append(environment, leaseLost+"=true")
	}
	program, err := os.Executable()
	if err == nil {
		err = syscall.Exec(
			program,
			os.Args,
			environment,
		) // #nosec G204 -- this same program, with the arguments it was given
	}
	return fmt.Errorf("re-exec: %w", err)
}
