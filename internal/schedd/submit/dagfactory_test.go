package submit

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// independent returns a graph of nodes that a factory makes.
func independent() DAG {
	g := dag()
	g.Steps, g.FactoryAbove, g.Pace = g.Steps[:1], 2, Pace{}
	g.Nodes = []DAGNode{
		{Place: "job_0", Variables: "A=1\n"}, {Place: "job_1", Inputs: []string{"0-a", "1-b"}}, {Place: "job_2"},
	}
	return g
}

func TestManyNodesThatDependOnNothingAreMadeByAFactory(t *testing.T) {
	g := independent()
	s, err := g.Render()
	require.NoError(t, err)
	require.Equal(t, 3, s.Factory)
	require.Equal(t, 1, s.Procs)
	require.Len(t, s.Steps, 1)
	require.Subset(t, strings.Split(textOf(s, FileSubmit), "\n"), []string{
		"universe = scheduler", "executable = factory.sh", "transfer_input_files = nodes.tgz, token, .in",
		"transfer_output_files = n", "My.HTCJobLauncher = true", `My.HTCJobUID = "` + g.Tag.UID + `"`,
		"remove_kill_sig = SIGUSR1", leaveDAG.key + " = " + leaveDAG.value,
		"on_exit_hold = ExitCode =!= undefined && ExitCode >= 120 && ExitCode <= 124",
	})
	require.Subset(t, strings.Split(textOf(s, fileLauncher), "\n"), []string{
		"nodes=3", `tag='HTCWorkflowUID =?= "` + g.Tag.UID + `" && HTCWorkflowDAG =?= 2'`,
	})
	files := unpacked(t, s)
	require.NotContains(t, files, "flow.dag.new")
	require.Equal(t, "0 .own-0\n1 .own-1, ../../.in/0-a/, ../../.in/1-b/\n2 .own-2\n", files["nodes.items"])
	require.Equal(t, "job_0 0\nA=1\n", files["n/0/.own-0"])
	require.Subset(t, strings.Split(files["factory.sub"], "\n"), []string{
		"executable = s0.sh", "initialdir = $(htcd_here)/n/$(n)", "log = $(htcd_here)/nodes.log", "My.HTCNode = $(n)",
		"transfer_input_files = ../../token, ../../s0/, $(files)", "max_idle = 100", "max_materialize = 20",
		"My.HTCJobFactory = 3", "My.DAGManJobId = $(htcd_launcher)", "queue n, files from nodes.items",
	})

	g.MaxIdle, g.MaxJobs, g.Steps[0].MaxJobs = 0, 0, 0
	s, err = g.Render()
	require.NoError(t, err)
	require.Contains(t, unpacked(t, s)["factory.sub"], "max_idle = 1000\nMy.", "as many as DAGMan has")
}

func TestDAGManSendsWhatAFactoryCannotMake(t *testing.T) {
	for name, change := range map[string]func(*DAG){
		"not more than DAGMan is to send": func(g *DAG) { g.FactoryAbove = 3 },
		"no factories":                    func(g *DAG) { g.FactoryAbove = 0 },
		"a node after another":            func(g *DAG) { g.Nodes[2].Parents = []int{0} },
		"a node after the end of another": func(g *DAG) { g.Nodes[2].Ended = []int{0} },
		"a node that is done":             func(g *DAG) { g.Nodes[2].Done = true },
		"a priority of a node":            func(g *DAG) { g.Nodes[2].Priority = new(7) },
		"jobs of several nodes":           func(g *DAG) { g.Steps[0].Nodes, g.Steps[0].Sender = 2, "htcd" },
		"a pace":                          func(g *DAG) { g.Pace = Pace{Nodes: 5, Seconds: 1} },
		"two steps": func(g *DAG) {
			g.Steps = append(g.Steps, DAGStep{Description: description(), Name: "other"})
			g.Nodes[2].Step = 1
		},
	} {
		g := independent()
		change(&g)
		s, err := g.Render()
		require.NoError(t, err, name)
		require.Zero(t, s.Factory, name)
		require.Contains(t, unpacked(t, s), "flow.dag.new", name)
		require.NotContains(t, textOf(s, FileSubmit), "Launcher", name)
	}
}
