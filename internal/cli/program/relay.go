package program

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"htc.cern.ch/htcd/internal/schedd"
)

// RelayWord is the command by which condor_ssh_to_job starts htcd in the place of ssh.
const RelayWord = "ssh-relay"

// relayCommand says on its standard output with which key to log in, and runs the ProxyCommand: htcd itself speaks ssh
// over its streams. Like ssh it ends with the connection, even if the proxy goes on waiting for what else it could
// send; and, whatever the connection does, with condor_ssh_to_job, which ends with htcd.
func relayCommand() *cobra.Command {
	return &cobra.Command{
		Use: RelayWord, Hidden: true, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			var relay schedd.Relay
			var proxy []string
			for _, arg := range args {
				option, is := strings.CutPrefix(arg, "-o")
				if !is {
					continue
				}
				name, value, _ := strings.Cut(option, "=")
				var err error
				switch name {
				case "User":
					relay.User = value
				case "IdentityFile":
					relay.Key, err = text(value)
				case "UserKnownHostsFile":
					relay.KnownHosts, err = text(value)
				case "ProxyCommand":
					// There is no blank in its words.
					proxy = strings.Fields(strings.NewReplacer(`"`, "", `'`, "").Replace(value))
				}
				if err != nil {
					return err
				}
			}
			if relay.User == "" || relay.Key == "" || relay.KnownHosts == "" || len(proxy) == 0 {
				return errors.New("condor_ssh_to_job starts this instead of ssh; some of its options are missing")
			}
			runtime.LockOSThread() // each process dies with the thread that has started it
			if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
				return err
			}
			x := exec.Command(proxy[0], proxy[1:]...) // #nosec G204 -- HTCondor's own tool
			x.Stdin, x.Stderr, x.SysProcAttr = os.Stdin, os.Stderr, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			stdout, err := x.StdoutPipe()
			if err != nil {
				return err
			}
			if err := x.Start(); err != nil {
				return err
			}
			err = json.NewEncoder(os.Stdout).Encode(relay)
			if err == nil {
				_, err = io.Copy(os.Stdout, stdout)
			}
			_ = x.Process.Kill() // it may have ended
			_ = x.Wait()         // it was killed
			return err
		},
	}
}

func text(path string) (string, error) {
	b, err := os.ReadFile(path) // #nosec G304 -- of HTCondor's own tool
	return string(b), err
}
