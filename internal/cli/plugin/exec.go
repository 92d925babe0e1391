package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"

	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

func execCommand() *cobra.Command {
	var at Connection
	var proc int
	var stdin, tty bool
	var node nodeFlags
	c := &cobra.Command{
		Use:   "exec NAME [--proc N] [-i] [-t] -- COMMAND [ARGUMENT...]",
		Short: "Run a command in the container of a running job, or of an HTCWorkflow's node",
		Long: `Run a command in the container of a running job of an HTCJob, as the job, beside its script: with the variables and in the directory of
the script. It ends with the command's exit code; 125 if the command could not be run in the container, after a word about why. If this
program is ended, a command without a terminal goes on until its output is closed, or the job ends.

Of an HTCWorkflow --step simulate --sequence 17 names one node.

Needs the rights to get and create htcjobs/exec and htcworkflows/exec of output.htc.cern.ch, which the ClusterRole htcjob-exec has and htcjob-user has not.
` + bothKinds,
		ValidArgsFunction: at.complete(kinds...),
	}
	at.Flags(c.Flags())
	setting.Int(c.Flags(), &proc, "proc", 0, 0, maxNumber, "the job's `number`")
	setting.Bool(c.Flags(), &stdin, "stdin,i", false, "pass standard input on")
	setting.Bool(c.Flags(), &tty, "tty,t", false, "with a terminal; needs one here, and -i")
	node.defineOne(c.Flags())
	c.Args = func(cmd *cobra.Command, args []string) error {
		if cmd.ArgsLenAtDash() != 1 || len(args) < 2 {
			return setting.Usage{
				Err: errors.New(
					"exec: want the name of an HTCJob or HTCWorkflow, --, and a command, such as: htcd exec NAME -it -- sh",
				),
			}
		}
		return nil
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		among, err := node.given(cmd.Flags())
		if err != nil {
			return err
		}
		ref, err := named(args[0], among...)
		switch {
		case err != nil:
			return err
		case tty && !stdin:
			return setting.Usage{Err: errors.New("--tty: want --stdin, too")}
		case tty && !term.IsTerminal(int(os.Stdin.Fd())): // #nosec G115 -- a file descriptor
			return setting.Usage{Err: errors.New("--tty: standard input is no terminal")}
		}
		streams := remotecommand.StreamOptions{Stdout: cmd.OutOrStdout(), Tty: tty}
		if stdin {
			streams.Stdin = os.Stdin
		}
		if !tty {
			streams.Stderr = cmd.ErrOrStderr()
		}
		where, err := at.open(io.Discard)
		if err != nil {
			return err
		}
		if ref, err = where.resolve(cmd.Context(), ref); err != nil {
			return err
		}
		parameters := url.Values{"proc": {strconv.Itoa(proc)}}
		if ref.kind == workflowKind {
			if err := node.fit(cmd.Flags(), ref.name); err != nil {
				return err
			}
			parameters = node.place()
		}
		return ended(
			cmd.Context(),
			at.exec(cmd.Context(), where, []string{ref.kind.resource, ref.name, "exec"}, parameters, args[1:], streams),
		)
	}
	return c
}

// exec runs a command where the parameters say. Its error is an Exit if it has ended with a code of its own.
func (c *Connection) exec(
	ctx context.Context,
	where *cluster,
	path []string,
	parameters url.Values,
	words []string,
	streams remotecommand.StreamOptions,
) error {
	parameters["command"] = words
	if streams.Tty {
		restore, err := rawTerminal(&streams)
		if err != nil {
			return err
		}
		defer restore()
	}
	return c.stream(ctx, where, path, parameters, streams)
}

// stream connects streams with what the parameters say.
func (c *Connection) stream(
	ctx context.Context,
	where *cluster,
	path []string,
	parameters url.Values,
	streams remotecommand.StreamOptions,
) error {
	config, namespace, err := c.Config()
	if err != nil {
		return err
	}
	u := where.base.JoinPath(
		"apis",
		aggregate.GroupVersion.Group,
		aggregate.GroupVersion.Version,
		"namespaces",
		namespace,
	).JoinPath(
		path...)
	parameters.Set("stdin", strconv.FormatBool(streams.Stdin != nil))
	parameters.Set("tty", strconv.FormatBool(streams.Tty))
	u.RawQuery = parameters.Encode()
	executor, err := remotecommand.NewWebSocketExecutor(config, "GET", u.String())
	if err != nil {
		return err
	}
	klog.SetOutput(io.Discard) // on an interruption client-go says of each stream that its connection is closed
	klog.LogToStderr(false)
	err = executor.StreamWithContext(ctx, streams)
	if exit, exited := errors.AsType[utilexec.CodeExitError](err); exited {
		return Exit{exit.Code}
	}
	if refused, was := errors.AsType[*httpstream.UpgradeFailureError](err); was {
		return refused.Cause
	}
	return err
}

// rawTerminal makes the terminal pass on everything that is typed, and its sizes.
func rawTerminal(streams *remotecommand.StreamOptions) (restore func(), err error) {
	fd := int(os.Stdin.Fd()) // #nosec G115 -- a file descriptor
	was, err := term.MakeRaw(fd)
	if err != nil {
		return nil, fmt.Errorf("the terminal: %w", err)
	}
	s := &sizes{fd: fd, changed: make(chan os.Signal, 1)}
	s.changed <- syscall.SIGWINCH
	signal.Notify(s.changed, syscall.SIGWINCH)
	streams.TerminalSizeQueue = s
	return func() {
		signal.Stop(s.changed)
		_ = term.Restore(fd, was) // it may be gone
	}, nil
}

// sizes are those of a terminal, now and after each change.
type sizes struct {
	fd      int
	changed chan os.Signal
}

func (s *sizes) Next() *remotecommand.TerminalSize {
	if _, more := <-s.changed; !more {
		return nil
	}
	width, height, err := term.GetSize(s.fd)
	if err != nil {
		return nil
	}
	return &remotecommand.TerminalSize{Width: uint16(width), Height: uint16(height)} // #nosec G115 -- of a terminal
}
