package outage

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// A condor_submit of 500 takes about a second: staging, the cluster, its files. htcd alone is killed, not its children:
// they must end by themselves.
func TestHtcdKilledInTheMiddleOfASubmitLeavesOneCluster(t *testing.T) {
	o := begin(t, "--identity=killed") // a restarted pod, too, has the name of the one before
	var names []string
	for _, after := range []time.Duration{100, 300, 600, 900} {
		name := fmt.Sprintf("killed-after-%d", after)
		names = append(names, name)
		job := o.Create(name, "exit 0\n", trial.Queue(500), never)
		// From the moment at which the sandbox is complete.
		o.Eventually(func() bool {
			_, err := os.Stat(o.Lab.Path("htcd", "data", "staging", string(job.UID)+"-1", "job.sub"))
			return err == nil
		}, func() string { return "never staged" })
		time.Sleep(after * time.Millisecond) // the moment is the matter
		pid := o.status("htcd").Pid
		_, err := o.Lab.RunAs(t.Context(), "root", "kill", "-9", strconv.Itoa(pid))
		require.NoError(t, err)
		o.Eventually(func() bool { return o.status("htcd").Pid == 0 }, func() string { return "htcd did not die" })
		o.Eventually(func() bool { return len(o.submits()) == 0 },
			func() string { return fmt.Sprintf("htcd is dead, and these go on: %v", o.submits()) })
		o.do(o.part("htcd").Start)
	}
	for _, name := range names {
		o.once(o.Phase(name, v1alpha1.PhaseIdle))
	}
	o.gone()
}

// submits are the processes that run in a staging directory of this lab.
func (o outage) submits() []string {
	o.T.Helper()
	directories, err := filepath.Glob("/proc/[0-9]*/cwd")
	require.NoError(o.T, err)
	var found []string
	for _, cwd := range directories {
		if to, err := os.Readlink(cwd); err == nil && strings.HasPrefix(to, o.Lab.Path("htcd", "data", "staging")) {
			found = append(found, cwd)
		}
	}
	return found
}
