package e2e

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd/usage"
	"htc.cern.ch/htcd/test/trial"
)

func TestWhatJobsUseIsShownAgainstWhatTheyAskedFor(t *testing.T) {
	t.Parallel()
	c := commands{trial.New(t)}
	c.Script(
		"eats",
		"while [ ! -e stop ] && [ $1 = 1 ]; do sleep 1; done\n",
		trial.Queue(2),
		func(job *v1alpha1.HTCJob) {
			job.Spec.Resources = &v1alpha1.Resources{
				Memory: new(resource.MustParse("300Mi")),
				Disk:   new(resource.MustParse("2Gi")),
			}
		},
	)
	top := func() (report usage.Report) {
		require.NoError(t, json.Unmarshal([]byte(c.ends(0, "top", "eats", "-o", "json")), &report))
		return report
	}
	c.Until(
		"eats",
		"one runs, one has ended",
		func(job *v1alpha1.HTCJob) bool { return job.Status.Running == 1 && job.Status.Succeeded == 1 },
	)
	require.Nil(t, c.Get("eats").Status.Usage, "not every job has ended")
	c.Eventually(
		func() bool { r := top(); return r.Ended == 1 && r.Running == 1 && r.Memory != nil && r.Disk != nil },
		func() string { return c.ends(0, "top", "eats") },
	)
	report := top()
	require.Equal(t, 2, report.Jobs)
	require.NotNil(t, report.Asked)
	require.Empty(t, report.Unknown)
	require.Equal(t, "300Mi", report.Memory.Requested.String())
	table := c.ends(0, "top", "eats")
	for _, word := range []string{"jobs: 2, running: 1, ended: 1\n", "RESOURCE", "REQUESTED", "MEDIAN", "WORST", "JOB", "cpu", "memory", "300Mi", "disk", "2Gi"} {
		require.Contains(t, table, word)
	}

	_, err := c.Lab.Run(t.Context(), "condor_rm", "-constraint", trial.Tagged(c.Get("eats"))+" && ProcId == 1")
	require.NoError(t, err)
	job := c.Until("eats", "its usage", func(job *v1alpha1.HTCJob) bool { return job.Status.Usage != nil })
	require.EqualValues(t, 0, job.Status.Active)
	require.EqualValues(t, 2, job.Status.Usage.Jobs)
	require.Equal(t, "2Gi", job.Status.Usage.Disk.Requested.String())
	require.NotEmpty(t, job.Status.Usage.Advice)
	require.NotContains(t, job.Status.Usage.Advice, "disk:")
	report = top()
	require.Nil(t, report.Asked, "the ledger knows")
	require.Equal(t, job.Status.Usage.Advice, report.Advice)

	c.ends(1, "top", "none")
	c.ends(2, "top", "eats", "-o", "yaml")
}
