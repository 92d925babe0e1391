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

// Of 10 nodes two have failed.
func TestHtcdKilledWhileItResumesWorkflowsRunsNothingElseAgain(t *testing.T) {
	o := begin(t)
	client, err := v1alpha1.NewClient(trial.Config(t))
	require.NoError(t, err)
	workflows := client.Workflows(o.Namespace)
	ended := func(name string, attempt int) (w *v1alpha1.HTCWorkflow) {
		o.Eventually(func() bool {
			w, err = workflows.Get(t.Context(), name, metav1.GetOptions{})
			return err == nil && int(w.Status.Attempt) == attempt && w.Status.Phase.Terminal()
		}, func() string { return fmt.Sprintf("attempt %d of %s has not ended: %+v", attempt, name, w.Status) })
		return w
	}
	moments := []time.Duration{0, 150, 500, 1200, 3000}
	name := func(after time.Duration) string { return fmt.Sprintf("resumed-%d", after) }
	for _, after := range moments {
		text := fmt.Sprintf(
			`{apiVersion: htc.cern.ch/v1alpha1, kind: HTCWorkflow, metadata: {name: %s}, spec: {resume: FromFailure, sequences: {count: 5}, steps: [
			{name: first, job: {script: {image: centos, command: sh, source: "echo $jobid > part"}}},
			{name: second, pull: [{from: first, path: part}], job: {script: {image: centos, command: sh, source: "test $jobid != job_1 && test $jobid != job_3"}}}]}}`,
			name(after),
		)
		o.ApplyText(text)
	}
	for _, after := range moments {
		w := ended(name(after), 1)
		require.Equal(t, v1alpha1.NodeCounts{Total: 10, Done: 8, Failed: 2}, w.Status.Nodes)
	}
	for _, after := range moments {
		o.Kubectl(
			"patch",
			"htcworkflow",
			name(after),
			"--type=json",
			"-p",
			`[{"op": "replace", "path": "/spec/steps/1/job/script/source", "value": "test $(cat part) = $jobid"}]`,
		)
		time.Sleep(after * time.Millisecond) // the moment matters
		o.killHtcd()
		o.do(o.part("htcd").Start)
	}
	for _, after := range moments {
		w := ended(name(after), 2)
		require.Equal(t, v1alpha1.PhaseSucceeded, w.Status.Phase, name(after))
		require.Equal(t, v1alpha1.NodeCounts{Total: 10, Done: 10}, w.Status.Nodes, name(after))
		nodes := o.Condor("condor_history", fmt.Sprintf("HTCWorkflowUID =?= %q", w.UID), "HTCNode")
		require.Len(t, nodes, 12, "two ran again: %v", nodes)
	}
}
