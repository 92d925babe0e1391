package multinode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Start runs a command on another node of the job, as ssh would, and returns its return code: [OPTION...] HOST
// COMMAND..., where HOST is node0, node1 and so on.
func Start(ctx context.Context, dir string, args []string, out, errout io.Writer) int {
	code, err := start(ctx, dir, args, out, errout)
	if err != nil {
		fmt.Fprintln(errout, "htcd:", err)
	}
	return code
}

func start(ctx context.Context, dir string, args []string, out, errout io.Writer) (int, error) {
	p, err := here(dir)
	if err != nil {
		return notRun, err
	}
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		args = args[1:]
	}
	if len(args) < 2 {
		return notRun, errors.New("expected a host, such as node1, and a command to run there")
	}
	ports := strings.Fields(os.Getenv(portsVariable))
	number, err := strconv.Atoi(strings.TrimPrefix(args[0], "node"))
	if err != nil || number < 0 || number >= len(ports) || number >= len(p.addresses) {
		return notRun, fmt.Errorf("found the host %q, expected node0 to node%d", args[0], len(p.addresses)-1)
	}
	port, err := strconv.Atoi(ports[number])
	if err != nil {
		return notRun, fmt.Errorf("%s: %w", portsVariable, err)
	}
	config, err := p.tls()
	if err != nil {
		return notRun, err
	}
	c, err := dial(ctx, config, p.addresses[number], port, message{Start: strings.Join(args[1:], " ")})
	if err != nil {
		return notRun, fmt.Errorf("reach node %d: %w", number, err)
	}
	defer c.Close()
	for {
		m, err := c.receive()
		if err != nil {
			return notRun, fmt.Errorf("node %d was lost", number)
		}
		if m.write(out, errout); m.Ended {
			return m.Code, nil
		}
	}
}
