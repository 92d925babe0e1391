package outage

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// Only htcd is killed, not condor_ssh_to_job, its relay and its proxy: they must end by themselves, and HTCondor's sshd
// with them.
func TestHtcdKilledWhileACommandRunsInAJobLeavesNothing(t *testing.T) {
	o := begin(t)
	o.Create("busy", "sleep 600\n", trial.Unpacked)
	o.Phase("busy", v1alpha1.PhaseRunning)
	found := func(patterns ...string) (all []string) {
		for _, pattern := range patterns {
			some, err := filepath.Glob(pattern)
			require.NoError(t, err)
			all = append(all, some...)
		}
		return all
	}
	onTheNode := func(name ...string) []string {
		at := filepath.Join(name...)
		return found(
			o.Lab.Path("condor", "execute", "dir_*", at),
			o.Lab.Path("condor", "execute", "dir_*", "scratch", at),
		)
	}
	runs := func(script string) error {
		_, err := o.Lab.Run(t.Context(), "htcd", "exec", "busy", "-n", o.Namespace, "--", "sh", "-c", script)
		return err
	}
	var err error
	o.Eventually(
		func() bool { err = runs("true"); return err == nil },
		func() string { return fmt.Sprint("no container to run anything in: ", err) },
	)
	ended := make(chan error, 1)
	go func() { ended <- runs("touch begun; sleep 600") }()
	o.Eventually(
		func() bool { return len(onTheNode(".htcd", "job", "begun")) > 0 },
		func() string { return "no command has begun" },
	)
	require.NotEmpty(t, o.processes("ssh"))
	require.NotEmpty(t, onTheNode(".condor_ssh_to_job_*"), "the keys of the connection")
	o.killHtcd()
	require.Error(t, <-ended, "whoever waits for the command")
	o.Eventually(func() bool { return len(o.processes("ssh")) == 0 },
		func() string { return fmt.Sprintf("htcd is dead, and these go on: %v", o.processes("ssh")) })
	o.Eventually(func() bool { return len(onTheNode(".condor_ssh_to_job_*")) == 0 },
		func() string {
			return fmt.Sprintf("keys of a connection that has ended: %v", onTheNode(".condor_ssh_to_job_*"))
		})
	o.do(o.part("htcd").Start)
	o.Eventually(
		func() bool { return len(found(o.Lab.Path("htcd", "data", "ssh", "*"))) == 0 },
		func() string { return "keys of a connection are kept" },
	)
	o.once(o.Phase("busy", v1alpha1.PhaseRunning))
	o.gone()
}
