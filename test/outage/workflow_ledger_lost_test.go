package outage

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// A backup knows the first of the DAGs of one workflow, and nothing of three others.
func TestWorkflowsThatTheLedgerHasLostComeBack(t *testing.T) {
	o := begin(t)
	client, err := v1alpha1.NewClient(trial.Config(t))
	require.NoError(t, err)
	wait, end := o.Gate()
	apply := func(name, first, all string) {
		text := fmt.Sprintf(
			`{apiVersion: htc.cern.ch/v1alpha1, kind: HTCWorkflow, metadata: {name: %s}, spec: {sequences: {count: 3}, steps: [
			{name: each, job: {script: {image: centos, command: sh, source: %q}}},
			{name: all, pairing: All, job: {script: {image: centos, command: sh, source: %q}}},
			{name: after, needs: [all], job: {script: {image: centos, command: sh, source: "true"}}}],
			finally: {name: report, job: {script: {image: centos, command: sh, source: "true"}}}}}`,
			name,
			first+"test $jobid != job_1",
			all+"true",
		)
		o.ApplyText(text)
	}
	until := func(name, wanted string, is func(v1alpha1.HTCWorkflowStatus) bool) *v1alpha1.HTCWorkflow {
		var w *v1alpha1.HTCWorkflow
		o.Eventually(func() bool {
			w, err = client.Workflows(o.Namespace).Get(t.Context(), name, metav1.GetOptions{})
			return err == nil && is(w.Status)
		}, func() string { return fmt.Sprintf("%s is not %s: %+v", name, wanted, w.Status) })
		return w
	}
	fetched := func(s v1alpha1.HTCWorkflowStatus) bool {
		return s.Phase.Terminal() && meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionOutputFetched)
	}
	inSecond := func(s v1alpha1.HTCWorkflowStatus) bool { return len(s.JobID) == 2 && s.Nodes.Running == 1 }
	waitFirst, endFirst := o.Gate()
	apply("older", waitFirst, wait)
	until("older", "running", func(s v1alpha1.HTCWorkflowStatus) bool { return s.Nodes.Running > 0 })
	o.do(o.part("htcd").Stop)
	backup := o.ledgerFiles()
	o.do(o.part("htcd").Start)
	endFirst()

	apply("ended", "", "")
	apply("second", "", wait)
	before := map[string]v1alpha1.HTCWorkflowStatus{"ended": until("ended", "fetched", fetched).Status}
	before["second"] = until("second", "in its second DAG", inSecond).Status
	before["older"] = until("older", "in its second DAG", inSecond).Status
	apply("first", wait, "")
	before["first"] = until(
		"first",
		"running",
		func(s v1alpha1.HTCWorkflowStatus) bool { return s.Nodes.Running > 0 },
	).Status

	o.do(o.part("htcd").Stop)
	o.putBack(backup)
	o.do(o.part("htcd").Start)
	end()

	require.Equal(t, before["ended"], until("ended", "as it was", fetched).Status)
	for name, was := range before {
		is := until(name, "ended", fetched)
		require.Equal(t, was.JobID, is.Status.JobID[:len(was.JobID)], name)
		require.Len(t, is.Status.JobID, 3, "%s: each, all and after, report", name)
		require.Equal(t, before["ended"].Nodes, is.Status.Nodes, name)
		require.Equal(t, v1alpha1.SequenceCounts{Total: 3, Succeeded: 2, Failed: 1}, is.Status.Sequences, name)
		require.Len(t, is.Status.Failures, 1, name)
		for tag, jobs := range map[string]int{trial.Tagged(&v1alpha1.HTCJob{ObjectMeta: is.ObjectMeta}): 3, fmt.Sprintf("HTCWorkflowUID =?= %q", is.UID): 7} {
			require.Len(t, o.Ads(tag, "ClusterId"), jobs, "%s: %s", name, tag)
		}
	}

	reconcile := func() string {
		out, err := o.Lab.Run(t.Context(), "htcd", "reconcile", "--once", "--namespace", o.Namespace)
		require.NoError(t, err)
		return out
	}
	require.Equal(
		t,
		"30 jobs checked, nothing differs\n",
		reconcile(),
		"ten of each workflow but the one that had ended",
	)
	o.SQL(
		fmt.Sprintf(
			"UPDATE nodes SET status = 7 WHERE node = 2 AND run = (SELECT r.id FROM runs r WHERE r.namespace = '%s' AND r.name = 'second' AND r.attempt = 2)",
			o.Namespace,
		),
	)
	require.Regexp(
		t,
		`/second +\d+\.0 +Failed \(exit code 0\) +Succeeded +node 2 of DAG 2 \(all\): condor_history: JobStatus 4 \(Completed\), exit code 0 +yes\n30 jobs checked, 1 differs, 1 repaired\n$`,
		reconcile(),
	)
	require.Equal(t, "30 jobs checked, nothing differs\n", reconcile())
}
