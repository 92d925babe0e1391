package workflow

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/graph"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
)

func TestWhatIsKeptOfAnEarlierAttempt(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"a/job_0/f", "a/job_1/f", "a/job_2/other"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), nil, 0o600))
	}
	done := map[spot]ledger.Carried{
		{"a", 0, 0, ""}: {
			From: 3,
			Node: 0,
		}, {"a", 1, 0, ""}: {From: 3, Node: 2}, {"a", 2, 0, ""}: {From: 3, Node: 4}, {"a", 3, 0, ""}: {From: 3, Node: 6}, {"gone", 0, 0, ""}: {From: 3, Node: 1},
	}
	step := func(name string) v1alpha1.Step {
		return v1alpha1.Step{StepWork: v1alpha1.StepWork{Name: v1alpha1.StepName(name)}}
	}
	pulling := step("b")
	pulling.Pull = []v1alpha1.Pull{{From: "a", Path: "f"}}
	for name, c := range map[string]struct {
		dir    string
		before []string
		now    []string
		want   []bool
	}{
		"what is pulled must be here": {dir, nil, nil, []bool{true, false, true, false, false, false, false, false}},
		"no store":                    {"", nil, nil, make([]bool, 8)},
		"other variables":             {dir, []string{"x=0\n", "x=1\n", "x=2\n", "x=3\n"}, []string{"x=0\n", "x=5\n", "x=2\n", "x=3\n"}, []bool{true, false, false, false, false, false, false, false}},
		"variables that are new":      {dir, nil, []string{"x=0\n", "", "", ""}, []bool{false, false, true, false, false, false, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := graph.New(v1alpha1.HTCWorkflowSpec{Steps: []v1alpha1.Step{step("a"), pulling}})
			require.NoError(t, err)
			p := plannedDAG{graph: g, items: c.now, nodes: g.Nodes(0, graph.Outcome{Sequences: []int{0, 1, 2, 3}})}
			k := former{dir: c.dir, done: done, items: c.before}.keep(p)
			require.Equal(t, c.want, k.is)
			for _, n := range k.nodes {
				require.True(t, k.has(n.Number))
				require.Equal(t, 3, n.From)
				require.Equal(t, n.Number, n.Node)
			}
		})
	}
}

func TestAResumedAttemptNeedsNoOutputOfTheOneBefore(t *testing.T) {
	g, err := graph.New(v1alpha1.HTCWorkflowSpec{Steps: []v1alpha1.Step{{StepWork: v1alpha1.StepWork{Name: "a"}}}})
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "never", "fetched")
	p := plannedDAG{
		graph: g,
		nodes: g.Nodes(0, graph.Outcome{Sequences: []int{0, 1}}),
		kept:  kept{from: filepath.Join(dir, "1"), is: make([]bool, 2)},
	}
	require.NoError(
		t,
		p.keepOutput(ledger.Run{OutputDir: filepath.Join(dir, "2")}),
		"the files of the attempt before may never have arrived at the schedd",
	)
}

func TestTheAttemptBefore(t *testing.T) {
	run := func(dag int, hash string, cluster int) ledger.Run {
		return ledger.Run{UID: "u", Attempt: dag, SpecHash: hash, Cluster: cluster, State: ledger.Submitted}
	}
	refused := run(4, "c", 0)
	refused.State = ledger.Refused
	runs := []ledger.Run{
		{UID: "older", Attempt: 1, Cluster: 9, State: ledger.Submitted},
		run(1, "a", 10),
		run(2, "a", 11),
		run(3, "b", 12),
		refused,
	}
	require.Equal(t, runs[3:4], attemptBefore(runs, "u", 4), "one that was refused has left nothing")
	require.Equal(t, runs[3:4], attemptBefore(runs, "u", 3))
	require.Equal(t, runs[1:3], attemptBefore(runs, "u", 2))
	require.Empty(t, attemptBefore(runs, "u", 1))
}

func TestOutputIsLinkedAgainAfterAnInterruption(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "1/a/job_0/sub"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "1/a/job_0/sub/f"), []byte("x"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "1/a/job_0/g"), []byte("y"), 0o600))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "1/a/job_0/link")))
	for range 2 {
		require.NoError(t, output.LinkTree(root, "1/a/job_0", "2/a/job_0"))
		text, err := os.ReadFile(filepath.Join(dir, "2/a/job_0/sub/f"))
		require.NoError(t, err)
		require.Equal(t, "x", string(text))
		require.NoError(t, os.Remove(filepath.Join(dir, "2/a/job_0/g")))
	}
	require.NoFileExists(t, filepath.Join(dir, "2/a/job_0/link"))
	require.NoError(t, output.LinkTree(root, "1/a/none", "2/a/none"))
}

func TestADirectoryWhoseNameIsNoUTF8IsBrought(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(from, "out/d\xe9"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(from, "out/d\xe9/f"), []byte("x"), 0o600))
	require.NoError(t, copyMatching(from, "out/*", to))
	require.FileExists(t, filepath.Join(to, "out/d\xe9/f"))
}

func TestAPathBringsWhatItBringsInAShell(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	for _, name := range []string{"a1", "b1", ".b1", "_condor_stdout", "b2/c/f", "b2/.g"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(from, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(from, name), nil, 0o600))
	}
	require.NoError(t, copyMatching(from, "[!a]*", to))
	var brought []string
	require.NoError(t, fs.WalkDir(os.DirFS(to), ".", func(name string, entry fs.DirEntry, err error) error {
		if !entry.IsDir() {
			brought = append(brought, name)
		}
		return err
	}))
	require.Equal(t, []string{"b1", "b2/.g", "b2/c/f"}, brought)
	f := former{dir: from}
	require.True(t, f.has("b2", "[!a]"))
	require.False(t, f.has("b2", "[!c]"))
}

func TestNothingIsBroughtForNodesThatDoNotRun(t *testing.T) {
	a := v1alpha1.Step{
		StepWork: v1alpha1.StepWork{Name: "a", Pull: []v1alpha1.Pull{{Artifact: "r/x", Tag: "v1", Path: "f"}}},
	}
	a.Job.Inputs = []v1alpha1.Input{{Name: "in", ConfigMapKeyRef: &v1alpha1.KeyRef{Name: "c", Key: "k"}}}
	w := &v1alpha1.HTCWorkflow{Spec: v1alpha1.HTCWorkflowSpec{Steps: []v1alpha1.Step{a}}}
	g, err := graph.New(w.Spec)
	require.NoError(t, err)
	for _, c := range []struct {
		kept []bool
		dirs []string
	}{
		{nil, []string{"in0", "s0-a0-0", "s0-a0-1"}},
		{[]bool{true, false}, []string{"in0", "s0-a0-1"}},
		{[]bool{true, true}, nil},
	} {
		p := plannedDAG{
			graph: g,
			steps: []int{0},
			nodes: g.Nodes(0, graph.Outcome{Sequences: []int{0, 1}}),
			kept:  kept{is: c.kept},
		}
		require.NoError(t, p.list(w))
		var dirs []string
		for _, b := range p.brought {
			dirs = append(dirs, b.dir)
		}
		require.Equal(t, c.dirs, dirs)
	}
}
