package outage

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

// The Secret in Kubernetes is right all the time: with --credential-dir, only the files count.
func TestAnAccountInFilesIsFollowed(t *testing.T) {
	running, err := lab.Find()
	require.NoError(t, err)
	dir := running.Path("htcd", "credential")
	info, err := os.Stat(running.Path("htcd", "data"))
	require.NoError(t, err)
	htcd := info.Sys().(*syscall.Stat_t)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	put := func(name, content string) { // as an agent does
		next := filepath.Join(dir, "."+name)
		require.NoError(t, os.WriteFile(next, []byte(content), 0o600))
		require.NoError(t, os.Chown(next, int(htcd.Uid), int(htcd.Gid)))
		require.NoError(t, os.Rename(next, filepath.Join(dir, name)))
	}
	require.NoError(t, os.Chown(dir, int(htcd.Uid), int(htcd.Gid)))
	put("username", "robot\n")
	put("password", parts.Passwords["robot"])
	o := begin(t, "--credential-dir="+dir)
	usable := `htcd_secret_usable{secret="` + dir + `"}`
	o.metric(usable, "1")
	o.Create("runs", "until [ -e stop ]; do sleep 1; [ $((i = i + 1)) -gt 600 ] && exit 9; done\n", trial.Queue(2))
	o.running("runs")

	put("password", "not it")
	require.Contains(t, o.says("runs", v1alpha1.ConditionCredentials, "BadPassword"), "Password incorrect")
	o.metric(usable, "0")
	o.Create("waits", "exit 0\n")
	o.says("waits", v1alpha1.ConditionCredentials, "BadPassword")
	message, _ := o.doctor("ticket", "--credential-dir="+dir)
	require.Contains(t, message, "Password incorrect")

	require.NoError(t, os.Remove(filepath.Join(dir, "password")))
	require.Contains(t, o.says("waits", v1alpha1.ConditionCredentials, "InvalidCredential"), "password")
	require.NoError(t, os.Remove(filepath.Join(dir, "username")))
	require.Contains(t, o.says("waits", v1alpha1.ConditionCredentials, "SecretMissing"), dir)

	put("username", "robot")
	put("password", parts.Passwords["robot"])
	o.metric(usable, "1")
	o.Until("runs", "with credentials", func(job *v1alpha1.HTCJob) bool {
		return o.Condition(job, v1alpha1.ConditionCredentials).Status == metav1.ConditionTrue
	})
	o.succeeded("waits")
	o.running("runs")
	o.once(o.Get("runs"))
	o.gone()
}
