package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/remotecommand"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/kube/ports"
)

func portForwardCommand() *cobra.Command {
	var at Connection
	var proc int
	var node nodeFlags
	c := &cobra.Command{
		Use:   "port-forward NAME[/PROC] [LOCAL:]PORT...",
		Short: "Connect ports here with ports of a running job, or of an HTCWorkflow's node",
		Long: `Connect ports of this machine with ports on which a running job listens: a notebook, a dashboard, TensorBoard. LOCAL is the port here, the
same as there unless it is given; with 0 a free one is taken. Only this machine can connect to it. The server in the job must listen on
127.0.0.1 or on all addresses of its node; other jobs on the same node can reach it as well, so it needs a password or a token of its own.
It goes on until it is interrupted; a connection that fails is explained and does not end it, since the server may still be starting. While
the job does not run every connection fails.

Of an HTCWorkflow --step simulate --sequence 17 names one node.

Needs the rights to get and create htcjobs/exec and htcworkflows/exec of output.htc.cern.ch, which the ClusterRole htcjob-exec has and htcjob-user has not.

Exit codes: 1 a port here cannot be listened on, 2 a mistake in the command line, 130 interrupted.
` + bothKinds,
		ValidArgsFunction: at.complete(kinds...),
	}
	at.Flags(c.Flags())
	setting.Int(c.Flags(), &proc, "proc", 0, 0, maxNumber, "the job's `number`, as in NAME/PROC")
	node.defineOne(c.Flags())
	c.Args = func(_ *cobra.Command, args []string) error {
		if len(args) < 2 {
			return setting.Usage{
				Err: errors.New(
					"port-forward: want the name of an HTCJob or HTCWorkflow and ports, such as: htcd port-forward NAME 8888",
				),
			}
		}
		_, err := portPairs(args[1:])
		return err
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		name, number, err := nameAndProc(args[0])
		if err != nil {
			return err
		}
		switch {
		case number < 0:
		case cmd.Flags().Changed("proc") && proc != number:
			return setting.Usage{Err: fmt.Errorf("%s and --proc %d: want one of them", args[0], proc)}
		default: // it is as if --proc had been given
			if err := cmd.Flags().Set("proc", strconv.Itoa(number)); err != nil {
				return err
			}
		}
		among, err := node.given(cmd.Flags())
		if err != nil {
			return err
		}
		ref, err := named(name, among...)
		if err != nil {
			return err
		}
		pairs, err := portPairs(args[1:])
		if err != nil {
			return err
		}
		where, err := at.open(io.Discard)
		if err != nil {
			return err
		}
		if ref, err = where.resolve(cmd.Context(), ref); err != nil {
			return err
		}
		of := url.Values{"proc": {strconv.Itoa(proc)}}
		if ref.kind == workflowKind {
			if err := node.fit(cmd.Flags(), ref.name); err != nil {
				return err
			}
			of = node.place()
		}
		path := []string{ref.kind.resource, ref.name, "exec"}
		return ended(
			cmd.Context(),
			forwardPorts(
				cmd.Context(),
				pairs,
				cmd.OutOrStdout(),
				cmd.ErrOrStderr(),
				func(ctx context.Context, port int, conn net.Conn) error {
					return at.port(ctx, where, path, of, port, conn)
				},
			),
		)
	}
	return c
}

// Ports returns what connects conn with a port of a job or node, until either side closes.
func (c *Connection) Ports() (func(ctx context.Context, to ports.Target, conn net.Conn) error, error) {
	where, err := c.open(io.Discard)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, to ports.Target, conn net.Conn) error {
		resource, of := v1alpha1.Resource, url.Values{"proc": {strconv.Itoa(int(to.Proc))}}
		if to.Kind == v1alpha1.WorkflowKind {
			node := nodeFlags{step: to.Step, node: to.Node, sequence: int(to.Sequence), index: int(to.Index)}
			resource, of = v1alpha1.WorkflowResource, node.place()
		}
		return c.port(ctx, where, []string{resource, to.Name, "exec"}, of, int(to.Port), conn)
	}, nil
}

// port connects conn with a port of what path and parameters name.
func (c *Connection) port(
	ctx context.Context,
	where *cluster,
	path []string,
	of url.Values,
	port int,
	conn net.Conn,
) error {
	parameters := maps.Clone(of) // each connection has its own
	parameters.Set("port", strconv.Itoa(port))
	return c.stream(ctx, where, path, parameters, remotecommand.StreamOptions{Stdin: untilClosed{conn}, Stdout: conn})
}

// untilClosed is a connection whose end on this side is no error to its reader, which would print it.
type untilClosed struct{ net.Conn }

func (c untilClosed) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if errors.Is(err, net.ErrClosed) {
		err = io.EOF
	}
	return n, err
}

// nameAndProc splits NAME/PROC; -1: there is no number.
func nameAndProc(text string) (name string, proc int, err error) {
	i := strings.LastIndex(text, "/")
	if i < 0 {
		return text, -1, nil
	}
	proc, err = strconv.Atoi(text[i+1:])
	if err != nil { // wf/NAME
		return text, -1, nil //nolint:nilerr // whether it is a name is seen later
	}
	if proc < 0 || proc > maxNumber {
		return "", -1, setting.Usage{Err: fmt.Errorf("%s: want NAME or NAME/PROC, with a number from 0 on", text)}
	}
	return text[:i], proc, nil
}

// portPair is a port here and one there.
type portPair struct{ local, remote int }

func portPairs(words []string) (pairs []portPair, err error) {
	for _, word := range words {
		local, remote, both := strings.Cut(word, ":")
		if !both {
			remote = local
		}
		var p portPair
		var err1, err2 error
		p.local, err1 = strconv.Atoi(local)
		p.remote, err2 = strconv.Atoi(remote)
		least := 1
		if both {
			least = 0
		}
		if err1 != nil || err2 != nil || p.local < least || p.local > 65535 || p.remote < 1 || p.remote > 65535 {
			return nil, setting.Usage{
				Err: fmt.Errorf("%s: want a port from 1 to 65535, or LOCAL:PORT, such as 8888 or 9000:8888", word),
			}
		}
		pairs = append(pairs, p)
	}
	return pairs, nil
}

// forwardPorts listens on the ports here until ctx ends, and has connect serve each connection.
func forwardPorts(
	ctx context.Context,
	pairs []portPair,
	out, warnings io.Writer,
	connect func(ctx context.Context, port int, conn net.Conn) error,
) error {
	var listeners []net.Listener
	defer func() {
		for _, l := range listeners {
			_ = l.Close()
		}
	}()
	for _, p := range pairs {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p.local)))
		if err != nil {
			return err
		}
		listeners = append(listeners, l)
		fmt.Fprintf(out, "http://%s -> port %d of the job\n", l.Addr(), p.remote)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var serving sync.WaitGroup
	for i, l := range listeners {
		serving.Go(func() {
			defer stop()
			ports.Accept(ctx, l, func(ctx context.Context, conn net.Conn) {
				if err := connect(ctx, pairs[i].remote, conn); err != nil && ctx.Err() == nil {
					fmt.Fprintf(warnings, "port %d: %s\n", pairs[i].remote, Plain(err.Error()))
				}
			})
		})
	}
	serving.Wait()
	return ctx.Err()
}
