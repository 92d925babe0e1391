package schedd_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

// graph is a test's DAG.
type graph struct {
	*bench
	dag     submit.DAG
	cluster condor.Cluster
}

func newGraph(t *testing.T) *graph {
	b := newBench(t)
	return &graph{bench: b, dag: submit.DAG{Tag: b.d.Tag, BatchName: b.d.BatchName}}
}

// step adds a step that runs a script.
func (g *graph) step(name, source string) *submit.DAGStep {
	d := g.d
	d.Source = source
	g.dag.Steps = append(g.dag.Steps, submit.DAGStep{Description: d, Name: name})
	return &g.dag.Steps[len(g.dag.Steps)-1]
}

// node adds a node of the step added last.
func (g *graph) node(n submit.DAGNode) int {
	n.Step = len(g.dag.Steps) - 1
	g.dag.Nodes = append(g.dag.Nodes, n)
	return len(g.dag.Nodes) - 1
}

// submit sends the DAG; at the end of the test what remains of it is removed.
func (g *graph) submit() {
	g.t.Helper()
	s, err := g.dag.Render()
	require.NoError(g.t, err)
	dir := g.t.TempDir()
	require.NoError(g.t, submit.Stage(dir, s, token))
	g.cluster, err = g.Submit(g.t.Context(), g.id, dir)
	require.NoError(g.t, err)
	require.Equal(g.t, 1, g.cluster.Procs)
	g.t.Cleanup(func() {
		ctx := context.WithoutCancel(g.t.Context())
		require.NoError(
			g.t,
			scheddtest.Err(
				g.Change(ctx, g.id, schedd.Remove{Where: g.dag.Tag.Constraint(), Reason: "the test is over"}),
			),
		)
		_, err := g.Change(ctx, g.id, schedd.Release{Procs: g.procs()})
		require.NoError(g.t, err)
	})
}

func (g *graph) procs() schedd.Procs {
	return schedd.Procs{Tag: g.dag.Tag, Cluster: g.cluster.ID, Numbers: []int{0}, DAG: true}
}

// own returns DAGMan's job once it satisfies a condition.
func (g *graph) own(wanted string, is func(condor.Job) bool) condor.Job {
	g.t.Helper()
	return g.until(wanted, is)[0]
}

// nodes returns the nodes by number, the ended ones from the history.
func (g *graph) nodes() map[int]condor.Job {
	g.t.Helper()
	all := map[int]condor.Job{}
	add := func(j condor.Job) error {
		require.Equal(g.t, g.dag.Tag.UID, j.Node.UID)
		require.Equal(g.t, g.dag.Tag.Attempt, j.Node.DAG)
		require.Zero(g.t, j.Tag.UID, "they are no jobs of an HTCJob")
		if before, twice := all[j.Node.Number]; twice {
			require.Equal(g.t, before.ID(), j.ID(), "a node that ran twice")
		}
		all[j.Node.Number] = j
		return nil
	}
	require.NoError(
		g.t,
		g.Query(g.t.Context(), g.id, schedd.Query{Where: g.dag.Tag.NodesConstraint(), Nodes: true}, add),
	)
	require.NoError(
		g.t,
		g.Query(
			g.t.Context(),
			g.id,
			schedd.Query{Where: g.dag.Tag.NodesConstraint(), Nodes: true, Left: &schedd.HistoryBounds{}},
			add,
		),
	)
	return all
}

// ended waits for the end of the DAG, and returns what it has brought.
func (g *graph) ended(code int) map[int]condor.Job {
	g.t.Helper()
	j := g.own("ended", func(j condor.Job) bool { return j.Done() })
	if j.ExitCode == nil || *j.ExitCode != code {
		g.t.Log(g.fetched(condor.Stdout) + g.fetched(condor.Stderr))
	}
	require.NotNil(g.t, j.ExitCode)
	require.Equal(g.t, code, *j.ExitCode)
	return g.nodes()
}

// fetch fetches everything and gives the nodes' files their own paths.
func (g *graph) fetch() string {
	g.t.Helper()
	dir := g.t.TempDir()
	require.NoError(g.t, os.Mkdir(filepath.Join(dir, "0"), 0o700))
	require.NoError(g.t, g.Transfer(g.t.Context(), g.id, g.procs(), dir))
	for n := range g.dag.Nodes {
		if _, err := os.Stat(filepath.Join(dir, "0", submit.DAGDir(n))); err == nil {
			require.NoError(g.t, output.Unpack(filepath.Join(dir, "0", "n"), n))
		}
	}
	return filepath.Join(dir, "0")
}

func (g *graph) fetched(name string) string {
	text, err := os.ReadFile(filepath.Join(g.fetch(), name))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return string(text)
}

func TestADAGsNodesGetWhatTheOnesBeforeHaveLeft(t *testing.T) {
	t.Parallel()
	g := newGraph(t)
	generate := g.step(
		"generate",
		`echo "events of $jobid" >"events.root"; echo "in $outpath" >where; test "$PWD" = "$outpath"`,
	)
	generate.Outputs = []submit.Output{{Path: "where"}}
	for i := range 2 {
		g.node(submit.DAGNode{Place: fmt.Sprint("job_", i), Variables: fmt.Sprintf("jobid=job_%d\n", i)})
	}
	simulate := g.step(
		"simulate",
		`cat events.root >"hits $1.txt" && echo "$HTCPROCID $1 $jobid" >>"hits $1.txt"; echo more >"other $1"; exit 7`,
	)
	simulate.Pulls = []submit.Pull{{From: 0, Path: "events.root"}}
	simulate.JobOptions.SuccessCodes = []int{0, 7}
	for i := range 2 {
		for k := range 2 {
			g.node(
				submit.DAGNode{
					Place:     fmt.Sprintf("job_%d/%d", i, k),
					Index:     k,
					Variables: fmt.Sprintf("jobid=job_%d\n", i),
					Parents:   []int{i},
					Pulls:     [][]int{{i}},
				},
			)
		}
	}
	merge := g.step("merge", `cat job_*/*/hits*.txt >merged`)
	merge.Outputs = []submit.Output{{Path: "merged"}}
	merge.Pulls = []submit.Pull{{From: 1, Path: "hits*.txt", Several: true}}
	for i := range 2 {
		g.node(
			submit.DAGNode{
				Place:   fmt.Sprint("job_", i),
				Parents: []int{2 + 2*i, 3 + 2*i},
				Pulls:   [][]int{{2 + 2*i, 3 + 2*i}},
			},
		)
	}
	g.submit()
	nodes := g.ended(0)
	require.Len(t, nodes, 8)
	for n, j := range nodes {
		require.Equal(t, condor.OutcomeSucceeded, j.Outcome().State, n)
		require.Equal(t, 0, *j.ExitCode)
	}
	events := g.received()
	require.Len(t, events, 8)
	for _, e := range events {
		require.Equal(t, "Bearer "+token, e.authorization)
		require.Equal(t, nodes[e.Data.Node].ID(), e.Data.JobID)
		require.Equal(t, 0, *e.Data.Exit)
		if e.Data.Node >= 2 && e.Data.Node < 6 {
			require.Equal(t, 7, e.Data.Retcode)
		}
	}
	dir := g.fetch()
	require.Equal(
		t,
		"events of job_1\n0 0 job_1\nevents of job_1\n1 1 job_1\n",
		read(t, dir, submit.DAGDir(7), "merged"),
	)
	require.Contains(t, read(t, dir, submit.DAGDir(0), "where"), "in /")
	require.NoFileExists(t, filepath.Join(dir, submit.DAGDir(0), "events.root"), "its outputs do not name it")
	require.Equal(t, "more\n", read(t, dir, submit.DAGDir(3), "other 1"))
	require.NoFileExists(t, filepath.Join(dir, submit.DAGDir(3), "events.root"), "it was pulled")
	require.FileExists(t, filepath.Join(dir, submit.DAGDir(3), condor.Stdout))

	o, err := g.Change(t.Context(), g.id, schedd.Release{Procs: g.procs()})
	require.NoError(t, err)
	require.True(t, o.Found)
	require.Eventually(t, func() bool { return len(g.jobs()) == 0 }, patience, 200*time.Millisecond)
}

func TestANodeIsTriedAgainAfterTheCodesThatItsStepNames(t *testing.T) {
	t.Parallel()
	g := newGraph(t)
	tries := `starts=$(sed -n 's/^NumJobStarts = //p' .job.ad); `
	again := g.step("again", tries+`echo "try $starts"; test "${starts:-0}" -ge 2 || exit 75; echo x >f`)
	again.JobOptions.Retries, again.RetryExitCodes = new(3), []int{75}
	g.node(submit.DAGNode{})
	never := g.step("never", `echo "what went wrong" >&2; exit 3`)
	never.JobOptions.Retries, never.RetryExitCodes = new(3), []int{75}
	failed := g.node(submit.DAGNode{})
	g.step("futile", `exit 0`)
	futile := g.node(submit.DAGNode{Parents: []int{failed}})
	all := g.step("all", `exit 4`)
	all.JobOptions.Retries = new(1)
	g.node(submit.DAGNode{})
	counts := g.step("counts", `echo "does not matter" >&2; exit 9`)
	counts.AlwaysSucceeds = true
	success := g.node(submit.DAGNode{})
	g.step("after", `exit 0`)
	g.node(submit.DAGNode{Parents: []int{success}})
	zero := g.step("zero is none", `exit 0`)
	zero.JobOptions.SuccessCodes = []int{5}
	g.node(submit.DAGNode{})
	lacks := g.step("lacks", `exit 0`)
	lacks.Outputs = []submit.Output{{Path: "a"}}
	g.node(submit.DAGNode{})
	g.submit()
	nodes := g.ended(1)
	require.Equal(
		t,
		[]int{3, 1, 2, 1, 1, 1, 1},
		[]int{
			nodes[0].NumJobStarts,
			nodes[1].NumJobStarts,
			nodes[3].NumJobStarts,
			nodes[4].NumJobStarts,
			nodes[5].NumJobStarts,
			nodes[6].NumJobStarts,
			nodes[7].NumJobStarts,
		},
	)
	require.NotContains(t, nodes, futile)
	for n, want := range []string{"exit code 0", "exit code 3", "", "exit code 4", "exit code 0", "exit code 0", "exit code 1", "killed by signal 40"} {
		if want != "" {
			require.Equal(t, want, nodes[n].Outcome().Message, n)
		}
	}
	said := map[int]event{}
	for _, e := range g.received() {
		said[e.Data.Node] = e
	}
	require.Equal(t, "what went wrong\n", said[failed].Data.Stderr+"\n")
	require.Equal(t, 9, said[success].Data.Retcode)
	require.Equal(t, 0, *said[success].Data.Exit)
	require.Equal(t, "does not matter", said[success].Data.Stderr)
	require.Equal(t, []int{0, 1}, []int{said[6].Data.Retcode, *said[6].Data.Exit})
	require.Empty(t, said[0].Data.Stderr)
	require.Equal(t, "x\n", read(t, g.fetch(), submit.DAGDir(0), "f"))
}

func TestWhatANodeLeavesReplacesNothingThatRunsLater(t *testing.T) {
	t.Parallel()
	g := newGraph(t)
	hostile := `for f in flow.dag s0.sub s1.sub s1.sh dagman.sh token nodes.tgz .own-0 .own-1 condor_exec.exe s0.sh job.sh script p0; do
	rm -rf "./$f"; echo "queue 1000" >"$f"; done
echo x >../x; echo x >../../x; mkdir -p s1 n/1 ../1 .htcd-pull/0/script; echo "exit 66" >s1/script; echo "exit 66" >n/1/script
ln -s /etc/passwd .htcd-out; ln -s ../../../flow.dag link; rm -rf .htcd-pull; ln -s .. .htcd-pull; exit 0`
	first := g.step("first", hostile)
	_ = first
	g.node(submit.DAGNode{})
	declared := g.step("declared", hostile)
	declared.Outputs = []submit.Output{{Path: "flow.dag"}, {Path: "*.s*"}, {Path: "s1"}}
	g.node(submit.DAGNode{})
	next := g.step("next", `test ! -e flow.dag && echo fine >result`)
	next.Pulls = []submit.Pull{{From: 1, Path: "s1.sub"}}
	g.node(submit.DAGNode{Parents: []int{0, 1}, Pulls: [][]int{{1}}})
	g.step("last", `echo fine >result`)
	g.node(submit.DAGNode{Parents: []int{2}})
	g.submit()
	nodes := g.ended(0)
	require.Len(t, nodes, 4)
	dir := g.fetch()
	require.Equal(t, "fine\n", read(t, dir, submit.DAGDir(2), "result"))
	require.Equal(t, "fine\n", read(t, dir, submit.DAGDir(3), "result"))
	require.Equal(t, "queue 1000\n", read(t, dir, submit.DAGDir(1), "flow.dag"))
	require.Equal(t, "queue 1000\n", read(t, dir, submit.DAGDir(0), "s1.sub"))
	for _, name := range []string{"x", "n/x", "1"} {
		require.NoFileExists(t, filepath.Join(dir, name))
	}
	require.NoFileExists(t, filepath.Join(dir, submit.DAGDir(0), "token"), "a name of htcd's")
}

func TestAStepsNodesAreThrottled(t *testing.T) {
	t.Parallel()
	g := newGraph(t)
	one := g.step("one at a time", `sleep 1`)
	one.MaxJobs = 1
	for range 4 {
		g.node(submit.DAGNode{})
	}
	g.step("all", `sleep 1`)
	for range 4 {
		g.node(submit.DAGNode{})
	}
	g.submit()
	most, others := 0, 0
	require.Eventually(t, func() bool {
		n, m := 0, 0
		require.NoError(
			t,
			g.Query(
				t.Context(),
				g.id,
				schedd.Query{Where: g.dag.Tag.NodesConstraint(), Nodes: true},
				func(j condor.Job) error {
					if j.Node.Number < 4 && !j.Done() {
						n++
					} else if j.Node.Number >= 4 {
						m++
					}
					return nil
				},
			),
		)
		most, others = max(most, n), max(others, m)
		return len(g.jobs()) == 1 && g.jobs()[0].Done()
	}, patience, 100*time.Millisecond)
	require.Equal(t, 1, most)
	require.Greater(t, others, 1)
	require.Len(t, g.ended(0), 8)
}

func TestARemovedDAGTakesItsNodesAlongAndStaysUntilItsOutputIsFetched(t *testing.T) {
	t.Parallel()
	g := newGraph(t)
	g.step("quick", `echo done >result`)
	g.node(submit.DAGNode{})
	g.step("slow", `sleep 1000`)
	for range 3 {
		g.node(submit.DAGNode{Parents: []int{0}})
	}
	g.submit()
	require.Eventually(t, func() bool {
		running := 0
		for _, j := range g.nodes() {
			if j.Status == condor.Running {
				running++
			}
		}
		return running == 3
	}, patience, 200*time.Millisecond)

	// What a node has left can be fetched by itself while the others run.
	some, dir := g.procs(), t.TempDir()
	some.Nodes = []int{0}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "0"), 0o700))
	require.NoError(t, g.Transfer(t.Context(), g.id, some, dir))
	require.NoError(t, output.Unpack(filepath.Join(dir, schedd.NodesBrought(some)), 0))
	require.Equal(t, "done\n", read(t, dir, schedd.NodesBrought(some), "0", "result"))
	for n := 1; n < 4; n++ {
		require.NoDirExists(t, filepath.Join(dir, schedd.NodesBrought(some), fmt.Sprint(n)))
	}

	require.NoError(
		t,
		scheddtest.Err(
			g.Change(
				t.Context(),
				g.id,
				schedd.Remove{Where: g.dag.Tag.Constraint().In(g.cluster.ID), Reason: "enough"},
			),
		),
	)
	require.Eventually(t, func() bool {
		left := 0
		require.NoError(
			t,
			g.Query(
				t.Context(),
				g.id,
				schedd.Query{Where: g.dag.Tag.NodesConstraint(), Nodes: true},
				func(condor.Job) error { left++; return nil },
			),
		)
		return left == 0
	}, patience, 200*time.Millisecond)
	j := g.own("removed", func(j condor.Job) bool { return j.Status == condor.Removed })
	require.Equal(t, condor.OutcomeRemoved, j.Outcome().State)
	nodes := g.nodes()
	require.Len(t, nodes, 4)
	for n, j := range nodes {
		require.Equal(t, n == 0, j.Outcome().State == condor.OutcomeSucceeded, n)
	}
	require.Equal(t, "done\n", read(t, g.fetch(), submit.DAGDir(0), "result"))
	require.Len(t, g.received(), 1)
	o, err := g.Change(t.Context(), g.id, schedd.Release{Procs: g.procs()})
	require.NoError(t, err)
	require.True(t, o.Found)
	require.Eventually(t, func() bool { return len(g.jobs()) == 0 }, patience, 200*time.Millisecond)
}

func TestADAGIsGivenFilesOfAnEarlierOne(t *testing.T) {
	t.Parallel()
	g := newGraph(t)
	g.step("plot", `cat */*/hits >all; echo '*' >mine`).Outputs = []submit.Output{{Path: "all"}}
	g.node(submit.DAGNode{Inputs: []string{"0-hits", "more"}})
	s, err := g.dag.Render()
	require.NoError(t, err)
	dir := t.TempDir()
	for path, text := range map[string]string{"0-hits/job_0/0/hits": "A\n", "0-hits/job_1/0/hits": "B\n", "more/job_1/1/hits": "C\n"} {
		path = filepath.Join(dir, submit.InputsDir, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	require.NoError(t, submit.Stage(dir, s, token))
	g.cluster, err = g.Submit(t.Context(), g.id, dir)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(
			t,
			scheddtest.Err(
				g.Change(
					context.WithoutCancel(t.Context()),
					g.id,
					schedd.Remove{Where: g.dag.Tag.Constraint(), Reason: "the test is over"},
				),
			),
		)
	})
	g.ended(0)
	require.Equal(t, "A B C", strings.Join(strings.Fields(read(t, g.fetch(), submit.DAGDir(0), "all")), " "))
	require.False(t, slices.ContainsFunc(g.received(), func(e event) bool { return *e.Data.Exit != 0 }))
}

// It is not parallel: the schedd is everybody's.
func TestADAGGoesOnWhenItsScheddWasKilled(t *testing.T) {
	g := newGraph(t)
	g.step("first", `sleep 2; echo "$RANDOM$RANDOM$$" >result`)
	for range 20 {
		g.node(submit.DAGNode{})
	}
	last := g.step("last", `cat result >copy`)
	last.Outputs, last.Pulls = []submit.Output{{Path: "copy"}}, []submit.Pull{{From: 0, Path: "result"}}
	for n := range 20 {
		g.node(submit.DAGNode{Parents: []int{n}, Pulls: [][]int{{n}}})
	}
	g.submit()
	for _, ended := range []int{1, 15} {
		require.Eventually(t, func() bool {
			n := 0
			for _, j := range g.nodes() {
				if j.Done() {
					n++
				}
			}
			return n >= ended
		}, patience, 200*time.Millisecond)
		restart(t)
	}
	nodes := g.ended(0)
	require.Len(t, nodes, 40, "each once, see nodes")
	dir := g.fetch()
	for n := range 20 {
		require.Equal(t, read(t, dir, submit.DAGDir(n), "result"), read(t, dir, submit.DAGDir(n+20), "copy"))
	}
}
