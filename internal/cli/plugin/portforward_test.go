package plugin

import (
	"context"
	"errors"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/cli/setting"
)

func TestPortsHereAndThere(t *testing.T) {
	pairs, err := portPairs([]string{"8888", "9000:80", "0:65535"})
	require.NoError(t, err)
	require.Equal(t, []portPair{{8888, 8888}, {9000, 80}, {0, 65535}}, pairs)
	for _, word := range []string{"", "0", "65536", "http", "80:", ":80", "80:0", "1:2:3", "-1:5", "127.0.0.1:80"} {
		_, err := portPairs([]string{word})
		require.ErrorContains(t, err, "want a port", word)
	}
}

func TestAJobsNumberMayStandBehindItsName(t *testing.T) {
	for text, want := range map[string]struct {
		name string
		proc int
	}{"scan": {"scan", -1}, "scan/3": {"scan", 3}, "wf/scan": {"wf/scan", -1}, "job/scan/7": {"job/scan", 7}} {
		name, proc, err := nameAndProc(text)
		require.NoError(t, err)
		require.Equal(t, want.name, name)
		require.Equal(t, want.proc, proc)
	}
	_, _, err := nameAndProc("scan/-1")
	require.Error(t, err)
}

func TestAJobsNumberIsNotThatOfANode(t *testing.T) {
	for words, args := range map[string][]string{
		"want the name of an HTCJob":             {"wf/scan/3", "8888"},
		"--proc is for HTCJobs":                  {"scan/3", "--step", "fit", "8888"},
		"scan/3 and --proc 4: want one of them":  {"scan/3", "--proc", "4", "8888"},
		"want NAME or NAME/PROC, with a number ": {"scan/-1", "8888"},
	} {
		c := portForwardCommand()
		c.SetArgs(args)
		c.SilenceUsage, c.SilenceErrors = true, true
		err := c.ExecuteContext(t.Context())
		require.ErrorContains(t, err, words)
		require.ErrorAs(t, err, new(setting.Usage))
	}
}

func TestAConnectionThatFailsDoesNotEndTheOthers(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	told, saying := io.Pipe()
	var warnings strings.Builder
	ended := make(chan error)
	go func() {
		ended <- forwardPorts(ctx, []portPair{{0, 80}, {0, 81}}, saying, &warnings,
			func(_ context.Context, port int, conn net.Conn) error {
				if port == 81 {
					return errors.New("nothing listens")
				}
				_, err := io.Copy(conn, conn)
				return err
			})
	}()
	said := make([]byte, 1000)
	addresses := map[string]string{}
	for range 2 {
		n, err := told.Read(said)
		require.NoError(t, err)
		m := regexp.MustCompile(`^http://(127\.0\.0\.1:\d+) -> port (\d+) of the job\n$`).
			FindStringSubmatch(string(said[:n]))
		require.NotNil(t, m, string(said[:n]))
		addresses[m[2]] = m[1]
	}
	ask := func(port string) string {
		conn, err := net.Dial("tcp", addresses[port])
		require.NoError(t, err)
		defer conn.Close()
		_, _ = io.WriteString(conn, "hello")
		_ = conn.(*net.TCPConn).CloseWrite() // it may be reset
		answer, _ := io.ReadAll(conn)
		return string(answer)
	}
	require.Empty(t, ask("81"))
	require.Equal(t, "hello", ask("80"))
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Contains(t, warnings.String(), "port 81: nothing listens")
	_, err := net.Dial("tcp", addresses["80"])
	require.Error(t, err)
}
