package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

func TestWhatAnotherControllerRunsIsLeftAlone(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("other", "exit 0\n", func(job *v1alpha1.HTCJob) { job.Spec.ManagedBy = "example.org/other" })
	f := flowIn(
		b,
		"others",
		"  managedBy: example.org/other\n  steps: [{name: a, job: {script: {image: centos, command: bash, source: exit 0}}}]\n",
	)
	b.Script("named", "exit 0\n", func(job *v1alpha1.HTCJob) { job.Spec.ManagedBy = v1alpha1.Manager })
	b.Ended("named")

	other := b.Get("other")
	require.Equal(t, "NoStatus", other.Status.Reason)
	require.Empty(t, other.Finalizers)
	require.Empty(t, b.Ads(trial.Tagged(other)))
	w, err := f.get()
	require.NoError(t, err)
	require.Equal(t, "NoStatus", w.Status.Reason)
	require.Empty(t, w.Finalizers)
	_, err = b.Lab.Run(t.Context(), "htcd", "logs", "other", "-n", b.Namespace)
	require.ErrorContains(t, err, "HTCJob other is run by example.org/other")

	for change, refusal := range map[string]string{
		`{"spec": {"managedBy": "htc.cern.ch/htcd"}}`: "managedBy cannot change",
		`{"spec": {"managedBy": null}}`:               "managedBy cannot change",
		`{"spec": {"managedBy": "other"}}`:            "managedBy must be a domain and a path, such as example.org/controller",
	} {
		for _, object := range []string{"htcjob/other", "htcworkflow/others"} {
			_, err := b.Lab.Run(
				t.Context(),
				"kubectl",
				"-n",
				b.Namespace,
				"patch",
				object,
				"--type=merge",
				"-p",
				change,
			)
			require.ErrorContains(t, err, refusal, fmt.Sprint(object, change))
		}
	}
	b.Kubectl("delete", "htcjob/other", "htcworkflow/others", "--timeout="+trial.Patience.String())
}
