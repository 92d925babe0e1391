package schedd

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"htc.cern.ch/htcd/internal/schedd/submit"
)

//go:embed join.sh
var joinBody string

// longestShell is how long a connection to a job may last.
const longestShell = 24 * time.Hour

// Relay is what the ssh client that condor_ssh_to_job starts says on its first line: who it is to HTCondor's sshd. The
// private key was made for this connection. What follows is the connection.
type Relay struct{ User, Key, KnownHosts string }

// Connect connects to the sshd that HTCondor starts beside a running job, as the job's account, and calls fn. It runs
// condor_ssh_to_job with relay, a program and perhaps a word, in the place of ssh: that prints a Relay and runs the
// ProxyCommand until it closes its output. tmp is an empty directory for the keys of the connection; removing it is
// left to the caller.
func (c *Client) Connect(
	ctx context.Context,
	id Identity,
	cluster, proc int,
	relay []string,
	tmp string,
	fn func(*ssh.Client) error,
) error {
	args, err := c.target(ctx, id)
	if err != nil {
		return err
	}
	var words []string
	for _, word := range relay {
		words = append(words, "'"+strings.ReplaceAll(word, "'", "''")+"'")
	}
	args = append(args, "-ssh", strings.Join(words, " "), fmt.Sprintf("%d.%d", cluster, proc))
	for tries := 1; ; tries++ {
		begun, err := c.connect(ctx, id, args, tmp, fn)
		if begun || err == nil || tries == mostTries || !strings.Contains(err.Error(), notReady) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(betweenTries):
		}
	}
}

// notReady is what the tool says after its reason if that passes: the starter refuses while it prepares the job.
const (
	notReady     = "-auto-retry"
	mostTries    = 15
	betweenTries = 2 * time.Second
)

func (c *Client) connect(
	ctx context.Context,
	id Identity,
	args []string,
	tmp string,
	fn func(*ssh.Client) error,
) (begun bool, err error) {
	in, out := io.Pipe()
	defer in.Close()
	var result error
	err = c.run(ctx, command{name: "condor_ssh_to_job", args: args, id: id, timeout: longestShell, stdin: in, dir: tmp,
		env:    []string{"_condor_TMP_DIR=."}, // so that the path of a socket there is never too long
		echoes: true, read: func(r io.Reader) error {
			client, err := handshake(ctx, r, out)
			if err != nil {
				return err
			}
			defer client.Close()
			begun, result = true, fn(client)
			return nil
		}})
	if begun { // how the tool ends says nothing then
		return true, result
	}
	return false, err
}

func handshake(ctx context.Context, r io.Reader, w io.WriteCloser) (*ssh.Client, error) {
	b := bufio.NewReader(r)
	line, err := b.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("it began no connection: %w", err) // the tool says why
	}
	var relay Relay
	if err := json.Unmarshal(line, &relay); err != nil {
		return nil, fmt.Errorf("its relay says: %w", err)
	}
	signer, err := ssh.ParsePrivateKey([]byte(relay.Key))
	if err != nil {
		return nil, fmt.Errorf("the key of the connection: %w", err)
	}
	_, _, host, _, _, err := ssh.ParseKnownHosts([]byte(relay.KnownHosts))
	if err != nil {
		return nil, fmt.Errorf("the key of HTCondor's sshd: %w", err)
	}
	conn := &pipes{b, w}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	c, channels, requests, err := ssh.NewClientConn(conn, "condor-job", &ssh.ClientConfig{
		User: relay.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.FixedHostKey(host),
	})
	if err != nil {
		return nil, fmt.Errorf("log in to HTCondor's sshd: %w", err)
	}
	return ssh.NewClient(c, channels, requests), nil
}

// pipes is a connection over a tool's streams.
type pipes struct {
	io.Reader
	io.WriteCloser
}

func (p *pipes) LocalAddr() net.Addr              { return pipeAddr{} }
func (p *pipes) RemoteAddr() net.Addr             { return pipeAddr{} }
func (p *pipes) SetDeadline(time.Time) error      { return errors.ErrUnsupported }
func (p *pipes) SetReadDeadline(time.Time) error  { return errors.ErrUnsupported }
func (p *pipes) SetWriteDeadline(time.Time) error { return errors.ErrUnsupported }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "condor_ssh_to_job" }

// Joined is what a JoinCommand writes first to standard error. Before it stands what sshd and HTCondor's set-up have to
// say.
const Joined = 0

// JoinCommand returns what to have HTCondor's sshd run, so that a command runs inside the container of the job and not
// beside it. It exits with 125 and a word on standard error if it cannot. HTCondor's shell set-up splits it at blanks
// and expands it once more: so it has nothing that this would change.
func JoinCommand(words []string, terminal string) string {
	var b strings.Builder
	b.WriteString("set --")
	for _, w := range words {
		b.WriteString(" " + submit.ShellQuote(w))
	}
	b.WriteString("\nterminal=" + submit.ShellQuote(terminal) + "\n" + joinBody)
	return `exec bash --norc --noprofile -c "$(printf %s ` + base64.StdEncoding.EncodeToString(
		[]byte(b.String()),
	) + ` | base64 -d)"`
}
