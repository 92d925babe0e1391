package convert

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/convert/dagfile"
	"htc.cern.ch/htcd/internal/kube/graph"
)

// filesOf is an environment that has the files of an archive.
func filesOf(ar *txtar.Archive) Env {
	var e Env
	find := func(name string) (*txtar.File, error) {
		i := slices.IndexFunc(ar.Files, func(f txtar.File) bool { return f.Name == path.Clean(name) })
		if i < 0 {
			return nil, fs.ErrNotExist
		}
		return &ar.Files[i], nil
	}
	e.ReadFile = func(name string) ([]byte, error) {
		f, err := find(name)
		if err != nil {
			return nil, err
		}
		return f.Data, nil
	}
	e.Size = func(name string) (int64, error) {
		f, err := find(name)
		if err != nil {
			return 0, err
		}
		return int64(len(f.Data)), nil
	}
	e.List = func(name string) ([]string, bool, error) {
		_, err := find(name)
		return nil, false, err
	}
	return e
}

func TestDAGs(t *testing.T) {
	archives, err := filepath.Glob("testdata/dag/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, archives)
	for _, a := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(a), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(a)
			require.NoError(t, err)
			r, err := DAG("flow.dag", filesOf(ar), Options{Image: "centos"})
			require.NoError(t, err)
			var b strings.Builder
			WriteTable(&b, r.Lines, true)
			if r.Workflow != nil {
				_, err = graph.New(r.Workflow.Spec)
				require.NoError(t, err)
				text, err := r.Jobs()
				require.NoError(t, err)
				b.Write(text)
			}
			i := slices.IndexFunc(ar.Files, func(f txtar.File) bool { return f.Name == "want" })
			if os.Getenv("UPDATE") != "" {
				ar.Files = append(slices.DeleteFunc(ar.Files, func(f txtar.File) bool { return f.Name == "want" }),
					txtar.File{Name: "want", Data: []byte(b.String())})
				require.NoError(t, os.WriteFile(a, txtar.Format(ar), 0o600))
				return
			}
			require.GreaterOrEqual(t, i, 0)
			require.Equal(t, string(ar.Files[i].Data), b.String())
		})
	}
}

func converted(t *testing.T, files string, options Options) Result {
	t.Helper()
	r, err := DAG("flow.dag", filesOf(txtar.Parse([]byte(files))), options)
	require.NoError(t, err)
	return r
}

// lost are the lines that say what cannot be, or who has to do something.
func lost(r Result) string {
	var b strings.Builder
	WriteTable(&b, r.Lines, false)
	return b.String()
}

const workFiles = "\n-- work.sub --\nexecutable = work.sh\narguments = $(JOB) $(x)\nqueue\n-- work.sh --\n#!/bin/sh\n"

func TestADAGOfWhichThereIsNoWorkflow(t *testing.T) {
	for name, c := range map[string]struct{ files, want string }{
		"a mistake in the file": {"-- flow.dag --\nJOB a work.sub\nPARENT a CHILD b\n" + workFiles,
			"flow.dag:2: PARENT a CHILD b\n    cannot: there is no node b\n"},
		"no submit file": {"-- flow.dag --\nJOB a nix.sub DIR d\n", `flow.dag:1: JOB a nix.sub DIR d
    cannot: read d/nix.sub: file does not exist; instead: the submit file, at its place relative to where condor_submit_dag is run
`},
		"nothing runs": {"-- flow.dag --\nJOB a work.sub NOOP\n" + workFiles, `flow.dag:0: 
    cannot: no node of it runs; instead: a DAG with a JOB that is not DONE and not NOOP
`},
		"what condor_submit refuses": {"-- flow.dag --\nJOB a work.sub\n-- work.sub --\nexecutable = x\nqueue many\n",
			"work.sub:2: queue many\n    cannot: "},
		"jobs of a node that differ": {"-- flow.dag --\nJOB a work.sub\n-- work.sub --\nexecutable = " +
			"work.sh\nrequest_memory = $(m)\nqueue m in (100, 200)\n-- work.sh --\n",
			"work.sub:3: queue m in (100, 200)\n    cannot: the jobs of a step are alike in what they request and " +
				"in all but arguments and files; instead: a node for each kind of job\n"},
		"queue in a description": {"-- flow.dag --\nJOB a {\nexecutable = work.sh\nqueue 3\n}\n-- work.sh --\n",
			"flow.dag:4: queue\n    cannot: a description in a DAG file has no queue of its own, and DAGMan 23 " +
				"refuses it; instead: a submit file\n"},
		"several jobs of FINAL": {"-- flow.dag --\nJOB a work.sub\nFINAL f two.sub\n-- two.sub --\nexecutable = " +
			"work.sh\nqueue 2\n" + workFiles,
			"flow.dag:2: FINAL f two.sub\n    cannot: finally is one job; instead: queue without a number\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := converted(t, c.files, Options{Image: "centos"})
			require.Nil(t, r.Workflow)
			require.Contains(t, lost(r), c.want)
		})
	}
}

func TestADAGAsksForTheImage(t *testing.T) {
	r := converted(t, "-- flow.dag --\nJOB a work.sub\n"+workFiles, Options{})
	require.Nil(t, r.Workflow)
	require.Contains(t, lost(r), "to do: --image IMAGE")
}

func TestNodesWithSeveralNumberedJobsAreStepsOfTheirOwn(t *testing.T) {
	r := converted(t, "-- flow.dag --\nJOB a work.sub\nJOB b work.sub\n-- work.sub --\nexecutable = "+
		"work.sh\narguments = $(Process)\nqueue 2\n-- work.sh --\n", Options{Image: "centos"})
	require.Len(t, r.Workflow.Spec.Steps, 2)
	require.Equal(t, int32(2), r.Workflow.Spec.Steps[1].ForEach.Count)
}

func TestNodesWithMoreFilesTogetherThanAStepHasAreStepsOfTheirOwn(t *testing.T) {
	fan := func(nodes, files int) Result {
		var dag, beside strings.Builder
		wanted := "in$(n).txt"
		for i := range nodes {
			fmt.Fprintf(&dag, "JOB a%d fan.sub\nVARS a%d n=\"%d\"\nPARENT a%d CHILD z\n", i, i, i, i)
			fmt.Fprintf(&beside, "-- in%d.txt --\n", i)
		}
		for i := range files {
			wanted += fmt.Sprintf(", all%d", i)
			fmt.Fprintf(&beside, "-- all%d --\n", i)
		}
		return converted(t, "-- flow.dag --\nJOB z work.sub\n"+dag.String()+"-- fan.sub --\nexecutable = work.sh\n"+
			"transfer_input_files = "+wanted+"\nqueue\n"+beside.String()+workFiles, Options{Image: "centos"})
	}
	r := fan(9, 0)
	require.Len(t, r.Workflow.Spec.Steps, 2)
	require.Len(t, r.Workflow.Spec.Steps[0].Job.Inputs, 10)
	r = fan(10, 0)
	require.False(t, Lost(r.Lines), lost(r))
	require.Len(t, r.Workflow.Spec.Steps, 11)
	require.Len(t, r.Workflow.Spec.Steps[0].Job.Inputs, 2)

	r = fan(2, 9)
	require.Contains(t, lost(r), "cannot: the jobs have more than 10 input files together; instead: an archive")
	for _, s := range r.Workflow.Spec.Steps {
		require.LessOrEqual(t, len(s.Job.Inputs), 10)
	}
	r = fan(51, 0)
	require.Nil(t, r.Workflow)
	require.Contains(t, lost(r), "its nodes have more than 10 input files together; an archive that all of them have")
}

func TestAStepPullsNoMoreFilesThanItCan(t *testing.T) {
	named := func(prefix string) string {
		var all []string
		for i := range 11 {
			all = append(all, prefix+fmt.Sprint(i))
		}
		return strings.Join(all, ", ")
	}
	leaves := func(prefix string) string {
		return "executable = work.sh\ntransfer_output_files = " + named(prefix) + "\nqueue\n"
	}
	r := converted(t, "-- flow.dag --\nJOB a a.sub\nJOB b b.sub\nJOB c c.sub\nPARENT a b CHILD c\n-- a.sub --\n"+
		leaves("x")+"-- b.sub --\n"+leaves("y")+"-- c.sub --\nexecutable = work.sh\n"+
		"transfer_input_files = "+named("x")+", "+named("y")+"\nqueue\n"+workFiles, Options{Image: "centos"})
	require.Contains(t, lost(r), "cannot: a step pulls at most 20 files of the steps before it; instead: an archive")
	require.Len(t, r.Workflow.Spec.Steps[2].Pull, 20)
}

func TestManyNodesWithSeveralJobsEachAreNoSteps(t *testing.T) {
	var dag strings.Builder
	for i := range 51 {
		fmt.Fprintf(&dag, "JOB a%d work.sub\nPARENT a%d CHILD z\n", i, i)
	}
	r := converted(t, "-- flow.dag --\nJOB z work.sub\n"+dag.String()+"-- work.sub --\nexecutable = work.sh\n"+
		"arguments = $(Process)\nqueue 2\n-- work.sh --\n", Options{Image: "centos"})
	require.Nil(t, r.Workflow)
	require.Contains(t, lost(r), "cannot: step work: each node has several jobs")
}

func TestNodesThatDifferInWhatTheyRequestAreStepsOfTheirOwn(t *testing.T) {
	r := converted(t, "-- flow.dag --\nJOB a work.sub\nJOB b work.sub\nVARS a m=\"100\"\nVARS b m=\"200\"\n-- "+
		"work.sub --\nexecutable = work.sh\nrequest_memory = $(m)\nqueue\n-- work.sh --\n", Options{Image: "centos"})
	require.Len(t, r.Workflow.Spec.Steps, 2)
	require.Equal(t, "200Mi", r.Workflow.Spec.Steps[1].Job.Resources.Memory.String())
}

func TestNodesWhoseVariablesAreCommandsAreStepsOfTheirOwn(t *testing.T) {
	for name, c := range map[string]struct{ a, b, file, options, memory string }{
		"commands":   {`request_memory="100"`, `request_memory="200"`, "", "", "200Mi"},
		"attributes": {`+Nest="1"`, `+Nest="2"`, "", "+Nest = 2", ""},
		"appended":   {`APPEND request_memory="100"`, `APPEND request_memory="200"`, "", "", "200Mi"},
		"conditions": {`big="no"`, `big="yes"`, "if $(big)\nrequest_memory = 200\nendif\n", "", "200Mi"},
		"names":      {`what="disk"`, `what="memory"`, "request_$(what) = 200\n", "", "200Mi"},
		"included":   {`size="small"`, `size="big"`, "include : $(size).inc\n", "", "200Mi"},
	} {
		t.Run(name, func(t *testing.T) {
			r := converted(t, "-- flow.dag --\nJOB a work.sub\nJOB b work.sub\nVARS a "+c.a+"\nVARS b "+c.b+
				"\n-- work.sub --\nexecutable = work.sh\n"+c.file+"queue\n-- work.sh --\n-- small.inc --\n"+
				"-- big.inc --\nrequest_memory = 200\n", Options{Image: "centos"})
			require.Len(t, r.Workflow.Spec.Steps, 2)
			b := r.Workflow.Spec.Steps[1].Job
			require.Equal(t, c.options, b.HTCOpts)
			if c.memory != "" {
				require.Equal(t, c.memory, b.Resources.Memory.String())
			}
		})
	}
}

func TestAnAttributeOfTheFileReplacesThatOfTheNodes(t *testing.T) {
	r := converted(t, "-- flow.dag --\nJOB a work.sub\nJOB b work.sub\nVARS a +Nest=\"1\"\nVARS b +Nest=\"2\"\n"+
		"-- work.sub --\nexecutable = work.sh\n+Nest = 3\nqueue\n-- work.sh --\n", Options{Image: "centos"})
	for _, s := range r.Workflow.Spec.Steps {
		require.Equal(t, "+Nest = 3", s.Job.HTCOpts)
	}
}

func TestHowManyJobsANodeHasIsTheNodesToSay(t *testing.T) {
	r := converted(t, "-- flow.dag --\nJOB a work.sub\nJOB b work.sub\nVARS a n=\"1\"\nVARS b n=\"3\"\n"+
		"-- work.sub --\nexecutable = work.sh\nqueue $(n)\n-- work.sh --\n", Options{Image: "centos"})
	require.Len(t, r.Workflow.Spec.Steps, 2)
	require.Equal(t, int32(3), r.Workflow.Spec.Steps[1].ForEach.Count)
}

func TestEachNodeNumbersItsJobsFromZero(t *testing.T) {
	r := converted(t, "-- flow.dag --\nJOB a work.sub\nJOB b work.sub\nVARS a x=\"a$(Process)\"\n"+
		"VARS b x=\"b$(Process)\"\n-- work.sub --\nexecutable = work.sh\n"+
		"arguments = $(x) $INT(Process,%02d) $(x).$(ProcId)\nqueue\n-- work.sh --\n", Options{Image: "centos"})
	spec := r.Workflow.Spec
	require.Len(t, spec.Steps, 1)
	require.Contains(t, spec.Steps[0].Job.Script.Source, "exec ./work.sh \"${ARG1}\" 00 \"${ARG3}\"\n")
	require.Equal(t, v1alpha1.SequenceItem{"ARG1": "b0", "ARG3": "b0.0"}, spec.Sequences.Items[1])
}

func TestStepsWhoseNamesAreAlikeHaveVariablesOfTheirOwn(t *testing.T) {
	var dag strings.Builder
	for i := range 2 {
		fmt.Fprintf(&dag, "JOB a-b%[1]d work.sub\nJOB a_b%[1]d other.sub\nPARENT a-b%[1]d CHILD a_b%[1]d\n"+
			"VARS a-b%[1]d x=\"%[1]d\"\nVARS a_b%[1]d x=\"1%[1]d\" x_a_b=\"2%[1]d\"\n", i)
	}
	r := converted(t, "-- flow.dag --\n"+dag.String()+"-- work.sub --\nexecutable = work.sh\narguments = $(x)\nqueue\n"+
		"-- other.sub --\nexecutable = work.sh\narguments = $(x) $(x_a_b)\nqueue\n-- work.sh --\n",
		Options{Image: "centos"})
	spec := r.Workflow.Spec
	require.Len(t, spec.Steps, 2)
	for i, item := range spec.Sequences.Items {
		for k, want := range []string{"%[1]d", "1%[1]d 2%[1]d"} {
			_, run, _ := strings.Cut(spec.Steps[k].Job.Script.Source, "exec ./work.sh ")
			got := os.Expand(strings.ReplaceAll(strings.TrimSpace(run), `"`, ""),
				func(name string) string { return string(item[name]) })
			require.Equal(t, fmt.Sprintf(want, i), got)
		}
	}
}

func TestAVariableOfASequenceHidesNoneOfAnotherStep(t *testing.T) {
	r := converted(t, "-- flow.dag --\nJOB a1 work.sub\nJOB a2 work.sub\nJOB b1 other.sub\nJOB b2 other.sub\n"+
		"PARENT a1 CHILD b1\nPARENT a2 CHILD b2\nVARS a1 SEED=\"1\"\nVARS a2 SEED=\"2\"\n-- work.sub --\n"+
		"executable = work.sh\narguments = $(SEED)\nqueue\n-- other.sub --\nexecutable = work.sh\n"+
		"environment = \"SEED=7\"\nqueue\n-- work.sh --\n", Options{Image: "centos"})
	spec := r.Workflow.Spec
	require.Equal(t, v1alpha1.ItemValue("7"), spec.Steps[1].Job.Environment["SEED"])
	require.Equal(t, v1alpha1.SequenceItem{"SEED_a": "2"}, spec.Sequences.Items[1])
	require.Contains(t, spec.Steps[0].Job.Script.Source, "exec ./work.sh \"${SEED_a}\"\n")
}

func TestAValueThatNoVariableCanHaveStandsInTheScript(t *testing.T) {
	for _, value := range []string{"a\tb", strings.Repeat("a b", 2000)} {
		r := converted(t, "-- flow.dag --\nJOB a work.sub\nJOB b work.sub\nVARS a x=\""+value+"\"\nVARS b x=\"c\"\n"+
			"-- work.sub --\nexecutable = work.sh\narguments = \"'$(x)'\"\nqueue\n-- work.sh --\n",
			Options{Image: "centos"})
		require.Len(t, r.Workflow.Spec.Steps, 2)
		require.Contains(t, r.Workflow.Spec.Steps[0].Job.Script.Source, "exec ./work.sh '"+value+"'\n")
	}
}

func TestALargeFileOfANodeWithDIRIsUploadedFromThere(t *testing.T) {
	here := filesOf(txtar.Parse([]byte("-- flow.dag --\nJOB a work.sub DIR nest\n-- nest/work.sub --\n" +
		"executable = work.sh\ntransfer_input_files = eggs.tar\nqueue\n-- nest/work.sh --\n-- nest/eggs.tar --\n" +
		strings.Repeat("egg\n", 300_000))))
	here.Upload = func(path string) (string, error) { return path, nil }
	r, err := DAG("flow.dag", here, Options{Image: "centos"})
	require.NoError(t, err)
	require.Contains(t, lost(r), "before a manifest is applied, htcd upload nest/eggs.tar\n")
	require.Equal(t, "nest/eggs.tar", r.Workflow.Spec.Steps[0].Job.Inputs[1].Upload)
}

func TestTheVariablesOfManySequencesAreATable(t *testing.T) {
	var b strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&b, "JOB n%d work.sub\nVARS n%d x=\"value-%d\"\n", i, i, i)
	}
	r := converted(t, "-- flow.dag --\n"+b.String()+workFiles, Options{Image: "centos"})
	require.Empty(t, lost(r))
	require.Nil(t, r.Workflow.Spec.Sequences.Items)
	require.Len(t, r.ConfigMaps[0], 2)
	table := r.ConfigMaps[0][0]
	require.Equal(t, table.Name, r.Workflow.Spec.Sequences.ItemsFrom.ConfigMapKeyRef.Name)
	require.Equal(t, 20001, strings.Count(table.Data["items.csv"], "\n"))
	require.True(t, strings.HasSuffix(table.Data["items.csv"], "n19999,value-19999\n"))
}

func TestManyVariablesOfNodesSideBySideAreATable(t *testing.T) {
	var b, names strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&b, "JOB n%d work.sub\nVARS n%d x=\"%d\"\n", i, i, i)
		fmt.Fprintf(&names, " n%d", i)
	}
	r := converted(t, "-- flow.dag --\nJOB end work.sub\n"+b.String()+"PARENT"+names.String()+" CHILD end\n"+workFiles,
		Options{Image: "centos"})
	require.Empty(t, lost(r))
	ref := r.Workflow.Spec.Steps[0].ForEach.ItemsFrom.ConfigMapKeyRef
	i := slices.IndexFunc(r.ConfigMaps[0], func(m corev1.ConfigMap) bool { return m.Name == ref.Name })
	require.Equal(t, 20001, strings.Count(r.ConfigMaps[0][i].Data[ref.Key], "\n"))
}

// irregular has so many nodes in two chains whose nodes need each other now and then.
func irregular(nodes int) string {
	var b strings.Builder
	for i := range nodes {
		fmt.Fprintf(&b, "JOB n%d work.sub\nVARS n%d x=\"%d\"\n", i, i, i)
		if i > 1 {
			fmt.Fprintf(&b, "PARENT n%d CHILD n%d\n", i-2, i)
		}
		if i > 0 && i%7 == 0 {
			fmt.Fprintf(&b, "PARENT n%d CHILD n%d\n", i-1, i)
		}
	}
	return b.String()
}

func TestADAGOfNoPatternBecomesAListOfItsNodes(t *testing.T) {
	r := converted(
		t,
		"-- flow.dag --\nJOB east:1 other.sub\nPARENT east:1 CHILD n3 n4\n"+irregular(
			60,
		)+"-- other.sub --\nexecutable = work.sh\nqueue 2"+workFiles,
		Options{Image: "centos"},
	)
	require.Empty(t, lost(r))
	spec := r.Workflow.Spec
	require.Len(t, spec.Steps, 2)
	require.Equal(
		t,
		[]v1alpha1.GraphNode{{Name: "east-1-0", Step: "east-1"}, {Name: "east-1-1", Step: "east-1"}},
		spec.Graph.Nodes[:2],
	)
	require.Equal(t, v1alpha1.NodeName("n0"), spec.Graph.Nodes[2].Name)
	require.Contains(
		t,
		spec.Graph.Edges,
		v1alpha1.GraphEdge{
			Parents:  []v1alpha1.NodeName{"east-1-0", "east-1-1", "n1"},
			Children: []v1alpha1.NodeName{"n3"},
		},
	)
	checked(t, r)
}

func TestALargeListOfNodesIsInTables(t *testing.T) {
	r := converted(t, "-- flow.dag --\n"+irregular(30_000)+workFiles, Options{Image: "centos"})
	require.Empty(t, lost(r))
	require.Empty(t, r.Workflow.Spec.Graph.Nodes)
	g := checked(t, r)
	require.Equal(t, []int{30_000}, g.Totals(1))
	nodes := g.Nodes(0, graph.Outcome{Sequences: []int{0}})
	require.Equal(t, []int{26, 27}, nodes[28].Parents)
}

// checked is the graph of a workflow whose tables are in its ConfigMaps.
func checked(t *testing.T, r Result) *graph.Graph {
	t.Helper()
	g, err := graph.New(r.Workflow.Spec)
	require.NoError(t, err)
	_, tables, err := graph.Read(
		r.Workflow.Spec,
		func(string, string) error { return nil },
		func(from v1alpha1.ItemsFrom) ([]byte, error) {
			i := slices.IndexFunc(
				r.ConfigMaps[0],
				func(m corev1.ConfigMap) bool { return m.Name == from.ConfigMapKeyRef.Name },
			)
			return []byte(r.ConfigMaps[0][i].Data[from.ConfigMapKeyRef.Key]), nil
		},
	)
	require.NoError(t, err)
	g.Fill(tables)
	require.NoError(t, g.Check(r.Workflow.Sequences()))
	return g
}

func TestVariablesMayHaveTheNamesOfHtcdsOwn(t *testing.T) {
	r := converted(t, "-- flow.dag --\nJOB a work.sub\nJOB b work.sub\nVARS a jobid=\"1\"\nVARS b jobid=\"2\"\n-- "+
		"work.sub --\nexecutable = work.sh\narguments = $(jobid)\nqueue\n-- work.sh --\n", Options{Image: "centos"})
	require.Equal(t, v1alpha1.SequenceItem{"ITEM_jobid": "1"}, r.Workflow.Spec.Sequences.Items[0])
}

const looksFiles = workFiles + "-- look.sh --\n#!/bin/sh\n"

func TestAVariableThatApptainerUsesHasAnotherName(t *testing.T) {
	r := converted(t, "-- flow.dag --\nJOB a1 work.sub\nJOB a2 work.sub\nVARS a1 key=\"red\"\nVARS a2 key=\"blue\"\n"+
		strings.ReplaceAll(workFiles, "$(x)", "$(key)\nenvironment = e=1"), Options{Image: "centos"})
	require.Empty(t, lost(r))
	s := r.Workflow.Spec.Steps[0]
	require.Contains(t, s.Job.Script.Source, "export e=1\n")
	require.Contains(t, s.Job.Script.Source, `"${ITEM_key}"`)
	require.Equal(t, "red", string(r.Workflow.Spec.Sequences.Items[0]["ITEM_key"]))
}

func TestANodeHasTheJobsOfItsFirstQueueStatement(t *testing.T) {
	r := converted(t, "-- flow.dag --\nJOB a a.sub\n-- a.sub --\nexecutable = work.sh\narguments = 1\nqueue 2\n"+
		"arguments = 2\nqueue 3\n-- work.sh --\n", Options{Image: "centos"})
	require.Equal(t, int32(2), r.Workflow.Spec.Steps[0].ForEach.Count)
	require.Contains(t, r.Workflow.Spec.Steps[0].Job.Script.Source, "work.sh 1\n")
	var b strings.Builder
	WriteTable(&b, r.Lines, true)
	require.Contains(t, b.String(), "a.sub:5: queue 3\n    moot: DAGMan queues what the first queue statement says\n")
}

func TestANodeThatSucceedsWithAnotherCodeIsSaid(t *testing.T) {
	r := converted(t, "-- flow.dag --\nJOB a a.sub\n-- a.sub --\nexecutable = work.sh\nsuccess_exit_code = 3\nqueue\n"+
		"-- work.sh --\n", Options{Image: "centos"})
	require.Contains(t, lost(r), "a node that ends so has succeeded, while DAGMan 23 takes 0 alone for a success; to do: ")
	require.Equal(t, []int32{3}, r.Workflow.Spec.Steps[0].Job.SuccessExitCodes)
}

func TestANodeHasItsNameTwice(t *testing.T) {
	r := converted(t, "-- flow.dag --\nJOB a1 work.sub\nJOB a2 work.sub\n"+strings.ReplaceAll(workFiles, "$(x)",
		"$(dag_node_name) $(DAG_STATUS)"), Options{Image: "centos"})
	require.Contains(t, r.Workflow.Spec.Steps[0].Job.Script.Source, `work.sh "${JOB}" "${dag_node_name}" 0`)
	require.Equal(t, "a2", string(r.Workflow.Spec.Sequences.Items[1]["dag_node_name"]))
}

func TestWhatDAGManRunsBeforeAndAfterANodeRunsInItsJob(t *testing.T) {
	r := converted(t, `-- flow.dag --
JOB a work.sub
JOB b work.sub
JOB c work.sub
SCRIPT PRE ALL_NODES look.sh $JOB "flour" it's $RETRY $max_retries
SCRIPT DEBUG c.log ALL POST c /bin/sh sub/look.sh $RETURN $SUCCESS $PRE_SCRIPT_RETURN
RETRY ALL_NODES 2
PARENT a b CHILD c
`+looksFiles, Options{Image: "centos", ScriptsInJobs: true})
	require.Empty(t, lost(r))
	require.Len(t, r.Workflow.Spec.Steps, 2)
	both, c := r.Workflow.Spec.Steps[0], r.Workflow.Spec.Steps[1]
	require.Equal(
		t,
		"chmod +x ./look.sh\nexec ./look.sh \"${JOB}\" '\"flour\"' 'it'\\''s' \"$HTC_RETRY\" 2\n",
		both.Job.Script.Before.Source,
	)
	require.Nil(t, both.Job.Script.After)
	require.Equal(t, v1alpha1.ItemValue("b"), both.ForEach.Items[1]["JOB"])
	require.Len(t, both.Job.Inputs, 2)
	require.Contains(t, c.Job.Script.Before.Source, "exec ./look.sh c ")
	require.Equal(t, "exec /bin/sh sub/look.sh \"$RETURN\" \"$([ \"$RETURN\" = 0 ] && echo True || echo False)\" 0\n",
		c.Job.Script.After.Source)
	_, err := graph.New(r.Workflow.Spec)
	require.NoError(t, err)
}

func TestWhatDAGManRunsAndAJobCannotIsSaid(t *testing.T) {
	for name, c := range map[string]struct{ dag, want string }{
		"without the option": {"JOB a work.sub\nSCRIPT PRE a look.sh\n",
			"cannot: nothing of a user's runs on the schedd's host; instead: --scripts-in-jobs"},
		"again later":              {"JOB a work.sub\nSCRIPT DEFER 4 60 POST a look.sh\n", "not run again later by itself"},
		"several jobs":             {"JOB a two.sub\nSCRIPT PRE a look.sh\n", "the node has several jobs"},
		"what only DAGMan knows":   {"JOB a work.sub\nSCRIPT POST a look.sh $DAG_STATUS\n", "only DAGMan knows $DAG_STATUS"},
		"what is not known before": {"JOB a work.sub\nSCRIPT PRE a look.sh $RETURN\n", "only DAGMan knows $RETURN"},
		"no program":               {"JOB a work.sub\nSCRIPT PRE a nix.sh\n", "there is no nix.sh"},
		"no job":                   {"JOB a work.sub\nJOB b work.sub NOOP\nSCRIPT PRE b look.sh\n", "b has no job of its own"},
		"tries of HTCondor's":      {"JOB a tried.sub\nSCRIPT POST a look.sh\n", "script.after decides about each try"},
		"files with other names":   {"JOB a named.sub\nSCRIPT PRE a look.sh\n", "get their names at the beginning"},
		"a job on hold":            {"JOB a work.sub\nSCRIPT HOLD a look.sh\n", "heldDeadlineSeconds"},
	} {
		t.Run(name, func(t *testing.T) {
			r := converted(t, "-- flow.dag --\n"+c.dag+looksFiles+"-- two.sub --\nexecutable = work.sh\nqueue 2\n"+
				"-- tried.sub --\nexecutable = work.sh\nmax_retries = 3\nqueue\n"+
				"-- named.sub --\nexecutable = work.sh\ninput = .rc\nqueue\n-- .rc --\n",
				Options{Image: "centos", ScriptsInJobs: name != "without the option"})
			require.NotNil(t, r.Workflow)
			require.Nil(t, r.Workflow.Spec.Steps[0].Job.Script.Before)
			require.Nil(t, r.Workflow.Spec.Steps[0].Job.Script.After)
			require.Contains(t, lost(r), c.want)
		})
	}
}

func TestAScriptThatMayRunAgainLaterIsNoneOfAnotherNode(t *testing.T) {
	r := converted(t, "-- flow.dag --\nJOB a work.sub\nJOB b work.sub\nSCRIPT POST a look.sh\n"+
		"SCRIPT DEFER 4 60 POST b look.sh\n"+looksFiles, Options{Image: "centos", ScriptsInJobs: true})
	require.Contains(t, lost(r), "flow.dag:4: SCRIPT DEFER 4 60 POST b look.sh\n    cannot: ")
	require.NotContains(t, lost(r), "flow.dag:3:")
}

func TestAConfigurationSaysWhatIsLost(t *testing.T) {
	r := converted(t, "-- flow.dag --\nJOB a work.sub\nCONFIG dagman.conf\n-- dagman.conf --\n"+
		"DAGMAN_MAX_JOBS_SUBMITTED = \\\n  3\n# a comment\n\ninclude : more.conf\nuse FEATURE : Nests\n"+workFiles,
		Options{Image: "centos"})
	require.Contains(t, lost(r), "include : more.conf, use FEATURE : Nests is not taken over")
	require.Equal(t, int32(3), *r.Workflow.Spec.Throttle.MaxJobs)
}

func TestALimitThatSeveralFilesHaveIsOne(t *testing.T) {
	r := converted(t, "-- flow.dag --\nSPLICE S row.dag\nSPLICE T row.dag\nJOB C c.sub\nJOB D d.sub\n"+
		"PARENT C CHILD D\nPARENT S CHILD C\nCATEGORY C calm\nCATEGORY D calm\nMAXJOBS calm 2\n-- row.dag --\n"+
		"JOB A c.sub\nJOB B d.sub\nPARENT A CHILD B\nCATEGORY A calm\nCATEGORY B calm\nMAXJOBS calm 1\n"+
		"-- c.sub --\nexecutable = work.sh\nqueue\n-- d.sub --\nexecutable = work.sh\nqueue\n-- work.sh --\n",
		Options{Image: "centos"})
	checked(t, r)
	require.Equal(t, []v1alpha1.SharedLimit{
		{Steps: []v1alpha1.StepName{"s-a", "s-b"}, MaxJobs: 1}, {Steps: []v1alpha1.StepName{"t-a", "t-b"}, MaxJobs: 1},
		{Steps: []v1alpha1.StepName{"c", "d"}, MaxJobs: 2},
	}, r.Workflow.Spec.Throttle.Together)
	r = converted(t, "-- flow.dag --\nJOB a work.sub\nCATEGORY\ta\tcalm\nMAXJOBS\tcalm\t2\n"+workFiles,
		Options{Image: "centos"})
	require.Equal(t, map[string]v1alpha1.StepLimit{"a": 2}, r.Workflow.Spec.Throttle.PerStep)
}

func TestAFileIsPulledFromItsPathIfThatIsKept(t *testing.T) {
	r := converted(t, "-- flow.dag --\nJOB a lay.sub\nJOB b hatch.sub\nPARENT a CHILD b\n-- lay.sub --\n"+
		"executable = work.sh\ntransfer_output_files = nest/egg.txt\npreserve_relative_paths = true\nqueue\n"+
		"-- hatch.sub --\nexecutable = work.sh\ntransfer_input_files = nest/egg.txt\nqueue\n-- work.sh --\n",
		Options{Image: "centos"})
	require.Empty(t, lost(r))
	require.Equal(t, []v1alpha1.Pull{{From: "a", Path: "nest/egg.txt"}}, r.Workflow.Spec.Steps[1].Pull)
}

func TestScriptsOfManyNodesAreToldAtOnce(t *testing.T) {
	var dag strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&dag, "JOB n%[1]d work.sub\nSCRIPT PRE n%[1]d look.sh\nSCRIPT POST n%[1]d look.sh\n", i)
	}
	d, err := dagfile.Read("", "flow.dag", func(string) ([]byte, error) { return []byte(dag.String()), nil })
	require.NoError(t, err)
	at := placesOf(d.Nodes)
	require.Len(t, at, len(d.Statements))
	for place, nodes := range at {
		require.Len(t, nodes, 1, place)
	}
	r := converted(t, "-- flow.dag --\n"+dag.String()+looksFiles, Options{Image: "centos", ScriptsInJobs: true})
	require.Empty(t, lost(r))
	require.Len(t, r.Workflow.Spec.Steps, 1)
}

func TestOfSeveralScriptsOfANodeTheLastRuns(t *testing.T) {
	r := converted(t, "-- flow.dag --\nJOB a work.sub\nSCRIPT PRE a nix.sh\nSCRIPT PRE a look.sh\n"+looksFiles,
		Options{Image: "centos", ScriptsInJobs: true})
	require.Empty(t, lost(r))
	require.Equal(t, "chmod +x ./look.sh\nexec ./look.sh\n", r.Workflow.Spec.Steps[0].Job.Script.Before.Source)
}

func TestNodesWhoseNamesBeginAlikeAreNamedAtOnce(t *testing.T) {
	const most = 100_000
	l := &lister{taken: map[v1alpha1.NodeName]bool{}, again: map[string]int{}}
	for i := range most {
		l.name(&dagfile.Node{Name: strings.Repeat("long_", 12) + fmt.Sprint(i)}, 0, 1)
	}
	require.Len(t, l.taken, most)
	require.True(t, l.taken[v1alpha1.NodeName(fmt.Sprintf("%.48s-%d", strings.Repeat("long_", 12), most))])
}

func TestWhatEndsASubDAGDoesNotEndTheWorkflow(t *testing.T) {
	r := converted(t, "-- flow.dag --\nJOB a work.sub\nSUBDAG EXTERNAL u inner.dag\nABORT-DAG-ON a 5\n"+
		"-- inner.dag --\nJOB b work.sub\nABORT-DAG-ON b 3 RETURN 0\n"+workFiles, Options{Image: "centos"})
	require.Contains(t, lost(r), "inner.dag:2: ABORT-DAG-ON b 3 RETURN 0\n    cannot: it would end the whole workflow")
	require.NotContains(t, lost(r), "flow.dag:3:")
	for _, s := range r.Workflow.Spec.Steps {
		require.Equal(t, s.Name == "a", len(s.AbortExitCodes) == 1, s.Name)
		require.Nil(t, s.AbortReturn)
	}
}

func TestNodesThatChangeWhatTheyPullAreStepsOfTheirOwn(t *testing.T) {
	files := "-- make.sub --\nexecutable = work.sh\narguments = $(n)\ntransfer_output_files = out.$(n)\nqueue\n" +
		"-- add.sub --\nexecutable = work.sh\narguments = $(n)\ntransfer_input_files = out.$(n)\n" +
		"transfer_output_files = out.$(n)\nqueue\n-- work.sh --\n#!/bin/sh\n"
	vars := "VARS a n=\"1\"\nVARS c n=\"2\"\nVARS b n=\"1\"\nVARS d n=\"2\"\n"
	for name, edges := range map[string]string{
		"alike":        "PARENT a CHILD b\nPARENT c CHILD d\n",
		"side by side": "PARENT a c CHILD b d\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := converted(t, "-- flow.dag --\nJOB a make.sub\nJOB c make.sub\nJOB b add.sub\nJOB d add.sub\n"+edges+vars+
				files, Options{Image: "centos"})
			require.NotNil(t, r.Workflow, lost(r))
			for _, s := range r.Workflow.Spec.Steps {
				for _, o := range s.Job.Outputs {
					matched := slices.ContainsFunc(s.Pull, func(p v1alpha1.Pull) bool { return p.Path == o.Path })
					require.False(t, matched && strings.Contains(o.Path, "*"), s.Name)
				}
			}
		})
	}
}
