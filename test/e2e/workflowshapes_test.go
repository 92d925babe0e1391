package e2e

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

func TestTheShapesOfTheDocsRun(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	client, err := v1alpha1.NewClient(trial.Config(t))
	require.NoError(t, err)
	shapes := map[string]struct {
		nodes        int32
		node, output string
	}{
		"crab": {
			10,
			"merge/job_0",
			"muons 0 99\nmuons 100 199\nmuons 200 299\nelectrons 0 99\nelectrons 100 199\nelectrons 200 299\n",
		},
		"lsst":   {6, "detect/tract", "1\n2\n2\n3\n"},
		"ligo":   {8, "page/job_0", "H1 100 templates\nL1 100 templates\nH1 200 templates\nL1 200 templates\n"},
		"osg":    {4, "total/job_0", "alice 7\nulysses 7\nhuckfinn 7\n"},
		"jobsub": {4, "collect/job_0", "0 tarball\n1 tarball\n"}, // one of work fails
		"ship":   {7, "best/all", "30 0\n30 1\n35 0\n35 1\n"},
	}
	for name := range shapes {
		text, err := os.ReadFile("../../examples/workflow/" + name + ".yaml")
		require.NoError(t, err)
		b.ApplyText(string(text))
	}
	for name, want := range shapes {
		f := &flow{Bench: b, client: client, name: name}
		w := f.ended()
		require.Equal(t, v1alpha1.PhaseSucceeded, w.Status.Phase, "%s: %+v", name, w.Status)
		require.Equal(t, want.nodes, w.Status.Nodes.Done, name)
		require.Equal(t, want.output, f.output(w, want.node, "_condor_stdout"), name)
	}
}
