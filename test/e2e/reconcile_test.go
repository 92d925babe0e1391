package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// report is what -o json prints.
type report struct {
	Differences []difference `json:"differences"`
	Checked     int          `json:"checked"`
}

type difference struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	JobID     string `json:"jobid"`
	Was       string `json:"was"`
	Is        string `json:"is"`
	Evidence  string `json:"evidence"`
	Repaired  bool   `json:"repaired"`
}

// repairs is a bench where only htcd reconcile finds out what callbacks did not report.
type repairs struct{ *trial.Bench }

// newRepairs disables callbacks and the schedule. All tests share htcd and the callbacks, so such tests run alone.
func newRepairs(t *testing.T) repairs {
	t.Helper()
	b := repairs{trial.New(t)}
	htcd, callbacks := b.Lab.Part("htcd"), b.Lab.Part("receiver-net")
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		require.NoError(t, callbacks.Start(ctx))
		require.NoError(t, htcd.Restart(ctx))
	})
	require.NoError(
		t,
		htcd.Restart(t.Context(), "--reconcile-schedule=@yearly", "--refresh=1h", "--callback-deadline=2s"),
	)
	require.NoError(t, callbacks.Stop(t.Context()))
	return b
}

// reconcile runs htcd reconcile --once for the test's namespace and returns its output and exit code.
func (b repairs) reconcile(t *testing.T, args ...string) (string, int) {
	t.Helper()
	out, err := b.Lab.Run(
		t.Context(),
		"htcd",
		append([]string{"reconcile", "--once", "--namespace", b.Namespace}, args...)...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return out + err.Error(), exit.ExitCode()
	}
	require.NoError(t, err)
	return out, 0
}

// report is reconcile in JSON.
func (b repairs) report(t *testing.T, args ...string) report {
	t.Helper()
	out, code := b.reconcile(t, append(args, "-o", "json")...)
	require.Zero(t, code, out)
	var r report
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	return r
}

// rows returns the statuses in the ledger, in the order of the procs.
func (b repairs) rows(t *testing.T, name string) string {
	t.Helper()
	return b.SQL(
		fmt.Sprintf(`SELECT group_concat(status, ' ') FROM (SELECT status FROM htcjobs JOIN runs ON runs.id = run
		WHERE namespace = '%s' AND name = '%s' ORDER BY htcjobs.proc)`, b.Namespace, name),
	)
}

func (b repairs) completed(t *testing.T, name string, n int) *v1alpha1.HTCJob {
	t.Helper()
	job := b.Until(name, "submitted", func(job *v1alpha1.HTCJob) bool { return job.Status.ClusterID > 0 })
	b.Eventually(func() bool {
		return len(b.Condor("condor_q", trial.Tagged(job)+" && JobStatus == 4", "JobStatus")) == n
	},
		func() string { return name + " never completed in the queue" })
	return job
}

// Nobody asks HTCondor: the jobs themselves say that they run.
func TestARunningJobAndNodeAreKnownByTheirOwnReports(t *testing.T) {
	b := trial.New(t)
	htcd := b.Lab.Part("htcd")
	t.Cleanup(func() { require.NoError(t, htcd.Restart(context.WithoutCancel(t.Context()))) })
	require.NoError(t, htcd.Restart(t.Context(), "--reconcile-schedule=@yearly", "--refresh=1h"))
	wait, open := b.Gate()
	b.Script("job", wait+"exit 3\n")
	flow := flowIn(
		b,
		"flow",
		"  steps: [{name: one, job: {script: {image: centos, command: bash, source: '"+wait+"'}}}]",
	)
	b.Phase("job", v1alpha1.PhaseRunning)
	flow.until("running", func(w *v1alpha1.HTCWorkflow) bool { return w.Status.Phase == v1alpha1.PhaseRunning })
	open()
	require.Equal(t, v1alpha1.PhaseFailed, b.Ended("job").Status.Phase)
	require.Equal(t, v1alpha1.PhaseSucceeded, flow.ended().Status.Phase)
}

func TestReconcileOnceShowsAndRepairs(t *testing.T) {
	b := newRepairs(t)
	b.Script("lost", "exit $1\n", trial.Queue(3))
	job := b.completed(t, "lost", 3)
	id := func(proc int) string { return fmt.Sprintf("%d.%d", job.Status.ClusterID, proc) }
	row := func(proc int, was, is string, repaired bool) difference {
		return difference{Namespace: b.Namespace, Name: "lost", JobID: id(proc), Was: was, Is: is,
			Evidence: fmt.Sprintf("condor_q: JobStatus 4 (Completed), exit code %d", proc), Repaired: repaired}
	}
	lost := func(repaired bool) []difference {
		return []difference{
			row(0, "Active", "Succeeded", repaired),
			row(1, "Active", "Failed (exit code 1)", repaired),
			row(2, "Active", "Failed (exit code 2)", repaired),
		}
	}
	handBreaks := func(t *testing.T, proc int, status int) {
		b.SQL(
			fmt.Sprintf("UPDATE htcjobs SET status = %d WHERE htcjobName = 'lost' AND jobId = '%s'", status, id(proc)),
		)
	}

	t.Run("a dry run shows what the callbacks did not say, and changes nothing", func(t *testing.T) {
		before := b.Get("lost")
		require.EqualValues(t, 3, before.Status.Active)
		require.Equal(t, report{Checked: 3, Differences: lost(false)}, b.report(t, "--dry-run"))
		table, code := b.reconcile(t, "--dry-run")
		require.Zero(t, code)
		require.Regexp(t, `(?m)^NAMESPACE/NAME +JOB +WAS +IS +EVIDENCE +REPAIRED$`, table)
		require.Regexp(
			t,
			`(?m)^`+b.Namespace+`/lost +`+id(
				1,
			)+` +Active +Failed \(exit code 1\) +condor_q: JobStatus 4 \(Completed\), exit code 1 +dry run$`,
			table,
		)
		require.Contains(t, table, "3 jobs checked, 3 differ; nothing was changed\n")
		require.Equal(t, before.Status, b.Get("lost").Status)
		require.Equal(t, "1 1 1", b.rows(t, "lost"))
	})
	t.Run("it repairs, and the status is right when it returns", func(t *testing.T) {
		require.Equal(t, report{Checked: 3, Differences: lost(true)}, b.report(t))
		status := b.Get("lost").Status
		require.Equal(t, v1alpha1.PhaseFailed, status.Phase)
		require.EqualValues(t, []int32{0, 1, 2}, []int32{status.Active, status.Succeeded, status.Failed})
		require.Equal(t, "4 7 7", b.rows(t, "lost"))
	})
	t.Run("then nothing differs", func(t *testing.T) {
		out, code := b.reconcile(t)
		require.Zero(t, code)
		require.Equal(t, "3 jobs checked, nothing differs\n", out)
	})
	t.Run("a name keeps it to one HTCJob", func(t *testing.T) {
		out, code := b.reconcile(t, "--name", "another")
		require.Zero(t, code)
		require.Equal(t, "0 jobs checked, nothing differs\n", out)
	})
	t.Run(
		"a row that somebody's hand has changed is found and repaired, of a job that has left the queue",
		func(t *testing.T) {
			b.Eventually(func() bool { return len(b.Condor("condor_history", trial.Tagged(job), "ExitCode")) == 3 },
				func() string { return "the jobs never reached the history" })
			handBreaks(t, 0, 7)
			want := row(0, "Failed (exit code 0)", "Succeeded", true)
			want.Evidence = "condor_history: JobStatus 4 (Completed), exit code 0"
			require.Equal(t, []difference{want}, b.report(t, "--name", "lost").Differences)
			require.Equal(t, "4 7 7", b.rows(t, "lost"))
		},
	)
	t.Run("a running job that somebody's hand has ended is open again", func(t *testing.T) {
		b.Script("long", "sleep 1000\n")
		long := b.Until("long", "submitted", func(job *v1alpha1.HTCJob) bool { return job.Status.ClusterID > 0 })
		b.Eventually(func() bool {
			return len(b.Condor("condor_q", trial.Tagged(long)+" && JobStatus == 2", "JobStatus")) == 1
		},
			func() string { return "long never ran" })
		require.Equal(t, "Running", b.report(t, "--name", "long").Differences[0].Is)
		b.SQL("UPDATE htcjobs SET status = 4 WHERE jobId = '" + long.Status.JobID[0] + "'")
		found := b.report(t, "--name", "long").Differences
		require.Len(t, found, 1)
		require.Equal(t, []string{"Succeeded", "Running"}, []string{found[0].Was, found[0].Is})
		require.Equal(t, v1alpha1.PhaseRunning, b.Get("long").Status.Phase)
	})
	t.Run("a mistake is exit code 2", func(t *testing.T) {
		out, code := b.reconcile(t, "-o", "yaml")
		require.Equal(t, 2, code)
		require.Contains(t, out, "want table or json")
		_, err := b.Lab.Run(t.Context(), "htcd", "reconcile")
		require.ErrorContains(t, err, "exit status 2")
		require.ErrorContains(t, err, "--once")
	})
	t.Run("beside an htcd that works elsewhere it refuses, and names it", func(t *testing.T) {
		out, code := b.reconcile(t, "--control-socket=/dev/shm/htcd/nobody.sock")
		require.Equal(t, 1, code)
		require.Regexp(t, `\S+ is at work \(it holds the lease default/htcd\)`, out)
	})
}

func TestReconcileOnceWithoutAWorkingHtcd(t *testing.T) {
	b := newRepairs(t)
	b.Script("lost", "exit $1\n", trial.Queue(2))
	b.completed(t, "lost", 2)
	require.NoError(t, b.Lab.Part("htcd").Stop(t.Context()))
	t.Cleanup(func() { require.NoError(t, b.Lab.Part("htcd").Start(context.WithoutCancel(t.Context()))) })

	before := b.Get("lost")
	require.Len(t, b.report(t, "--dry-run").Differences, 2)
	require.Equal(t, before.Status, b.Get("lost").Status)
	require.Equal(t, "1 1", b.rows(t, "lost"))

	found := b.report(t).Differences
	require.Len(t, found, 2)
	require.True(t, found[0].Repaired)
	right := b.Phase("lost", v1alpha1.PhaseFailed).Status
	require.Equal(t, "4 7", b.rows(t, "lost"))
	require.Empty(t, b.report(t).Differences)

	b.Kubectl(
		"patch",
		"htcjob",
		"lost",
		"--subresource=status",
		"--type=merge",
		"-p",
		`{"status":{"phase":"Succeeded","succeeded":2,"failed":0}}`,
	)
	want := difference{
		Namespace: b.Namespace,
		Name:      "lost",
		Was:       "phase=Succeeded succeeded=2 failed=0",
		Is:        "phase=Failed succeeded=1 failed=1",
		Evidence:  "the ledger says otherwise than .status",
	}
	require.Equal(t, []difference{want}, b.report(t, "--dry-run").Differences)
	want.Repaired = true
	require.Equal(t, []difference{want}, b.report(t).Differences)
	require.Equal(t, right, b.Get("lost").Status)

	require.NoError(t, b.Lab.Part("htcd").Start(t.Context()))
	require.Empty(t, b.report(t).Differences, "the Lease was given back, and htcd goes on with the same ledger")
}

func TestReconcileOnceConcludesNothingWithoutASchedd(t *testing.T) {
	b := newRepairs(t)
	b.Script("lost", "exit 0\n")
	b.completed(t, "lost", 1)
	schedd := b.Lab.Part("schedd")
	require.NoError(t, schedd.Stop(t.Context()))
	t.Cleanup(func() { require.NoError(t, schedd.Start(context.WithoutCancel(t.Context()))) })
	check := func() {
		t.Helper()
		out, code := b.reconcile(t)
		require.Equal(t, 1, code)
		require.Contains(t, out, "has no record of schedd")
		require.NotContains(t, out, "checked")
		require.Equal(t, "1", b.rows(t, "lost"))
		require.EqualValues(t, 1, b.Get("lost").Status.Active)
	}
	check()
	require.NoError(t, b.Lab.Part("htcd").Stop(t.Context()))
	check()
	require.NoError(t, schedd.Start(t.Context()))
	require.Len(t, b.report(t).Differences, 1)
}
