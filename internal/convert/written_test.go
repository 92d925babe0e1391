package convert_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/convert"
)

func TestAnOutputGoesToAURL(t *testing.T) {
	said, r := lines(t, `executable = p.sh
transfer_output_files = out.root, log.txt
transfer_output_remaps = "out.root=https://e.org/me/$(Cluster)_$(Process).root; log.txt=logs/$(Process).txt"
queue 3
`, convert.Options{Image: "centos"}, nil)
	require.False(t, convert.Lost(r.Lines), said)
	require.Contains(t, said, "the URL has {name}-{attempt} for the cluster's number")
	spec := r.HTCJobs[0].Spec
	require.Equal(t, []v1alpha1.Output{
		{Path: "out.root", URL: "https://e.org/me/{name}-{attempt}_{proc}.root"}, {Path: "log.txt"},
	}, spec.Outputs)
	require.Equal(t, map[string]v1alpha1.LandingPlace{"log.txt": "logs/{{proc}}.txt"}, spec.Landing.Files)
	accepted(t, r.HTCJobs[0])
}

func TestWhatCannotGoToAURLIsBroughtBack(t *testing.T) {
	for name, c := range map[string]struct{ files, remaps, queue, want string }{
		"what no list names": {"a", "b = https://e.org/b", "queue",
			"only what transfer_output_files names can go to a URL; instead: b in transfer_output_files"},
		"one place for all": {"a", "a = https://e.org/a", "queue 2",
			"all jobs would write to the same place; instead: $(Process) in the URL"},
		"places by a variable": {"a", "a = https://e.org/$(x)/a", "queue x in (1 2)",
			"only the job's number may tell URLs of jobs apart; instead: $(Process) in the URL"},
		"names by the number": {"a$(Process)", "a$(Process) = https://e.org/a$(Process)", "queue 2",
			"what goes to a URL has the same name in each job; instead: a name without macros"},
		"a place above":      {"a", "a = https://e.org/../a", "queue", "https://e.org/../a is no URL of letters"},
		"a file of the node": {"a", "a = file:///staging/a", "queue", "file:///staging/a is a place of the execute node"},
		"a directory":        {"a", "a = https://e.org/a/", "queue", "https://e.org/a/ is no URL of letters"},
	} {
		t.Run(name, func(t *testing.T) {
			said, r := lines(t, "executable = p.sh\ntransfer_output_files = "+c.files+"\ntransfer_output_remaps = \""+
				c.remaps+"\"\n"+c.queue+"\n", convert.Options{Image: "centos"}, nil)
			require.True(t, convert.Lost(r.Lines), said)
			require.Contains(t, said, "cannot: "+c.want)
			require.Empty(t, r.HTCJobs[0].Spec.Outputs[0].URL)
			accepted(t, r.HTCJobs[0])
		})
	}
}
