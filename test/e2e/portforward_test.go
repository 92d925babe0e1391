package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/test/trial"
)

// TestAPortOfARunningJobIsReachedAndItsRunIsRemembered deletes the HTCJob at the end.
func TestAPortOfARunningJobIsReachedAndItsRunIsRemembered(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := free.Addr().(*net.TCPAddr).Port
	require.NoError(t, free.Close())
	b.Create(
		"web",
		fmt.Sprintf("echo hello > index.html; exec /bin/busybox httpd -f -p 127.0.0.1:%d", port),
		trial.Unpacked,
	)

	forward := exec.CommandContext(
		t.Context(),
		b.Lab.Bin("htcd"),
		"port-forward",
		"web/0",
		fmt.Sprint("0:", port),
		"-n",
		b.Namespace,
	)
	said, err := forward.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, forward.Start())
	t.Cleanup(func() {
		_ = forward.Process.Kill()
		_ = forward.Wait()
	})
	line, err := bufio.NewReader(said).ReadString('\n')
	require.NoError(t, err)
	url, _, _ := strings.Cut(line, " ")
	var page string
	b.Eventually(func() bool { // the job must begin, and its server
		response, err := http.Get(url + "/index.html")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		page = string(text)
		return response.StatusCode == http.StatusOK
	}, func() string { return "the job's server is not reached: " + page })
	require.Equal(t, "hello\n", page)
	b.Event("web", "connects to ports of job")

	b.Kubectl("delete", "htcjob", "web")
	out, err := b.Lab.Run(t.Context(), "htcd", "history", "-o", "json", "-n", b.Namespace)
	require.NoError(t, err)
	var past struct{ Name, State, Deleted string }
	require.NoError(t, json.Unmarshal([]byte(out), &past), out)
	require.Equal(t, []string{"web", "Removed"}, []string{past.Name, past.State})
	require.NotEmpty(t, past.Deleted)
}
