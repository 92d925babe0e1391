//go:build !releases

package e2e

import (
	"context"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

func TestAPoolWithACollectorOfItsOwnRunsJobs(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	require.NoError(t, b.Lab.Part("pool2").Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, b.Lab.Part("pool2").Stop(context.WithoutCancel(t.Context()))) })
	config, err := os.ReadFile(b.Lab.Path("condor", "pool2.conf"))
	require.NoError(t, err)
	collector := regexp.MustCompile(`(?m)^COLLECTOR_HOST = (.*)$`).FindStringSubmatch(string(config))[1]
	pool := b.Pool("", "{schedd: '"+parts.Pool2Schedd+"', collector: '"+collector+"'}")
	b.Create("one", "echo elsewhere\n", in(pool))
	job := b.Fetched("one")
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase)
	require.Equal(t, parts.Pool2Schedd, job.Status.Schedd)
	require.Equal(t, "elsewhere\n", b.Output(job, 0))
	require.Empty(t, b.Condor("condor_history", trial.Tagged(job), "ClusterId"), "nothing of it was in the first pool")
	b.Kubectl("delete", "htcjob", "one")

	b.Create("nodes", "exit 0\n", in(pool), nodes(2)) // whose machines are for another schedd's
	require.Contains(
		t,
		b.Condition(b.Ended("nodes"), v1alpha1.ConditionFailed).Message,
		"no machine of the pool takes jobs of several nodes",
	)
}
