package outage

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

func TestWhatTheLedgerHasLostOfWorkflowsIsNotSentTwice(t *testing.T) {
	o := begin(t)
	client, err := v1alpha1.NewClient(trial.Config(t))
	require.NoError(t, err)
	apply := func(name, first, all string) {
		text := fmt.Sprintf(`{apiVersion: htc.cern.ch/v1alpha1, kind: HTCWorkflow, metadata: {name: %s}, spec: {sequences: {count: 2}, steps: [
			{name: each, job: {script: {image: centos, command: sh, source: %q}}},
			{name: all, pairing: All, job: {script: {image: centos, command: sh, source: %q}}}]}}`, name, first, all)
		_, err := o.Lab.RunInput(t.Context(), text, "kubectl", "-n", o.Namespace, "apply", "-f", "-")
		require.NoError(t, err)
	}
	until := func(name, wanted string, is func(v1alpha1.HTCWorkflowStatus) bool) *v1alpha1.HTCWorkflow {
		var w *v1alpha1.HTCWorkflow
		o.Eventually(func() bool {
			w, err = client.Workflows(o.Namespace).Get(t.Context(), name, metav1.GetOptions{})
			return err == nil && is(w.Status)
		}, func() string { return fmt.Sprintf("%s is not %s: %+v", name, wanted, w.Status) })
		return w
	}
	ended := func(s v1alpha1.HTCWorkflowStatus) bool { return s.Phase.Terminal() }
	apply("ended", "true", "true")
	apply("first", "sleep 40", "true")
	apply("second", "true", "sleep 1000")
	before := until("ended", "ended", func(s v1alpha1.HTCWorkflowStatus) bool {
		return ended(s) && meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionOutputFetched)
	})
	until("second", "in its second DAG", func(s v1alpha1.HTCWorkflowStatus) bool { return len(s.JobID) == 2 && s.Nodes.Running == 1 })
	until("first", "running", func(s v1alpha1.HTCWorkflowStatus) bool { return s.Nodes.Running == 2 })

	o.do(o.part("htcd").Stop)
	require.NoError(t, os.Remove(o.Lab.Ledger()))
	o.do(o.part("htcd").Start)

	blocked := until("second", "blocked", func(s v1alpha1.HTCWorkflowStatus) bool { return s.Reason == "LedgerLost" })
	adopted := until("first", "ended", ended)
	require.Equal(t, v1alpha1.NodeCounts{Total: 3, Done: 3}, adopted.Status.Nodes)
	require.Equal(t, before.Status, until("ended", "ended", ended).Status)
	for w, dags := range map[*v1alpha1.HTCWorkflow]int{before: 2, adopted: 2, blocked: 2} {
		tagged := trial.Tagged(&v1alpha1.HTCJob{ObjectMeta: w.ObjectMeta})
		require.Len(t, append(o.Condor("condor_q", tagged, "HTCJobAttempt"), o.Condor("condor_history", tagged, "HTCJobAttempt")...), dags, w.Name)
	}
	o.Kubectl("delete", "htcworkflow", "second", "--wait=false")
	o.Eventually(func() bool {
		_, err := client.Workflows(o.Namespace).Get(t.Context(), "second", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, func() string { return "second is still there" })
	require.Empty(t, o.Condor("condor_q", fmt.Sprintf("HTCWorkflowUID =?= %q", blocked.UID), "JobStatus"))
}
