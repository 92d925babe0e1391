package outage

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// slowCredentials is HTCondor's configuration at a site where condor_submit waits for a program when a job asks for credentials.
func slowCredentials(t *testing.T) string {
	t.Helper()
	running := trial.New(t).Lab
	usual, err := os.ReadFile(running.Path("condor", "client.conf"))
	require.NoError(t, err)
	producer, config := running.Path("run", "slow-producer"), running.Path("run", "slow.conf")
	require.NoError(t, os.WriteFile(producer, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o755))
	require.NoError(t, os.WriteFile(config, fmt.Appendf(usual, "SEC_CREDENTIAL_PRODUCER = %s\n", producer), 0o644))
	return config
}

func TestADeadlineOfOneUsersSubmissionIsNobodyElsesOutage(t *testing.T) {
	o := begin(t, "--command-timeout=5s", "--condor-config="+slowCredentials(t))
	o.Create("other", "sleep 1000\n")
	o.running("other")
	before := o.Get("other").Status
	o.Create("slow", "exit 0\n", func(job *v1alpha1.HTCJob) { job.Spec.HTCOpts = "MY.SendCredential = True\n" })
	o.says("slow", v1alpha1.ConditionSubmitted, "Timeout")
	reachable := func(job *v1alpha1.HTCJob) *metav1.Condition {
		return meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionBackendReachable)
	}
	require.Equal(t, metav1.ConditionTrue, reachable(o.Get("slow")).Status, "the schedd answers")
	require.Equal(t, meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionBackendReachable), reachable(o.Get("other")))

	o.Create("new", "exit 0\n")
	o.succeeded("new")
	o.gone()
}
