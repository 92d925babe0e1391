package submit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

func TestAJobOfSeveralNodesIsOneOfTheParallelUniverse(t *testing.T) {
	d := description()
	d.Nodes, d.Sender = 3, "/usr/bin/htcd"
	d.JobOptions.CPUs = 4
	s, err := d.Render()
	require.NoError(t, err)
	require.Equal(t, 3, s.Nodes)
	require.EqualValues(t, 12, s.Requests.CPUs, "on all nodes together")
	text := textOf(s, FileSubmit)
	require.True(t, strings.HasPrefix(text, "universe = parallel\nmachine_count = 3\nexecutable = job.sh\n"), text)
	require.Contains(t, text, "\nrequest_cpus = 4\n")
	require.Contains(
		t,
		text,
		"\nrequest_memory = 128\n",
		"HTCondor 23's default depends on what the machine's last job took",
	)
	require.EqualValues(t, 3*128, s.Requests.Memory)
	require.Contains(t, text, "\nMy.WantIOProxy = false\nMy.HTCJobUID", "nothing that a user writes comes after it")
	require.Contains(t, textOf(s, fileJob), multinodeBody)

	d.JobOptions.Memory = 100
	s, err = d.Render()
	require.NoError(t, err)
	require.Contains(t, textOf(s, FileSubmit), "\nrequest_memory = 100\n")

	plain, err := description().Render()
	require.NoError(t, err)
	require.Contains(t, textOf(plain, FileSubmit), "universe = vanilla\nexecutable")
	require.NotContains(t, textOf(plain, FileSubmit), "WantIOProxy")
}

func TestANodeOfADAGMayRunOnSeveralMachines(t *testing.T) {
	g := dag()
	g.Steps[1].Nodes, g.Steps[1].Sender, g.Steps[1].JobOptions.CPUs = 3, "/usr/bin/htcd", 4
	s, err := g.Render()
	require.NoError(t, err)
	require.EqualValues(t, 12, s.Steps[1].Requests.CPUs, "on all machines together")
	files := unpacked(t, s)
	require.Contains(t, files["s0.sub"], "universe = vanilla\n")
	require.NotContains(t, files["s0.sh"], "become_node() {")
	require.True(
		t,
		strings.HasPrefix(files["s1.sub"], "universe = parallel\nmachine_count = 3\nexecutable = s1.sh\n"),
		files["s1.sub"],
	)
	require.Contains(
		t,
		files["s1.sub"],
		"\nMy.WantIOProxy = false\nMy.HTCWorkflowUID",
		"nothing that a user writes comes after it",
	)
	require.Contains(t, files["s1.sh"], multinodeBody+nodeBody)

	g.Steps[1].Checkpoint = &Checkpoint{ExitCode: 85, Files: []string{"a"}}
	_, err = g.Render()
	require.ErrorContains(t, err, "step merge: spec.nodes: found checkpoint")
}

func TestWhatAJobOfSeveralNodesCannotBeIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Description)
		words  string
	}{
		"one node":           {func(d *Description) { d.Nodes = 1 }, "spec.nodes: found 1, expected 2 to 256"},
		"too many":           {func(d *Description) { d.Nodes = 257 }, "spec.nodes: found 257"},
		"fewer than none":    {func(d *Description) { d.Nodes = -1 }, "spec.nodes: found -1"},
		"several jobs":       {func(d *Description) { d.Queue = 2 }, "spec.nodes: found 2 jobs, expected 1"},
		"a factory":          {func(d *Description) { d.Parallelism = 1 }, "parallelism"},
		"checkpoints":        {func(d *Description) { d.Checkpoint = &Checkpoint{ExitCode: 85, Files: []string{"a"}} }, "checkpoint"},
		"an interactive":     {func(d *Description) { d.Interactive = 60 }, "interactive"},
		"one that is kept":   {func(d *Description) { d.KeepOnFailure = 60 }, "keepOnFailure"},
		"nothing to send":    {func(d *Description) { d.Sender = "" }, "--ship-sender"},
		"the universe":       {func(d *Description) { d.Options = "machine_count = 5" }, "spec.nodes says on how many machines"},
		"a shutdown policy":  {func(d *Description) { d.Options = `+ParallelShutdownPolicy = "WAIT_FOR_ALL"` }, "ParallelShutdownPolicy"},
		"the schedd's files": {func(d *Description) { d.Options = "+WantIOProxy = true" }, "WantIOProxy"},
	} {
		t.Run(name, func(t *testing.T) {
			d := description()
			d.Nodes, d.Sender = 2, "/usr/bin/htcd"
			c.change(&d)
			_, err := d.Render()
			require.ErrorContains(t, err, c.words)
			require.Equal(t, condor.Refused, condor.KindOf(err))
		})
	}
}

// Another node than 0 waits for HTCondor to end it, which may already have asked.
func TestANodeThatHTCondorHasAskedToEndDoes(t *testing.T) {
	sender := filepath.Join(t.TempDir(), "htcd")
	require.NoError(
		t,
		os.WriteFile(sender, []byte("#!/bin/sh\n[ \"$2\" = run ] || exec sleep 1000\nshift 3\nexec \"$@\"\n"), 0o600),
	)
	for shell, argv := range shells(t) {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			r := receive(t)
			d := r.description("trap 'echo asked; exit 7' TERM; echo started; while :; do sleep 0.01; done")
			d.Nodes, d.Queue, d.Sender = 2, 1, sender
			s := node(t, d, map[string]string{"apptainer": fakeApptainer, "curl": "", "sh": "", "sha256sum": ""})
			s.shell = argv
			require.Equal(t, "asked\n", s.toldToEnd(t, 7, "_CONDOR_PROCNO=1", "_CONDOR_NPROCS=2"))
			require.Empty(t, r.events)
		})
	}
}
