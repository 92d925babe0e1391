package outage

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// To htcd, an older state of etcd is one without the HTCJobs created since.
func TestWhatAnOlderEtcdHasForgottenIsKept(t *testing.T) {
	o := begin(t)
	ctx := t.Context()
	names := []string{"ended"}
	o.Create("ended", "echo kept\n")
	o.Fetched("ended")
	inNamespace := fmt.Sprintf("HTCJobNamespace == %q", o.Namespace)
	o.Eventually(
		func() bool { return len(o.Condor("condor_q", inNamespace, "JobStatus")) == 0 },
		func() string { return "its job is still in the queue" },
	)
	for i := range 6 {
		names = append(names, fmt.Sprintf("running-%d", i))
		o.Create(names[i+1], "sleep 1000\n")
	}
	for _, name := range names[1:] {
		o.running(name)
	}
	rows := func(state string) string {
		return o.SQL(
			fmt.Sprintf(
				"SELECT count(*) FROM orphans JOIN runs USING (uid) WHERE namespace = '%s' AND %s",
				o.Namespace,
				state,
			),
		)
	}
	orphans := func(flags ...string) (found []string) {
		out, err := o.Lab.Run(
			ctx,
			"htcd",
			append([]string{"reconcile", "--once", "-o", "json", "--namespace", o.Namespace}, flags...)...)
		require.NoError(t, err)
		var report struct {
			Differences []struct{ Name, Is string }
		}
		require.NoError(t, json.Unmarshal([]byte(out), &report))
		for _, d := range report.Differences {
			if d.Is == "Orphan" {
				found = append(found, d.Name)
			}
		}
		slices.Sort(found)
		return found
	}

	o.do(o.part("htcd").Stop)
	back := o.etcd("", "get", o.key(names[1]), "--print-value-only")
	o.etcd("", "del", "--prefix", o.key(""))
	require.Empty(t, o.Kubectl("get", "htcjob", "-o", "name"))
	o.do(o.part("htcd").Start)

	o.Eventually(
		func() bool { return rows("remove = 0") == "7" },
		func() string { return "kept: " + rows("remove = 0") },
	)
	require.Len(t, o.Condor("condor_q", inNamespace, "JobStatus"), 6)
	require.Equal(t, names, orphans())
	require.Equal(t, names, orphans("--dry-run", "--remove-orphans"))
	require.Contains(t, o.log(), "--remove-orphans")

	// A namesake neither runs beside it nor replaces its output.
	o.Create("ended", "echo again\n")
	o.says("ended", v1alpha1.ConditionSubmitted, "OrphansKept")
	require.NoError(t, o.Jobs.Delete(ctx, "ended", metav1.DeleteOptions{}))
	kept := o.Lab.Path("htcd", "data", "out", o.Namespace, "ended", "1", "0", "_condor_stdout")
	text, err := o.Lab.RunAs(ctx, "root", "cat", kept)
	require.NoError(t, err)
	require.Equal(t, "kept\n", text)

	// The newer state again: the same object continues.
	o.etcd(back, "put", o.key(names[1]))
	o.Eventually(
		func() bool { return !slices.Contains(orphans(), names[1]) },
		func() string { return "still an orphan" },
	)
	require.Len(t, orphans(), 6)
	o.Phase(names[1], v1alpha1.PhaseRunning)

	require.Len(t, orphans("--remove-orphans"), 6)
	left := []string{}
	o.Eventually(func() bool {
		left = o.Condor("condor_q", inNamespace, "JobStatus")
		return len(left) == 1
	}, func() string { return fmt.Sprint("left: ", left) })
	o.Eventually(
		func() bool { return rows("remove = 1") == "0" },
		func() string { return "not removed: " + rows("remove = 1") },
	)
	require.Len(t, o.Condor("condor_q", trial.Tagged(o.Get(names[1])), "JobStatus"), 1)
	o.gone()
	_, err = o.Lab.RunAs(ctx, "root", "cat", kept)
	require.Error(t, err)
}

// key returns the etcd key of an HTCJob of the test; without a name, their common prefix.
func (o outage) key(name string) string {
	return path.Join("/registry", v1alpha1.GroupVersion.Group, "htcjobs", o.Namespace) + "/" + name
}

// etcd runs etcdctl and returns what it prints.
func (o outage) etcd(input string, args ...string) string {
	o.T.Helper()
	args = append(
		[]string{"as", "root", "etcdctl", fmt.Sprintf("--endpoints=http://127.0.0.1:%d", o.status("etcd").Port)},
		args...)
	out, err := o.Lab.RunInput(context.WithoutCancel(o.T.Context()), input, "lab", args...)
	require.NoError(o.T, err)
	return out
}
