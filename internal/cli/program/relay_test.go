package program

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/programtest"
)

// TestMain has this program be the relay where it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == RelayWord {
		relay := relayCommand()
		relay.SetArgs(os.Args[2:])
		if relay.Execute() != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestTheRelaySaysItsKeyAndBecomesTheProxy(t *testing.T) {
	dir := t.TempDir()
	key, known, proxy := filepath.Join(dir, "ssh_key"), filepath.Join(dir, "known_hosts"), filepath.Join(dir, "proxy")
	require.NoError(t, os.WriteFile(key, []byte("secret\n"), 0o600))
	require.NoError(t, os.WriteFile(known, []byte("* ssh-rsa AAAA\n"), 0o600))
	programtest.Write(t, proxy, "#!/bin/sh\necho \"$@\"; cat\n")
	args := []string{
		RelayWord,
		"-oUser=robot",
		"-oIdentityFile=" + key,
		"-oStrictHostKeyChecking=yes",
		"-oUserKnownHostsFile=" + known,
		"-oGlobalKnownHostsFile=" + known,
		`-oProxyCommand="` + proxy + `" "-proxy" "/tmp/fdpass"`,
		"condor-job.node",
	}
	c := exec.CommandContext(t.Context(), os.Args[0], args...)
	c.Stdin = strings.NewReader("the connection\n")
	out, err := c.Output()
	require.NoError(t, err)
	first, rest, _ := strings.Cut(string(out), "\n")
	var relay schedd.Relay
	require.NoError(t, json.Unmarshal([]byte(first), &relay))
	require.Equal(t, schedd.Relay{User: "robot", Key: "secret\n", KnownHosts: "* ssh-rsa AAAA\n"}, relay)
	require.Equal(t, "-proxy /tmp/fdpass\nthe connection\n", rest)

	out, err = exec.CommandContext(t.Context(), os.Args[0], RelayWord, "-oUser=robot").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "condor_ssh_to_job starts this instead of ssh")
}

// A shell stands for condor_ssh_to_job, which dies with htcd; the connection stays open, and the proxy waits.
func TestTheRelayEndsWithTheToolThatHasStartedIt(t *testing.T) {
	dir := t.TempDir()
	key, proxy := filepath.Join(dir, "key"), filepath.Join(dir, "proxy")
	require.NoError(t, os.WriteFile(key, []byte("secret\n"), 0o600))
	programtest.Write(t, proxy, "#!/bin/sh\necho begun; exec sleep 3600\n")
	c := exec.CommandContext(
		t.Context(),
		"sh",
		"-c",
		`"$@"; :`,
		"sh",
		os.Args[0],
		RelayWord,
		"-oUser=robot",
		"-oIdentityFile="+key,
		"-oUserKnownHostsFile="+key,
		"-oProxyCommand="+proxy,
	)
	in, err := c.StdinPipe()
	require.NoError(t, err)
	defer in.Close()
	out, writes, err := os.Pipe() // Wait does not close it
	require.NoError(t, err)
	defer out.Close()
	c.Stdout = writes
	require.NoError(t, c.Start())
	require.NoError(t, writes.Close())
	lines := bufio.NewReader(out)
	for _, want := range []string{"robot", "begun"} {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, line, want)
	}
	require.NoError(t, c.Process.Kill())
	require.Error(t, c.Wait())
	rest, err := io.ReadAll(lines) // until the relay and the proxy, which have it too, have ended
	require.NoError(t, err)
	require.Empty(t, rest)
}
