package outage

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// Each workflow has two DAGs, so that htcd is also killed between them.
func TestHtcdKilledWhileItSendsWorkflowsLeavesOneOfEachDAG(t *testing.T) {
	o := begin(t)
	client, err := v1alpha1.NewClient(trial.Config(t))
	require.NoError(t, err)
	workflows := client.Workflows(o.Namespace)
	var names []string
	for _, after := range trial.Sample[time.Duration](3, 0, 200, 600, 1500, 4000) {
		name := fmt.Sprintf("killed-after-%d", after)
		names = append(names, name)
		text := fmt.Sprintf(
			`{apiVersion: htc.cern.ch/v1alpha1, kind: HTCWorkflow, metadata: {name: %s}, spec: {sequences: {count: 5}, steps: [
			{name: each, job: {script: {image: centos, command: sh, source: "echo $jobid > part"}, outputs: [{path: part}]}},
			{name: all, pairing: All, pull: [{from: each, path: part}], job: {script: {image: centos, command: sh, source: "test $(cat job_*/part | wc -l) = 5"}}}]}}`,
			name,
		)
		o.ApplyText(text)
		time.Sleep(after * time.Millisecond) // the moment matters
		o.killHtcd()
		o.do(o.part("htcd").Start)
	}
	for _, name := range names {
		var w *v1alpha1.HTCWorkflow
		o.Eventually(func() bool {
			w, err = workflows.Get(t.Context(), name, metav1.GetOptions{})
			return err == nil && w.Status.Phase.Terminal()
		}, func() string { return fmt.Sprintf("%s has not ended: %+v", name, w.Status) })
		require.Equal(t, v1alpha1.PhaseSucceeded, w.Status.Phase, name)
		require.Equal(t, v1alpha1.NodeCounts{Total: 6, Done: 6}, w.Status.Nodes, name)
		nodes := o.Condor("condor_history", fmt.Sprintf("HTCWorkflowUID =?= %q", w.UID), "HTCNode")
		require.Len(t, nodes, 6, "every node ran once: %v", nodes)
		// A submission that was cut short leaves a job that never starts, and is removed.
		ran := trial.Tagged(&v1alpha1.HTCJob{ObjectMeta: w.ObjectMeta}) + " && NumJobStarts > 0"
		dags := o.Ads(ran, "HTCJobAttempt")
		require.Len(t, dags, 2, "%v", dags)
	}
}
