package multinode

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The times that nodes have.
const (
	together = 15 * time.Minute // to join: some fetch an image for so long
	grace    = 10 * time.Second // to end, for a script that is to
)

// notRun is the return code when the script did not run, or a node was lost.
const notRun = 125

// Run runs a script on this node of a job, and returns its return code; on node 0 that of the job.
func Run(ctx context.Context, dir string, script []string) int {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	code, err := run(ctx, dir, script)
	if err != nil {
		fmt.Fprintln(os.Stderr, "htcd:", err)
	}
	return code
}

func run(ctx context.Context, dir string, script []string) (int, error) {
	p, err := here(dir)
	if err != nil {
		return notRun, err
	}
	config, err := p.tls()
	if err != nil {
		return notRun, err
	}
	l, err := p.listen(ctx)
	if err != nil {
		return notRun, err
	}
	defer l.Close()
	if p.number == 0 {
		return p.lead(ctx, config, l, script, os.Stdout, os.Stderr)
	}
	return p.follow(ctx, config, l, script)
}

// listen listens at this node's address; node 0 where the others look for it.
func (p place) listen(ctx context.Context) (l net.Listener, err error) {
	var by net.ListenConfig
	at := func(port int) error {
		l, err = by.Listen(ctx, "tcp", net.JoinHostPort(p.addresses[p.number], strconv.Itoa(port)))
		return err
	}
	if p.number > 0 {
		return l, at(0)
	}
	for try := range tries {
		if at(p.port(try)) == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("node 0 cannot listen at its address: %w", err)
}

// lead is what node 0 does.
func (p place) lead(
	ctx context.Context,
	config *tls.Config,
	l net.Listener,
	script []string,
	out, err io.Writer,
) (int, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	g := newGroup(len(p.addresses), l)
	defer g.end()
	go accept(l, config, func(c *conn, first message) {
		switch {
		case first.Start != "":
			p.start(c, g.ports, first.Start)
		case !g.join(c, first):
		default:
			failure := relay(c, first.Join, out, err)
			g.relays.Done()
			if failure != nil {
				end(failure)
			}
			<-g.over
		}
	})
	select {
	case <-g.whole:
	case <-ctx.Done():
		return failed(ctx, notRun)
	case <-time.After(together):
		return notRun, fmt.Errorf(
			"%s did not reach node 0 (%s, ports %d and others) in %v: do the pool's machines reach one another?",
			g.missing(),
			p.addresses[0],
			p.port(0),
			together,
		)
	}
	for _, c := range g.members[1:] {
		if err := c.send(message{Go: g.ports}); err != nil {
			return notRun, err
		}
	}
	cmd := p.command(ctx, g.ports, script...)
	cmd.Stdout, cmd.Stderr = out, err
	execute(cmd)
	return failed(ctx, code(cmd))
}

// failed returns the failure of another node, if there is one, and the return code of this one otherwise.
func failed(ctx context.Context, code int) (int, error) {
	var f failure
	if errors.As(context.Cause(ctx), &f) {
		return f.code, f
	}
	return code, nil
}

// failure is that of another node.
type failure struct {
	node, code int
	lost       bool
}

func (f failure) Error() string {
	if f.lost {
		return fmt.Sprintf("node %d was lost: this ends the job on all nodes", f.node)
	}
	return fmt.Sprintf(
		"the script has failed on node %d, with return code %d: this ends the job on all nodes",
		f.node,
		f.code,
	)
}

// group is the nodes that have joined.
type group struct {
	mu      sync.Mutex
	ports   []int
	members []*conn
	count   int
	whole   chan struct{} // closed when all have
	relays  sync.WaitGroup
	over    chan struct{} // closed when the connections are to end
}

func newGroup(nodes int, l net.Listener) *group {
	g := &group{
		ports:   make([]int, nodes),
		members: make([]*conn, nodes),
		whole:   make(chan struct{}),
		over:    make(chan struct{}),
	}
	if at, ok := l.Addr().(*net.TCPAddr); ok {
		g.ports[0] = at.Port
	}
	return g
}

// end has the other nodes end their scripts, and waits for what these have printed.
func (g *group) end() {
	g.mu.Lock()
	for _, c := range g.members {
		if c != nil {
			_ = c.send(message{Ended: true})
		}
	}
	g.mu.Unlock()
	relayed := make(chan struct{})
	go func() {
		g.relays.Wait()
		close(relayed)
	}()
	select {
	case <-relayed:
	case <-time.After(2 * grace):
	}
	close(g.over)
}

// join adds a node, each once.
func (g *group) join(c *conn, m message) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m.Join < 1 || m.Join >= len(g.members) || g.members[m.Join] != nil {
		return false
	}
	g.members[m.Join], g.ports[m.Join] = c, m.Port
	g.relays.Add(1)
	if g.count++; g.count == len(g.members)-1 {
		close(g.whole)
	}
	return true
}

// missing names those that have not joined.
func (g *group) missing() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var names []string
	for n, c := range g.members[1:] {
		if c == nil {
			names = append(names, strconv.Itoa(n+1))
		}
	}
	return "node " + strings.Join(names, ", ")
}

// relay writes what another node's script prints, its number before each line, until that has ended. It returns how
// that node has failed.
func relay(c *conn, number int, out, err io.Writer) error {
	lines := [2]*lines{{to: out, before: fmt.Sprint(number, ": ")}, {to: err, before: fmt.Sprint(number, ": ")}}
	for {
		m, broken := c.receive()
		m.write(lines[0], lines[1])
		if broken == nil && !m.Ended {
			continue
		}
		lines[0].end()
		lines[1].end()
		switch {
		case broken != nil:
			return failure{node: number, code: notRun, lost: true}
		case m.Code != 0:
			return failure{node: number, code: m.Code}
		}
		return nil
	}
}

// follow is what the other nodes do. It returns when node 0 has ended.
func (p place) follow(ctx context.Context, config *tls.Config, l net.Listener, script []string) (int, error) {
	c, err := p.join(ctx, config, message{Join: p.number, Port: l.Addr().(*net.TCPAddr).Port})
	if err != nil {
		return notRun, err
	}
	defer c.Close()
	m, err := c.receive()
	if err != nil || len(m.Go) != len(p.addresses) {
		return notRun, nil // node 0 has said why
	}
	go accept(l, config, func(c *conn, first message) {
		if first.Start != "" {
			p.start(c, m.Go, first.Start)
		}
	})
	ctx, end := context.WithCancel(ctx)
	defer end()
	gone := make(chan struct{})
	go func() {
		_, _ = c.receive() // node 0 has ended, or is lost
		close(gone)
		end()
	}()
	cmd := p.command(ctx, m.Go, script...)
	cmd.Stdout, cmd.Stderr = stream{to: c}, stream{to: c, err: true}
	execute(cmd)
	if c.send(message{Ended: true, Code: code(cmd)}) == nil {
		<-gone
	}
	return code(cmd), nil
}

// Fail tells node 0 that the script could not be run on this node, with the return code that stands for it. It runs
// outside of the container, and so starts nothing for others.
func Fail(ctx context.Context, dir string, code int) error {
	p, err := here(dir)
	if err != nil {
		return err
	}
	return p.fail(ctx, code)
}

func (p place) fail(ctx context.Context, code int) error {
	config, err := p.tls()
	if err != nil {
		return err
	}
	c, err := p.join(ctx, config, message{Join: p.number})
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.send(message{Ended: true, Code: code}); err != nil {
		return err
	}
	_, _ = c.receive() // node 0 ends, or this node has joined before
	return nil
}

// join connects to node 0, which may begin later.
func (p place) join(ctx context.Context, config *tls.Config, first message) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, together)
	defer cancel()
	for {
		for try := range tries {
			if c, err := dial(ctx, config, p.addresses[0], p.port(try), first); err == nil {
				return c, nil
			}
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, fmt.Errorf(
				"node %d has not reached node 0 (%s): do the pool's machines reach one another?",
				p.number,
				p.addresses[0],
			)
		}
	}
}

// command is a program in this container. When the context ends it is asked to end.
func (p place) command(ctx context.Context, ports []int, words ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...) // #nosec G204 -- the job's own program
	cmd.Env = append(os.Environ(), p.variables(ports)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	return cmd
}

// execute runs a program, and says why if it cannot.
func execute(cmd *exec.Cmd) {
	if err := cmd.Run(); cmd.ProcessState == nil {
		fmt.Fprintln(cmd.Stderr, "htcd:", err)
	}
}

// portsVariable has the ports of the nodes, for Start.
const portsVariable = "HTC_NODE_PORTS"

// variables are those of the script, and of what mpirun starts. Open MPI 4 and 5 read theirs.
func (p place) variables(ports []int) []string {
	agent, hosts := filepath.Join(p.dir, fileStart), filepath.Join(p.dir, fileHosts)
	return []string{
		"HTC_NODE=" + strconv.Itoa(p.number), "HTC_NODES=" + strconv.Itoa(len(p.addresses)),
		"HTC_NODE_ADDRESSES=" + strings.Join(p.addresses, " "),
		portsVariable + "=" + strings.Trim(fmt.Sprint(ports), "[]"),
		"OMPI_MCA_plm_rsh_agent=" + agent, "PRTE_MCA_plm_ssh_agent=" + agent,
		"OMPI_MCA_plm_rsh_no_tree_spawn=1", "PRTE_MCA_plm_ssh_no_tree_spawn=1",
		"OMPI_MCA_orte_default_hostfile=" + hosts, "PRTE_MCA_prte_default_hostfile=" + hosts,
	}
}

// start runs a command for another node. What it leaves running stays until the script has ended.
func (p place) start(c *conn, ports []int, command string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = c.receive() // nothing more comes: who has asked for it is gone
		cancel()
	}()
	cmd := p.command(ctx, ports, "sh", "-c", command)
	cmd.Stdout, cmd.Stderr = stream{to: c}, stream{to: c, err: true}
	execute(cmd)
	_ = c.send(message{Ended: true, Code: code(cmd)})
}
