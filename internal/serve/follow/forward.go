package follow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"htc.cern.ch/htcd/internal/serve/aggregate"
)

const (
	// lingers is how long a link stays without a connection: a browser opens several, one after the other, and each new
	// link takes HTCondor a second.
	lingers = 30 * time.Second
	// mostForwarded is how many connections to ports there may be at once: each may hold 3 MiB that the other side has
	// not taken yet.
	mostForwarded = 64
)

// links are the connections to the sshds beside jobs that a user's forwarded ports share.
type links struct {
	lingers time.Duration

	mu    sync.Mutex
	alive map[linkKey]*link
}

// linkKey says whose link to which job it is. Schedds of several collectors may have the same name, and so the same job
// ids.
type linkKey struct {
	user, uid, jobID string
	attempt          int
}

// link is one. ready is closed when client or err is there, and ended when the client's connection has.
type link struct {
	ready, ended chan struct{}
	client       *ssh.Client
	err          error
	users        int
	idle         *time.Timer // ends it
}

func newLinks(lingers time.Duration) *links {
	return &links{lingers: lingers, alive: map[linkKey]*link{}}
}

// has reports whether there is one already.
func (l *links) has(key linkKey) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.alive[key] != nil
}

// take returns the link, which open begins if there is none; open calls its argument once it is connected, and returns
// some time after that has. The caller gives it back unless there is an error.
func (l *links) take(
	ctx context.Context,
	key linkKey,
	open func(ctx context.Context, connected func(*ssh.Client) error) error,
) (*link, error) {
	l.mu.Lock()
	at := l.alive[key]
	if at == nil {
		at = &link{ready: make(chan struct{}), ended: make(chan struct{})}
		l.alive[key] = at
		// It outlives the request that it begins with. Without a user it ends, and with the job.
		life, end := context.WithCancel(context.WithoutCancel(ctx))
		at.idle = time.AfterFunc(l.lingers, end)
		at.idle.Stop()
		go l.run(life, end, key, at, open)
	}
	at.users++
	at.idle.Stop()
	l.mu.Unlock()
	select {
	case <-at.ready:
	case <-ctx.Done():
		l.give(at)
		return nil, ctx.Err()
	}
	if at.err != nil {
		l.give(at)
		return nil, at.err
	}
	return at, nil
}

func (l *links) run(
	ctx context.Context,
	end func(),
	key linkKey,
	at *link,
	open func(context.Context, func(*ssh.Client) error) error,
) {
	defer end()
	err := open(ctx, func(client *ssh.Client) error {
		stop := context.AfterFunc(ctx, func() { _ = client.Close() })
		defer stop()
		at.client = client
		close(at.ready)
		_ = client.Wait() // however it ended, what is forwarded notices
		close(at.ended)
		return nil
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.alive[key] == at {
		delete(l.alive, key)
	}
	if at.client == nil {
		if at.err = err; err == nil {
			at.err = errors.New("the connection to the job ended before it began")
		}
		close(at.ready)
	}
}

func (l *links) give(at *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at.users--; at.users == 0 {
		at.idle.Reset(l.lingers)
	}
}

// forward connects a user with a port on the node of a job, at its loopback address, until either side closes.
func forward(ctx context.Context, at *link, port int, streams aggregate.Streams) error {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	conn, err := opened(func() (net.Conn, error) { return at.client.DialContext(ctx, "tcp", address) }, at.ended)
	if refused, is := errors.AsType[*ssh.OpenChannelError](err); is {
		if refused.Reason == ssh.Prohibited {
			return apierrors.NewServiceUnavailable(
				"HTCondor's sshd on the job's node forwards no ports (AllowTcpForwarding in its condor_ssh_to_job_sshd_config_template)",
			)
		}
		return apierrors.NewServiceUnavailable(
			fmt.Sprintf(
				"nothing listens on port %d where the job runs: a server that listens on 127.0.0.1 or on all addresses can be reached",
				port,
			),
		)
	}
	if err != nil {
		return gone(ctx, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	go func() {
		_, err := io.Copy(conn, streams.Stdin)
		if half, can := conn.(interface{ CloseWrite() error }); can && err == nil {
			_ = half.CloseWrite() // the other side may have gone
			return
		}
		_ = conn.Close()
	}()
	_, err = io.Copy(streams.Stdout, conn)
	return err
}
