package submit

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/programtest"
)

// dag returns a graph of a step that is pulled from, in two sequences, and one that pulls from both.
func dag() DAG {
	first, last := description(), description()
	first.Outputs, first.Environment = outputsOf("log"), map[string]string{"COLOUR": "red"}
	first.Tag, last.Tag = condor.Tag{}, condor.Tag{} // the DAG's is used
	return DAG{
		Tag: condor.Tag{
			UID:       "7f1f7c0e-8a43-4c0e-9d57-2f1b9bb1c7a1",
			Attempt:   2,
			Namespace: "default",
			Name:      "scan",
		}, BatchName: "scan",
		Steps: []DAGStep{
			{Description: first, Name: "generate", MaxJobs: 20, AlwaysSucceeds: true},
			{Description: last, Name: "merge", Pulls: []Pull{{From: 0, Path: "*.root", Several: true}}},
		},
		Nodes: []DAGNode{
			{Step: 0, Place: "job_0", Variables: "jobid=job_0\n"},
			{Step: 0, Place: "job_1", Variables: "jobid=job_1\n"},
			{Step: 1, Index: 3, Parents: []int{0, 1}, Pulls: [][]int{{0, 1}}, Inputs: []string{"0-a"}},
			{Step: 1, Parents: []int{0, 1}, Pulls: [][]int{nil}},
		},
		MaxIdle: 100, MaxJobs: 500, Pace: Pace{5, 3},
	}
}

// unpacked returns the files of a DAG's archive; directories have an empty text and a slash at the end of their names.
func unpacked(t *testing.T, s Sandbox) map[string]string {
	t.Helper()
	zip, err := gzip.NewReader(strings.NewReader(textOf(s, fileArchive)))
	require.NoError(t, err)
	files := map[string]string{}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		require.NoError(t, err)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		files[h.Name] = string(text)
	}
}

func TestDAGGolden(t *testing.T) {
	ar, err := txtar.ParseFile("testdata/dag.txtar")
	require.NoError(t, err)
	s, err := dag().Render()
	require.NoError(t, err)
	require.Equal(t, 1, s.Procs)
	got := unpacked(t, s)
	got[FileSubmit] = textOf(s, FileSubmit)
	got["dagman.sh"], _ = strings.CutSuffix(textOf(s, fileStarter), starterBody)
	for _, name := range []string{"s0.sh", "s1.sh"} {
		head, ok := strings.CutSuffix(got[name], outputsBody+nodeBody+callbackBody+wrapperBody)
		require.True(t, ok)
		got[name] = head
	}
	for _, f := range ar.Files {
		text, there := got[f.Name]
		require.True(t, there, f.Name)
		require.Equal(t, string(f.Data), text, f.Name)
		delete(got, f.Name)
	}
	require.Equal(t, map[string]string{
		"n/": "", "n/0/": "", "n/1/": "", "n/2/": "", "n/3/": "", "s0/": "", "s1/": "",
		"n/0/.htcd-pull/": "", "n/0/.htcd-pull/0/": "", "n/1/.htcd-pull/": "", "n/1/.htcd-pull/0/": "",
		"s1.sh": got["s1.sh"], "s1/script": "echo A\n",
	}, got, "what the golden file has not")
	again, err := dag().Render()
	require.NoError(t, err)
	require.Equal(t, s, again, "the same graph is the same archive")
}

func TestNothingOfAUserStandsInAGraphOrInItsNodesDescriptions(t *testing.T) {
	const word = "USERSWORD7"
	g := dag()
	for k := range g.Steps {
		d := &g.Steps[k].Description
		d.Source, d.Command, d.Environment = "echo "+word, "bash -c "+word, map[string]string{word: word}
		g.Steps[k].Name = word
	}
	for n := range g.Nodes {
		g.Nodes[n].Place, g.Nodes[n].Variables = word, word+"="+word+"\n"
	}
	g.Tag.Name = "scan"
	s, err := g.Render()
	require.NoError(t, err)
	files := unpacked(t, s)
	for _, name := range []string{"flow.dag.new", "s0.sub", "s1.sub"} {
		require.NotContains(t, files[name], word, name)
	}
	require.Contains(t, files["n/0/.own-0"], word)
	require.NotContains(t, textOf(s, FileSubmit)+textOf(s, fileStarter), word)
}

func TestTheFilesOfANodeTellItsPlace(t *testing.T) {
	g, dir := dag(), t.TempDir()
	g.Nodes[0].Place = "job_0/2"
	s, err := g.Render()
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "0"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "0", ".own-0"), []byte(unpacked(t, s)["n/0/.own-0"]), 0o600))
	place, err := PlaceOf(dir, 0)
	require.NoError(t, err)
	require.Equal(t, "job_0/2", place)
	_, err = PlaceOf(dir, 1)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestOfWhatANodesScriptMayHaveReplacedLittleIsRead(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "0"), 0o700))
	for _, name := range []string{".own-0", FileResults} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "0", name), nil, 0o600))
		require.NoError(t, os.Truncate(filepath.Join(dir, "0", name), 64<<20))
	}
	place, err := PlaceOf(dir, 0)
	require.NoError(t, err)
	require.Len(t, place, maxPlace+1, "it is no place")
	results, err := ResultsOf(dir, 0)
	require.NoError(t, err)
	require.Len(t, results, maxResults)
}

func TestGraphsThatCannotBeSentAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*DAG)
		words  string
	}{
		"no jobs":                    {func(g *DAG) { g.Nodes = nil }, "without jobs"},
		"no UID":                     {func(g *DAG) { g.Tag.UID = "" }, "UID"},
		"a step that is not there":   {func(g *DAG) { g.Nodes[0].Step = 2 }, "node 0: there is no step 2"},
		"a parent that is not there": {func(g *DAG) { g.Nodes[2].Parents = []int{4} }, "node 2: one of its parents"},
		"its own parent":             {func(g *DAG) { g.Nodes[2].Parents = []int{2} }, "node 2: one of its parents"},
		"a pull from no step":        {func(g *DAG) { g.Steps[1].Pulls[0].From = 2 }, "step merge pulls from a step that is not"},
		"a pull from another step":   {func(g *DAG) { g.Nodes[2].Pulls = [][]int{{3}} }, "node 2: node 3 is not one that it can pull from"},
		"a pull without a place":     {func(g *DAG) { g.Nodes[0].Place = "" }, "node 2: node 0 is not one"},
		"several of one name":        {func(g *DAG) { g.Steps[1].Pulls[0].Several = false }, "node 2: 2 files of one name"},
		"too few pulls":              {func(g *DAG) { g.Nodes[2].Pulls = nil }, "node 2: 0 pulls of a step that has 1"},
		"a place outside":            {func(g *DAG) { g.Nodes[0].Place = "../0" }, "identifier"},
		"a place of HTCondor's":      {func(g *DAG) { g.Nodes[0].Place = "_condor_stdout0" }, "identifier"},
		"a place that is the script": {func(g *DAG) { g.Nodes[0].Place = "script" }, "identifier"},
		"inputs outside":             {func(g *DAG) { g.Nodes[0].Inputs = []string{".."} }, "the directory \"..\""},
		"variables of no form":       {func(g *DAG) { g.Nodes[0].Variables = "x\n" }, "the variables of node 0: expected lines NAME=value"},
		"too many variables":         {func(g *DAG) { g.Nodes[0].Variables = strings.Repeat("a=b\n", 20_000) }, "at most 64 KiB"},
		"pulls that are no path":     {func(g *DAG) { g.Steps[1].Pulls[0].Path = "/etc/passwd" }, "step generate: spec.outputs: found"},
		"too many outputs":           {func(g *DAG) { g.Steps[0].Keeps = strings.Fields(strings.Repeat("a ", 1) + manyNames(20)) }, "step generate: expected at most 20 outputs"},
		"a URL":                      {func(g *DAG) { g.Steps[0].Outputs[0].URL = "https://x/y" }, "this site allows no URLs"},
		"inputs of single jobs":      {func(g *DAG) { g.Steps[0].Description.Inputs = []Input{{Name: "a", OfProc: true}} }, "inputs of single jobs"},
		"outputs in htcopts":         {func(g *DAG) { g.Steps[1].Options = "transfer_output_files = a" }, "step merge: transfer_output_files cannot be used in a workflow"},
		"a function that grows":      {func(g *DAG) { g.Steps[1].Options = "request_cpus = strcat(1)" }, "step merge: htcopts, line 1, column 16: request_cpus: found the function strcat"},
		"htcd's attributes":          {func(g *DAG) { g.Steps[1].Allow, g.Steps[1].Options = []string{"+HTCNode"}, "+HTCNode = 5" }, "htcd's own"},
		"a code that is no failure":  {func(g *DAG) { g.Steps[0].RetryExitCodes = []int{0} }, "from 1 to 255, found 0"},
		"codes without retries":      {func(g *DAG) { g.Steps[0].RetryExitCodes = []int{5} }, "expected retries beside them"},
		"codes and retry_until": {func(g *DAG) {
			g.Steps[0].RetryExitCodes, g.Steps[0].Options = []int{5}, "max_retries = 2\nretry_until = 3"
		}, "retry_until in htcopts and retryExitCodes"},
		"retries that disagree":       {func(g *DAG) { g.Steps[0].JobOptions.Retries, g.Steps[0].Options = new(1), "max_retries = 2" }, "spec.retries do not say the same"},
		"too many that it pulls from": {func(g *DAG) { g.Nodes[2].Pulls[0] = make([]int, 1001) }, "a job pulls from 1001 others, expected at most 1000"},
		"a throttle below 0":          {func(g *DAG) { g.MaxJobs = -1 }, "expected 0 or more"},
	} {
		t.Run(name, func(t *testing.T) {
			g := dag()
			c.change(&g)
			_, err := g.Render()
			require.ErrorContains(t, err, c.words)
			require.Equal(t, condor.Refused, condor.KindOf(err))
		})
	}
}

func manyNames(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "f%d ", i)
	}
	return b.String()
}

func TestStepsThatShareALimitAreOneCategory(t *testing.T) {
	g := dag()
	for k := range g.Steps {
		g.Steps[k].MaxJobs, g.Steps[k].Category = 7, "t0"
	}
	s, err := g.Render()
	require.NoError(t, err)
	flow := unpacked(t, s)["flow.dag.new"]
	require.Contains(t, flow, "CATEGORY N0 t0\n")
	require.Contains(t, flow, "CATEGORY N3 t0\n")
	require.Equal(t, 1, strings.Count(flow, "MAXJOBS t0 7\n"))
}

// elsewhere has the nodes of the first step write to URLs what others pull, and what a later DAG needs.
func elsewhere(g *DAG) {
	s := &g.Steps[0]
	s.AllowSchemes, s.Keeps = []string{"https"}, []string{"k*"}
	s.Outputs = []Output{
		{
			Path: "log",
		},
		{Path: "a.root", URL: "https://s/{name}/7/{jobid}-{proc}.root"},
		{Path: "kept/x", URL: "https://s/{jobid}/x"},
	}
}

func TestNodesWriteToURLsOfTheirOwn(t *testing.T) {
	g := dag()
	elsewhere(&g)
	g.Nodes[1].Place, g.Nodes[1].Index = "job_1/4", 4
	s, err := g.Render()
	require.NoError(t, err)
	files := unpacked(t, s)
	const remaps = "\ntransfer_output_remaps = \".htcd-out/.url/1 = https://s/scan/7/$(jobid)-$(index).root; .htcd-out/.url/2 = https://s/$(jobid)/x\"\n"
	require.Contains(t, files["s0.sub"], remaps)
	require.Contains(t, files["s0.sh"], "\nsent=' 1 2 '\n")
	require.Contains(t, files["s0.sh"], "\nboth=' 2 '\n", "a later DAG needs it")
	require.Contains(t, files["flow.dag.new"], "\nVARS N1 n=\"1\" files=\".own-1\" jobid=\"job_1\" index=\"4\"\n")
	require.NotContains(
		t,
		files["flow.dag.new"],
		"VARS N2 n=\"2\" files=\".own-2, ../0/.htcd-pull/0/, ../1/.htcd-pull/0/, ../../.in/0-a/\" jobid",
	)

	g = independent()
	elsewhere(&g)
	s, err = g.Render()
	require.NoError(t, err)
	files = unpacked(t, s)
	require.Contains(t, files["factory.sub"], remaps)
	require.Contains(t, files["factory.sub"], "\nqueue n, jobid, index, files from nodes.items\n")
	require.Contains(t, files["nodes.items"], "1 job_1 0 .own-1, ../../.in/0-a/, ../../.in/1-b/\n")
}

func TestWrapperOfANodeThatWritesToURLs(t *testing.T) {
	for shell, argv := range shellsOf(t, "a node that writes to URLs") {
		for source, want := range map[string][]string{
			"true":   {".url/1", ".url/2", "1/kept/x", "1/log", "1.sent"},
			"exit 3": {"1/kept/x", "1/log"},
		} {
			t.Run(source+" "+shell, func(t *testing.T) {
				t.Parallel()
				r := receive(t)
				s := nodeScratch(t, r, func(g *DAG) {
					elsewhere(g)
					g.Steps[0].AlwaysSucceeds = false
					g.Steps[0].Source = "mkdir kept; echo x >log; echo x >a.root; echo x >kept/x; " + source + "\n"
				})
				s.shell = argv
				s.ad(t, `TransferOutput = ".htcd-out,.htcd-pull"`, "NumJobStarts = 1")
				cmd := s.command()
				cmd.Args[len(cmd.Args)-1] = "0"
				_ = cmd.Run()
				require.ElementsMatch(t, want, filesBelow(t, filepath.Join(s.dir, ".htcd-out")))
				require.Len(t, r.events, 1)
				data := r.events[0]["data"].(map[string]any)
				_, told := data["retcode"]
				require.Equal(t, source != "true", told, "of a success HTCondor tells when the files are written")
				require.Equal(t, source == "true", data["held"] == true)
				if source == "true" {
					require.Equal(t, []string{"0/job_0/a.root"}, filesBelow(t, filepath.Join(s.dir, ".htcd-pull")))
				}
			})
		}
	}
}

func TestRetriesOfANode(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*DAGStep)
		lines    string
		codes    string // of success, for the wrapper
		deferred bool
	}{
		"none":             {func(*DAGStep) {}, "", "0", false},
		"other successes":  {func(s *DAGStep) { s.JobOptions.SuccessCodes = []int{3, 0} }, "", "3 0", false},
		"any failure":      {func(s *DAGStep) { s.JobOptions.Retries = new(2) }, "max_retries = 2\n", "0", true},
		"some codes":       {func(s *DAGStep) { s.JobOptions.Retries, s.RetryExitCodes = new(2), []int{75, 76} }, "max_retries = 2\nretry_until = ExitBySignal =!= false || !member(ExitCode, {75,76})\n", "0", true},
		"codes in htcopts": {func(s *DAGStep) { s.Options, s.RetryExitCodes = "max_retries = 4", []int{75} }, "max_retries = 4\nretry_until = ExitBySignal =!= false || !member(ExitCode, {75})\n", "0", true},
		"an end of all":    {func(s *DAGStep) { s.JobOptions.Retries, s.AbortExitCodes = new(2), []int{9} }, "max_retries = 2\nretry_until = ExitBySignal =?= false && member(ExitCode, {9})\n", "0", true},
		"an end beside a code": {func(s *DAGStep) {
			s.Options, s.JobOptions.Retries, s.AbortExitCodes = "retry_until = 4", new(2), []int{9}
		}, "max_retries = 2\nretry_until = ExitBySignal =?= false && member(ExitCode, {9}) || ExitCode =?= 4\n", "0", true},
		"an end beside others": {func(s *DAGStep) {
			s.JobOptions.Retries, s.RetryExitCodes, s.AbortExitCodes = new(2), []int{9, 75}, []int{9}
		}, "max_retries = 2\nretry_until = ExitBySignal =!= false || !member(ExitCode, {75})\n", "0", true},
		"a success there": {func(s *DAGStep) { s.Options = "success_exit_code = 5\nmax_retries = 1" }, "max_retries = 1\nretry_until = ExitCode =?= 0\n", "5", true},
		"successes, too":  {func(s *DAGStep) { s.JobOptions.SuccessCodes, s.JobOptions.Retries = []int{3, 5}, new(1) }, "max_retries = 1\n", "3 5", true},
	} {
		t.Run(name, func(t *testing.T) {
			g := dag()
			c.change(&g.Steps[1])
			s, err := g.Render()
			require.NoError(t, err)
			files := unpacked(t, s)
			var lines strings.Builder
			for line := range strings.Lines(files["s1.sub"]) {
				if strings.Contains(line, "retr") || strings.HasPrefix(line, "success") {
					lines.WriteString(line)
				}
			}
			require.Equal(t, c.lines, lines.String())
			require.Contains(t, files["s1.sh"], "\nsuccesses='"+c.codes+"'\n")
			require.NotContains(t, files["s1.sub"], condor.AttrSuccess)
			require.Equal(t, []bool{false, c.deferred}, []bool{s.Steps[0].Deferred, s.Steps[1].Deferred})
			require.Equal(t, c.deferred, s.Deferred)
		})
	}
}

func TestThePriorityOfAStepIsDAGMansToo(t *testing.T) {
	g := dag()
	g.Steps[0].Options, g.Steps[1].JobOptions.Priority = "priority = -3", new(5)
	s, err := g.Render()
	require.NoError(t, err)
	flow := unpacked(t, s)["flow.dag.new"]
	require.Contains(t, flow, "\nPRIORITY N1 -3\n")
	require.Contains(t, flow, "\nPRIORITY N2 5\n")
	g.Nodes[2].Priority = new(9)
	s, err = g.Render()
	require.NoError(t, err)
	require.Contains(t, unpacked(t, s)["flow.dag.new"], "\nPRIORITY N2 9\n")
}

func TestAGraphOf100000NodesIsAFewMB(t *testing.T) {
	g := dag()
	g.Nodes = nil
	for n := range 100_000 {
		node := DAGNode{Step: n % 2, Place: fmt.Sprint("job_", n/2), Variables: fmt.Sprintf("jobid=job_%d\n", n/2)}
		if node.Step == 1 {
			node.Parents, node.Pulls = []int{n - 1}, [][]int{{n - 1}}
		}
		g.Nodes = append(g.Nodes, node)
	}
	s, err := g.Render()
	require.NoError(t, err)
	require.Less(t, len(textOf(s, fileArchive)), 8<<20)
}

func TestManyParentsOfManyNodesAreOneLine(t *testing.T) {
	g := dag()
	parents := []int{0, 1}
	for range 300 {
		g.Nodes = append(g.Nodes, DAGNode{Step: 1, Parents: parents, Pulls: [][]int{nil}})
	}
	s, err := g.Render()
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(unpacked(t, s)["flow.dag.new"], "PARENT"))
}

// nodeScratch makes the scratch directory of a node, as HTCondor would.
func nodeScratch(t *testing.T, r *receiver, change func(*DAG)) scratch {
	t.Helper()
	g := dag()
	g.Steps[0].Description = r.description(g.Steps[0].Source)
	change(&g)
	s, err := g.Render()
	require.NoError(t, err)
	tools := gatheringTools()
	tools["tr"], tools["cp"], tools["date"] = "", "", ""
	sc := node(t, r.description(""), tools)
	files := unpacked(t, s)
	for name, from := range map[string]string{"job.sh": "s0.sh", "script": "s0/script", ".own-0": "n/0/.own-0"} {
		programtest.Write(t, filepath.Join(sc.dir, name), files[from])
	}
	return sc
}

func TestWrapperOfANode(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*DAGStep)
		source  string
		code    int
		retcode int
		stderr  string
		files   []string // of .htcd-out
		pulled  []string
	}{
		"a success":                       {func(*DAGStep) {}, "echo x >log; echo y >a.root; echo noise >&2", 0, 0, "", []string{"log"}, []string{"0/job_0/a.root"}},
		"another success":                 {func(s *DAGStep) { s.JobOptions.SuccessCodes = []int{4} }, "echo x >log; echo y >a.root; exit 4", 0, 4, "", []string{"log"}, []string{"0/job_0/a.root"}},
		"0 is none":                       {func(s *DAGStep) { s.JobOptions.SuccessCodes = []int{4} }, "echo 'no \"way\\' >&2", 1, 0, "no \"way\\", nil, nil},
		"a failure":                       {func(*DAGStep) {}, "echo y >a.root; printf 'a\\tb\\nc\\001\\n' >&2; exit 3", 3, 3, "a\tb\nc?", nil, nil},
		"how long it ran":                 {func(s *DAGStep) { s.Timed = true }, "echo x >log; echo y >a.root", 0, 0, "", []string{".htcd-results", "log"}, []string{"0/job_0/a.root"}},
		"a failure that is one no longer": {func(s *DAGStep) { s.AlwaysSucceeds = true }, "echo y >a.root; echo why >&2; exit 3", 0, 3, "why", nil, []string{"0/job_0/a.root"}},
		"an output that is missing does not matter": {func(s *DAGStep) { s.AlwaysSucceeds = true }, "echo y >a.root", 0, 168, "htcd: missing", nil, []string{"0/job_0/a.root"}},
		"no outputs are named":                      {func(s *DAGStep) { s.Outputs = nil }, "echo y >a.root; echo x >'a b'; echo x >.hidden; mkdir d; echo x >d/x; ln -s a.root link", 0, 0, "", []string{"a b", "a.root", "link"}, []string{"0/job_0/a.root"}},
		"and one is kept":                           {func(s *DAGStep) { s.Outputs, s.Keeps = nil, []string{"d/x"} }, "echo y >a.root; mkdir d; echo x >d/x", 0, 0, "", []string{"a.root", "d/x"}, []string{"0/job_0/a.root"}},
		"named and pulled":                          {func(s *DAGStep) { s.Outputs = outputsOf("*.root") }, "echo y >a.root; mkdir b.root; echo z >b.root/z", 0, 0, "", []string{"a.root", "b.root/z"}, []string{"0/job_0/a.root", "0/job_0/b.root/z"}},
	} {
		for shell, argv := range shellsOf(t, name) {
			t.Run(name+" "+shell, func(t *testing.T) {
				t.Parallel()
				r := receive(t)
				s := nodeScratch(t, r, func(g *DAG) {
					g.Steps[0].AlwaysSucceeds = false
					g.Steps[0].Outputs = outputsOf("log")
					g.Steps[0].Source = c.source + "\n"
					c.change(&g.Steps[0])
				})
				s.shell = argv
				s.ad(t, `TransferOutput = ".htcd-out,.htcd-pull"`, "NumJobStarts = 1")
				cmd := s.command()
				cmd.Args[len(cmd.Args)-1] = "0"
				stderr, err := os.Create(filepath.Join(s.dir, condor.Stderr))
				require.NoError(t, err)
				cmd.Stderr = stderr
				_ = cmd.Run()
				require.NoError(t, stderr.Close())
				text, err := os.ReadFile(stderr.Name())
				require.NoError(t, err)
				require.Equal(t, c.code, cmd.ProcessState.ExitCode(), string(text))
				require.ElementsMatch(t, c.files, filesBelow(t, filepath.Join(s.dir, ".htcd-out", "1")))
				require.DirExists(t, filepath.Join(s.dir, ".htcd-pull", "0"))
				require.ElementsMatch(t, c.pulled, filesBelow(t, filepath.Join(s.dir, ".htcd-pull")))
				require.Len(t, r.events, 1)
				data := r.events[0]["data"].(map[string]any)
				require.EqualValues(
					t,
					[]any{0.0, float64(c.code), float64(c.retcode)},
					[]any{data["node"], data["exit"], data["retcode"]},
				)
				said, _ := data["stderr"].(string)
				require.True(t, said == c.stderr || c.stderr != "" && strings.HasPrefix(said, c.stderr), said)
			})
		}
	}
}

func TestWrapperOfANodeSendsNoMoreOfStderrThanItMay(t *testing.T) {
	r := receive(t)
	s := nodeScratch(
		t,
		r,
		func(g *DAG) { g.Steps[0].Source = "rm _condor_stderr; ln -s .htcd/token _condor_stderr; exit 1\n" },
	)
	s.run(t)
	require.NotContains(t, fmt.Sprint(r.events), "tok-0123456789")
	s = nodeScratch(t, r, func(g *DAG) { g.Steps[0].Source = "seq 100000 >_condor_stderr; exit 1\n" })
	require.NoError(t, os.Symlink("/usr/bin/seq", filepath.Join(s.bin, "seq")))
	s.run(t)
	said := r.events[1]["data"].(map[string]any)["stderr"].(string)
	require.LessOrEqual(t, len(said), 4096)
	require.True(t, strings.HasSuffix(said, "\n100000"), said)
}

func TestADAGThatCannotRunSaysWhy(t *testing.T) {
	why, is := condor.Job{Status: condor.Held, HoldReasonCode: 3, HoldReasonSubCode: 122}.Unable()
	require.True(t, is)
	require.Contains(t, why, "needs FS")
	for _, j := range []condor.Job{{Status: condor.Held, HoldReasonCode: 3}, {Status: condor.Held, HoldReasonCode: 1,
		HoldReasonSubCode: 122}, {Status: condor.Running, HoldReasonCode: 3, HoldReasonSubCode: 122}} {
		_, is := j.Unable()
		require.False(t, is)
	}
}

func TestACredentialIsInTheDirectoryOfItsStepAlone(t *testing.T) {
	g := dag()
	g.Steps[0].Credentials = []Credential{{Name: "atlas", Variable: "X509_USER_PROXY", Content: "SECRET"}}
	g.Steps[0].PullURL, g.Steps[0].PullToken = "https://receiver.test/credentials/u/2/0", "asked-with"
	g.Steps[0].Inputs, g.Steps[0].AllowSchemes = []Input{
		{Name: "db", Secret: true},
		{Name: "x", URL: "https://store.test/x"},
	}, []string{
		"https",
	}
	s, err := g.Render()
	require.NoError(t, err)
	for name, text := range unpacked(t, s) {
		require.Equal(t, name == "s0/.credential-atlas", strings.Contains(text, "SECRET"), name)
		require.Equal(t, name == "s0/.pull-token", strings.Contains(text, "asked-with"), name)
	}
	for _, f := range s.Files {
		require.NotContains(t, f.Content, "SECRET", f.Name)
	}
	sub := unpacked(t, s)["s0.sub"]
	require.Contains(t, sub, "transfer_plugins = https=.htcd-plugin-https\n")
	require.Contains(
		t,
		unpacked(t, s),
		"n/0/.htcd-plugin-https",
		"HTCondor 25 looks for it under that name on the node, too",
	)
	require.Contains(t, sub, ", https://store.test/x, ")
	require.Contains(t, unpacked(t, s)["s0.sh"], "secrets='db'\n")
}
