package follow

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// joined is what stands between the words of sshd and those of a command.
var joined = string(rune(schedd.Joined))

// sshd22 is the sshd of a node that takes one connection, and answers what is opened in it until that ends.
func sshd22(t *testing.T, answer func(channels <-chan ssh.NewChannel)) *ssh.Client {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(key)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tcp, err := listener.Accept()
		if err != nil {
			return
		}
		config := &ssh.ServerConfig{NoClientAuth: true}
		config.AddHostKey(signer)
		conn, channels, requests, err := ssh.NewServerConn(tcp, config)
		if err != nil {
			return
		}
		defer conn.Close()
		go ssh.DiscardRequests(requests)
		answer(channels)
	}()
	client, err := ssh.Dial(
		"tcp",
		listener.Addr().String(),
		&ssh.ClientConfig{HostKeyCallback: ssh.FixedHostKey(signer.PublicKey())},
	)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = client.Close() // it may have been closed
		require.NoError(t, listener.Close())
		<-ended
	})
	return client
}

// node22 is an sshd whose only session is driven by do, once a command is to run in it.
func node22(t *testing.T, do func(session ssh.Channel, requests <-chan *ssh.Request)) *ssh.Client {
	t.Helper()
	return sshd22(t, func(channels <-chan ssh.NewChannel) {
		session, asked, err := (<-channels).Accept()
		if err != nil {
			return
		}
		for r := range asked {
			_ = r.Reply(true, nil)
			if r.Type == "exec" {
				do(session, asked)
				return
			}
		}
	})
}

// ends has a command end: exit-status with a number, or exit-signal with a name.
func ends(session ssh.Channel, status uint32, signal string) {
	if signal == "" {
		_, _ = session.SendRequest("exit-status", false, ssh.Marshal(struct{ N uint32 }{status}))
	} else {
		_, _ = session.SendRequest("exit-signal", false, ssh.Marshal(struct {
			Signal  string
			Core    bool
			Message string
			Lang    string
		}{Signal: signal}))
	}
	_ = session.Close()
}

func runs22(
	ctx context.Context,
	client *ssh.Client,
	c aggregate.Command,
	sizes <-chan aggregate.Size,
) (stdout, stderr string, err error) {
	var out, errs strings.Builder
	streams := aggregate.Streams{Stdout: &out, Stderr: &errs, Sizes: sizes}
	if c.TTY {
		streams.Stderr = nil
	}
	c.Words = []string{"true"}
	err = runIn(ctx, client, c, streams)
	return out.String(), errs.String(), err
}

func TestACommandEndsAsItsProcessDoes(t *testing.T) {
	for name, c := range map[string]struct {
		status uint32
		signal string
		code   int
	}{
		"well":                           {0, "", 0},
		"with a code":                    {3, "", 3},
		"by a signal":                    {0, "TERM", 143},
		"by a signal of another system":  {0, "INFO", 128},
		"because it could not be joined": {125, "", 125},
	} {
		t.Run(name, func(t *testing.T) {
			client := node22(t, func(session ssh.Channel, _ <-chan *ssh.Request) {
				_, _ = io.WriteString(session.Stderr(), "no home directory\n"+joined+"oops\n")
				_, _ = io.WriteString(session, "said\n")
				ends(session, c.status, c.signal)
			})
			out, errs, err := runs22(t.Context(), client, aggregate.Command{}, nil)
			if c.code == 0 {
				require.NoError(t, err)
			} else {
				require.Equal(t, aggregate.ExitError{Code: c.code}, err)
			}
			require.Equal(t, "said\n", out)
			require.Equal(t, "oops\n", errs)
		})
	}
}

// What sshd has said is all there is to explain it.
func TestAConnectionThatIsDroppedBeforeTheCommandBeginsIsExplained(t *testing.T) {
	for _, tty := range []bool{false, true} {
		client := node22(t, func(session ssh.Channel, _ <-chan *ssh.Request) {
			said := io.Writer(session)
			if !tty {
				said = session.Stderr()
			}
			_, _ = io.WriteString(said, "Could not chdir to home directory\n")
			_ = session.CloseWrite()
		})
		out, errs, err := runs22(t.Context(), client, aggregate.Command{TTY: tty}, nil)
		require.ErrorContains(t, err, "the connection to the job has ended")
		require.Equal(t, "Could not chdir to home directory\n", out+errs)
	}
}

func TestAChannelThatNobodyAnswersIsGivenUpWhenTheConnectionHasEnded(t *testing.T) {
	lost := make(chan struct{})
	close(lost)
	never := make(chan error)
	_, err := opened(func() (int, error) { return 0, <-never }, lost)
	require.ErrorIs(t, err, io.EOF)
	close(never)
}

func TestANodeThatHasJustGoneIsExplained(t *testing.T) {
	for _, tty := range []bool{false, true} {
		accepted := func(channels <-chan ssh.NewChannel) {
			session, _, err := (<-channels).Accept()
			if err == nil {
				_ = session // the connection ends with it
			}
		}
		for name, answer := range map[string]func(<-chan ssh.NewChannel){
			"before the session": func(<-chan ssh.NewChannel) {}, "before the command": accepted,
		} {
			_, _, err := runs22(t.Context(), sshd22(t, answer), aggregate.Command{TTY: tty}, nil)
			require.ErrorContains(
				t,
				err,
				"the connection to the job has ended: the job has ended, was removed, or its node has gone",
				name,
			)
		}
	}
}

func TestWhoGoesBeforeTheCommandBeginsLeavesNothing(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	gone := make(chan struct{})
	client := node22(t, func(session ssh.Channel, requests <-chan *ssh.Request) {
		_, _ = io.WriteString(session.Stderr(), "still to be joined\n")
		leave()
		for range requests { // until the connection ends
		}
		close(gone)
	})
	_, _, err := runs22(ctx, client, aggregate.Command{}, nil)
	require.Error(t, err)
	<-gone
}

func TestATerminalHasTheSizesOfTheUsers(t *testing.T) {
	sizes := make(chan aggregate.Size)
	got := make(chan [2]uint32)
	begun := make(chan struct{}) // before that, a size is that of the start
	client := node22(t, func(session ssh.Channel, requests <-chan *ssh.Request) {
		_, _ = io.WriteString(session, joined)
		close(begun)
		for r := range requests {
			got <- [2]uint32{binary.BigEndian.Uint32(r.Payload), binary.BigEndian.Uint32(r.Payload[4:])}
			if r.Payload[3] == 102 {
				break
			}
		}
		ends(session, 0, "")
	})
	go func() {
		<-begun
		for _, size := range []aggregate.Size{{Width: 101, Height: 37}, {Width: 102, Height: 38}} {
			sizes <- size
		}
	}()
	ended := make(chan error)
	go func() {
		_, _, err := runs22(t.Context(), client, aggregate.Command{TTY: true}, sizes)
		ended <- err
	}()
	require.Equal(t, [2]uint32{101, 37}, <-got)
	require.Equal(t, [2]uint32{102, 38}, <-got)
	require.NoError(t, <-ended)
}
