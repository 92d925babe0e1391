package follow

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// echo22 is an sshd on whose port 80 a server echoes; nothing listens on others, and it forwards none of those above
// 1000.
func echo22(t *testing.T) *ssh.Client {
	t.Helper()
	return sshd22(t, func(channels <-chan ssh.NewChannel) {
		for asked := range channels {
			var to struct {
				Host string
				Port uint32
				From string
				By   uint32
			}
			_ = ssh.Unmarshal(asked.ExtraData(), &to)
			switch {
			case to.Host != "127.0.0.1" || to.Port > 1000:
				_ = asked.Reject(ssh.Prohibited, "no")
			case to.Port != 80:
				_ = asked.Reject(ssh.ConnectionFailed, "refused")
			default:
				channel, more, err := asked.Accept()
				if err != nil {
					return
				}
				go ssh.DiscardRequests(more)
				go func() {
					_, _ = io.Copy(channel, channel)
					_ = channel.Close()
				}()
			}
		}
	})
}

func TestAPortOfAJobIsConnectedUntilEitherSideCloses(t *testing.T) {
	at := &link{client: echo22(t)}
	var said strings.Builder
	require.NoError(
		t,
		forward(t.Context(), at, 80, aggregate.Streams{Stdin: strings.NewReader("hello"), Stdout: &said}),
	)
	require.Equal(t, "hello", said.String())
	none := aggregate.Streams{Stdin: strings.NewReader(""), Stdout: io.Discard}
	require.ErrorContains(t, forward(t.Context(), at, 81, none), "nothing listens on port 81")
	require.ErrorContains(t, forward(t.Context(), at, 2000, none), "forwards no ports")
	ctx, leave := context.WithCancel(t.Context())
	typed, typing := io.Pipe()
	defer typing.Close()
	ended := make(chan error)
	go func() { ended <- forward(ctx, at, 80, aggregate.Streams{Stdin: typed, Stdout: io.Discard}) }()
	leave()
	<-ended
}

func TestAUsersConnectionsToAJobShareALink(t *testing.T) {
	l := newLinks(time.Millisecond)
	client := echo22(t)
	var opened atomic.Int32
	closed := make(chan struct{})
	open := func(_ context.Context, connected func(*ssh.Client) error) error {
		opened.Add(1)
		defer close(closed)
		return connected(client)
	}
	key := linkKey{"anna", "u", "5.0", 1}
	require.False(t, l.has(key))
	var at *link
	for range 3 {
		got, err := l.take(t.Context(), key, open)
		require.NoError(t, err)
		require.Same(t, client, got.client)
		at = got
	}
	require.EqualValues(t, 1, opened.Load())
	require.True(t, l.has(key))
	for range 2 {
		l.give(at)
	}
	var said strings.Builder
	require.NoError(
		t,
		forward(t.Context(), at, 80, aggregate.Streams{Stdin: strings.NewReader("still"), Stdout: &said}),
	)
	l.give(at)
	<-closed // nobody uses it
	require.Eventually(t, func() bool { return !l.has(key) }, 10*time.Second, time.Millisecond)
	l.give(at) // of one that has ended
}

func TestALinkThatCannotBeginIsExplainedToAllWhoWait(t *testing.T) {
	l := newLinks(time.Minute)
	key := linkKey{"anna", "u", "5.0", 1}
	begin := make(chan struct{})
	open := func(context.Context, func(*ssh.Client) error) error {
		<-begin
		return errors.New("the job has ended")
	}
	ends := make(chan error)
	for range 3 {
		go func() {
			_, err := l.take(t.Context(), key, open)
			ends <- err
		}()
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	_, err := l.take(gone, key, open)
	require.ErrorIs(t, err, context.Canceled)
	close(begin)
	for range 3 {
		require.Error(t, <-ends)
	}
	require.False(t, l.has(key))
}
