package schedd_test

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/submit"
)

// leaveBehind leaves a process that nothing ends but SIGKILL and that goes on changing what is collected, and files by
// which wget could be led.
const leaveBehind = `
readlink /proc/self/ns/pid
for name in .wget .wgetrc "$HTC_CREDENTIALS/.wget"; do printf 'use_askpass = %s/evil\n' "$PWD" >"$name"; done
printf '#!/bin/sh\necho ran >ran\n' >evil; chmod 755 evil
(trap '' HUP TERM; while :; do ln -sf /etc/passwd result; rm -f result; echo changed >result; done) </dev/null >/dev/null 2>&1 &
echo $! >left
echo whole >kept
until grep -q second "$HTC_CREDENTIALS/atlas"; do sleep 0.2; done
exit 7
`

// A node may have wget alone, and an apptainer whose administrator allows no PID namespaces.
func TestANodeWithoutCurlAndPIDNamespaces(t *testing.T) {
	b := newBench(t)
	dir := t.TempDir()
	b.d.Image, b.d.Source = filepath.Join(dir, "image.sif"), leaveBehind
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer pull-token" {
			_, _ = fmt.Fprintf(w, "htcd1 1 d1\natlas %s\nend\n", base64.StdEncoding.EncodeToString([]byte("second\n")))
			return
		}
		b.receive(w, r)
	}))
	t.Cleanup(server.Close)
	b.d.CallbackURL, b.d.PullURL = server.URL, server.URL+"/credentials/u/1"
	b.d.CallbackCA = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	b.d.Credentials = []submit.Credential{{Name: "atlas", Content: "first\n"}}

	programs := filepath.Join(dir, "bin")
	require.NoError(t, os.Mkdir(programs, 0o700))
	for _, from := range []string{"/usr/bin", "/usr/sbin"} {
		entries, err := os.ReadDir(from)
		require.NoError(t, err)
		for _, entry := range entries {
			if entry.Name() != "curl" && entry.Name() != "apptainer" && entry.Name() != "singularity" {
				_ = os.Symlink(filepath.Join(from, entry.Name()), filepath.Join(programs, entry.Name()))
			}
		}
	}
	configuration, err := os.ReadFile("/etc/apptainer/apptainer.conf")
	require.NoError(t, err)
	require.Contains(t, string(configuration), "\nallow pid ns = yes\n")
	require.NoError(
		t,
		os.WriteFile(
			filepath.Join(dir, "apptainer.conf"),
			[]byte(strings.Replace(string(configuration), "\nallow pid ns = yes\n", "\nallow pid ns = no\n", 1)),
			0o600,
		),
	)
	require.NoError(
		t,
		os.WriteFile(
			filepath.Join(programs, "apptainer"),
			fmt.Appendf(nil, "#!/bin/sh\nexec /usr/bin/apptainer --config %s/apptainer.conf \"$@\"\n", dir),
			0o700,
		),
	)

	scratch := filepath.Join(t.TempDir(), "scratch")
	require.NoError(t, os.Mkdir(scratch, 0o700))
	require.NoError(t, stage(scratch, b.d))
	require.NoError(t, os.WriteFile(filepath.Join(scratch, "token"), []byte(token+"\npull-token\n"), 0o600))
	job := exec.CommandContext(t.Context(), "/bin/sh", "job.sh", "0")
	job.Dir, job.Env = scratch, append(pullImage(t, b, dir), "_CONDOR_SCRATCH_DIR="+scratch, "PATH="+programs)
	stdout, err := job.Output()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "%s", stdout)
	require.Equal(t, 7, exit.ExitCode(), "%s%s", stdout, exit.Stderr)
	outside, err := os.Readlink("/proc/self/ns/pid")
	require.NoError(t, err)
	require.Equal(t, outside, strings.TrimSpace(string(stdout)), "the container has no PID namespace")

	events := b.received()
	require.Len(t, events, 1, "%s", exit.Stderr)
	require.Equal(t, "Bearer "+token, events[0].authorization)
	require.Equal(t, 7, events[0].Data.Retcode)
	text, err := os.ReadFile(filepath.Join(scratch, "kept"))
	require.NoError(t, err)
	require.Equal(t, "whole\n", string(text))
	require.NoFileExists(t, filepath.Join(scratch, "ran"))
	if info, err := os.Lstat(filepath.Join(scratch, "result")); err == nil {
		require.True(t, info.Mode().IsRegular(), info.Mode().String())
	}
	left, err := os.ReadFile(filepath.Join(scratch, "left"))
	require.NoError(t, err)
	var pid int
	_, err = fmt.Sscan(string(left), &pid)
	require.NoError(t, err)
	state, _ := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid)) // none: it has ended
	require.Empty(t, state, "what the script has left behind goes on")
}
