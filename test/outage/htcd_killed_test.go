package outage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// A condor_submit of 500 takes about a second: staging, the cluster, its files. Only htcd is killed, not its children:
// they must end by themselves.
func TestHtcdKilledInTheMiddleOfASubmitLeavesOneCluster(t *testing.T) {
	o := begin(t)
	var names []string
	for _, after := range []time.Duration{100, 600} {
		name := fmt.Sprintf("killed-after-%d", after)
		names = append(names, name)
		job := o.Create(name, "exit 0\n", trial.Queue(500), never)
		o.staged(job, 1)
		time.Sleep(after * time.Millisecond) // the moment matters
		o.killHtcd()
		o.Eventually(func() bool { return len(o.processes("staging")) == 0 },
			func() string { return fmt.Sprintf("htcd is dead, and these go on: %v", o.processes("staging")) })
		o.do(o.part("htcd").Start)
	}
	for _, name := range names {
		o.once(o.Phase(name, v1alpha1.PhaseIdle))
	}
	o.gone()
}

// Each htcd lives for less than a Lease's duration.
func TestHtcdKilledEveryFewSecondsMakesProgress(t *testing.T) {
	o := begin(t)
	lease := func() string {
		return o.Kubectl(
			"get",
			"lease",
			"htcd",
			"-n",
			"default",
			"-o",
			"jsonpath={.spec.holderIdentity} {.spec.acquireTime} {.spec.leaseTransitions}",
		)
	}
	before := lease()
	var names []string
	sent := func(name string) bool { return o.Get(name).Status.ClusterID > 0 }
	for i := 0; i < 6 || !slices.ContainsFunc(names, sent); i++ {
		require.Less(t, i, 30, "nothing was sent in all that time")
		o.killHtcd()
		name := fmt.Sprintf("killed-%d", i)
		names = append(names, name)
		o.Create(name, "exit 0\n", trial.Queue(int32(i%2+1)))
		go func() { _ = o.part("htcd").Start(context.WithoutCancel(t.Context())) }() // it may be killed before it is ready
		// A slow machine needs more, but the Lease must not run out.
		time.Sleep(time.Duration(min(5+i/3, 12)) * time.Second)
	}
	o.killHtcd()
	require.Equal(t, before, lease(), "each took the Lease as its own, before it had run out")
	o.do(o.part("htcd").Start)
	o.succeeded(names...)
	o.gone()
}

// staged waits until the sandbox of an attempt is complete, from which on it is sent. It is removed as soon as HTCondor
// has the files, so the directory is looked at every few milliseconds, and the status says when that moment has been
// missed.
func (o outage) staged(job *v1alpha1.HTCJob, attempt int) {
	o.T.Helper()
	file := o.Lab.Path("htcd", "data", "staging", fmt.Sprintf("%s-%d", job.UID, attempt), "job.sub")
	o.Eventually(func() bool {
		for range 200 {
			if _, err := os.Stat(file); err == nil {
				return true
			}
			time.Sleep(2 * time.Millisecond)
		}
		status := o.Get(job.Name).Status
		return status.Attempt == int32(attempt) && status.ClusterID > 0
	}, func() string { return "never staged" })
}

// killHtcd kills only htcd and returns when it is dead.
func (o outage) killHtcd() {
	o.T.Helper()
	o.Eventually(func() bool { return o.status("htcd").Pid != 0 }, func() string { return "htcd was not started" })
	_, err := o.Lab.RunAs(o.T.Context(), "root", "kill", "-9", strconv.Itoa(o.status("htcd").Pid))
	require.NoError(o.T, err)
	o.Eventually(func() bool { return o.status("htcd").Pid == 0 }, func() string { return "htcd did not die" })
}

// processes returns those that run in a directory of htcd's data.
func (o outage) processes(in string) []string {
	o.T.Helper()
	directories, err := filepath.Glob("/proc/[0-9]*/cwd")
	require.NoError(o.T, err)
	var found []string
	for _, cwd := range directories {
		if to, err := os.Readlink(cwd); err == nil && strings.HasPrefix(to, o.Lab.Path("htcd", "data", in)) {
			found = append(found, cwd)
		}
	}
	return found
}
