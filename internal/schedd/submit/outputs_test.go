package submit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

func outputsOf(paths ...string) []Output {
	var all []Output
	for _, path := range paths {
		all = append(all, Output{Path: path})
	}
	return all
}

func TestOutputsThatCannotBeBroughtBackAreRefused(t *testing.T) {
	for path, words := range map[string]string{
		"":                       "expected a path in the script's directory",
		"/etc/passwd":            "expected a path",
		"../other":               "expected a path",
		"a/../b":                 "expected a path",
		"a/./b":                  "expected a path",
		"a//b":                   "expected a path",
		"a/":                     "expected a path",
		".htcd-out":              "expected a path",
		"a/.hidden":              "expected a path",
		"a,b":                    "expected a path",
		"a\nb":                   "expected a path",
		"a b":                    "expected a path",
		"a\\*":                   "expected a path",
		"$(Process)":             "expected a path",
		"$$(OpSys)":              "expected a path",
		"`id`":                   "expected a path",
		"a'b":                    "expected a path",
		`a"b`:                    "expected a path",
		"-rf":                    "expected a path",
		"größe":                  "expected a path",
		"script":                 "a name that htcd or HTCondor uses",
		"token":                  "a name that htcd or HTCondor uses",
		"job.sh":                 "a name that htcd or HTCondor uses",
		"htcd-send":              "a name that htcd or HTCondor uses",
		"tmp/a":                  "a name that htcd or HTCondor uses",
		"_condor_stdout":         "a name that htcd or HTCondor uses",
		strings.Repeat("a", 201): "at most 200 characters",
	} {
		d := description()
		d.Outputs = outputsOf(path)
		_, err := d.Render()
		require.ErrorContains(t, err, words, "%q", path)
		require.Equal(t, condor.Refused, condor.KindOf(err))
	}
	for name, c := range map[string]struct {
		change func(*Description)
		words  string
	}{
		"too many": {func(d *Description) { d.Outputs = make([]Output, condor.MaxOutputs+1) }, "at most 20, found 21"},
		"a Secret": {func(d *Description) {
			d.Outputs, d.Inputs = outputsOf("pass"), []Input{{Name: "pass", Secret: true}}
		}, "spec.outputs: pass comes from a Secret and is never brought back"},
		"twice": {func(d *Description) { d.Outputs = outputsOf("a", "b", "a") }, `found "a" twice`},
		"beside the user's own list": {func(d *Description) { d.Outputs, d.Options = outputsOf("a"), "transfer_output_files = a" },
			"transfer_output_files in htcopts and spec.outputs do not say the same"},
		"a code that says that one is missing is a success": {func(d *Description) { d.Outputs, d.JobOptions.SuccessCodes = outputsOf("a"), []int{0, 187} },
			"the return code 187 as a success: with spec.outputs, those from 168 to 187 may also be what a site's own container makes of a missing file"},
		"such a code in htcopts": {func(d *Description) { d.Outputs, d.Options = outputsOf("a"), "success_exit_code = 168" }, "the return code 168 as a success"},
	} {
		t.Run(name, func(t *testing.T) {
			d := description()
			c.change(&d)
			_, err := d.Render()
			require.ErrorContains(t, err, c.words)
		})
	}
}

func TestAJobWithOutputsBringsBackOneDirectory(t *testing.T) {
	d := description()
	d.Outputs = outputsOf("result/*.root", "big[0-9]?.dat", "plots")
	d.JobOptions.SuccessCodes = []int{3, 5}
	s, err := d.Render()
	require.NoError(t, err)
	require.True(t, s.Deferred, "HTCondor alone knows whether one is missing")
	require.Contains(
		t,
		textOf(s, FileSubmit),
		"\ntransfer_output_files = .htcd-out\nMy.HTCJobOutputs = \"result/*.root,big[0-9]?.dat,plots\"\n",
	)
	head, ok := strings.CutSuffix(textOf(s, fileJob), outputsBody+callbackBody+wrapperBody)
	require.True(t, ok)
	require.Contains(
		t,
		head,
		"declared='result/*.root\nbig[0-9]?.dat\nplots'\nsuccesses='3 5'\nnoimage='37'\nlacking='40'\n",
	)

	d.Outputs = nil
	for range condor.MaxOutputs {
		d.Outputs = append(
			d.Outputs,
			Output{Path: strings.Repeat("a", condor.MaxOutputPath-2) + fmt.Sprintf("%02d", len(d.Outputs))},
		)
	}
	_, err = d.Render()
	require.NoError(t, err)
	require.LessOrEqual(t, len(quotedPaths(d.Outputs)), condor.MaxText, "the schedd tells it")
}

func TestAJobThatLacksAnOutputHasFailed(t *testing.T) {
	yes, no := true, false
	for name, c := range map[string]struct {
		job  condor.Job
		want string // path, "" if none is missing
	}{
		"the first is missing":     {condor.Job{ExitBySignal: &yes, ExitSignal: new(40), Outputs: "a,b/*.root"}, "a"},
		"the second is missing":    {condor.Job{ExitBySignal: &yes, ExitSignal: new(41), Outputs: "a,b/*.root"}, "b/*.root"},
		"the script's own code":    {condor.Job{ExitBySignal: &no, ExitCode: new(168), Outputs: "a,b/*.root"}, ""},
		"there are not so many":    {condor.Job{ExitBySignal: &yes, ExitSignal: new(42), Outputs: "a,b"}, ""},
		"none was declared":        {condor.Job{ExitBySignal: &no, ExitCode: new(168)}, ""},
		"another signal":           {condor.Job{ExitBySignal: &yes, ExitSignal: new(9), Outputs: "a"}, ""},
		"a success":                {condor.Job{ExitBySignal: &no, ExitCode: new(0), Outputs: "a"}, ""},
		"somebody edited the list": {condor.Job{ExitBySignal: &yes, ExitSignal: new(40), Outputs: "a\x1b[31m"}, "number 1"},
	} {
		t.Run(name, func(t *testing.T) {
			c.job.Status = condor.Completed
			o := c.job.Outcome()
			if c.want == "" {
				require.NotEqual(t, "OutputMissing", o.Reason)
				return
			}
			require.True(t, c.job.MayLack())
			require.Equal(t, condor.Outcome{State: condor.OutcomeFailed, Reason: "OutputMissing",
				Message: "the script succeeded, but left no " + c.want + ", which spec.outputs names"}, o)
			c.job.Status = condor.Removed
			require.False(t, c.job.MayLack(), "what a removed job's ad says is left over")
		})
	}
}

// tools of a node that a job with outputs needs.
func gatheringTools() map[string]string {
	return map[string]string{
		"apptainer": fakeApptainer,
		"curl":      "",
		"sh":        "",
		"mv":        "",
		"find":      "",
		"readlink":  "",
		"ln":        "",
		"mkfifo":    "",
		"touch":     "",
	}
}

func TestWrapperGathersWhatIsDeclared(t *testing.T) {
	odd := []string{"a,b.root", "two\nlines.root", " first.root", "$$(Y).root", "-f.root", ".hidden.root"}
	for name, c := range map[string]struct {
		outputs []string
		source  string
		files   []string // in .htcd-out
		signal  int      // the wrapper's end, 0: exit code 0
		stderr  string
	}{
		"files of a pattern":             {[]string{"result/*.root"}, "mkdir result; touch result/a.root result/b.root result/c.txt d.root", []string{"result/a.root", "result/b.root"}, 0, ""},
		"a directory":                    {[]string{"result"}, "mkdir -p result/x/y; touch result/.h result/x/y/z other", []string{"result/.h", "result/x/y/z"}, 0, ""},
		"odd names in a directory":       {[]string{"d"}, "mkdir d; cd d; touch 'a,b.root' 'two\nlines.root' ' first.root' '$$(Y).root' ./-f.root .hidden.root", in("d", odd...), 0, ""},
		"odd names at the top":           {[]string{"*.root"}, "touch 'a,b.root' 'two\nlines.root' ' first.root' '$$(Y).root' ./-f.root .hidden.root", odd[:5], 0, ""},
		"nothing of htcd's own":          {[]string{"*"}, "touch mine .mine _condor_mine; mkdir tmp; touch tmp/a", []string{"mine"}, 0, ""},
		"a file and its directory":       {[]string{"r/*.root", "r", "r/b.txt"}, "mkdir -p r/s; touch r/a.root r/b.txt r/s/c", []string{"r/a.root", "r/b.txt", "r/s/c"}, 0, ""},
		"a directory and its file":       {[]string{"r", "r/a.root"}, "mkdir r; touch r/a.root", []string{"r/a.root"}, 0, ""},
		"an empty directory":             {[]string{"r"}, "mkdir r", nil, 0, ""},
		"links to what is moved":         {[]string{"a", "l*", "d"}, "mkdir d; echo x >a; ln -s a l; ln -s ../l d/l; ln -s b lb; mkdir b", []string{"a", "l", "d/l"}, 0, ""},
		"a directory that is locked":     {[]string{"r"}, "mkdir -p r/s; touch r/s/a; chmod 000 r/s/a; chmod 500 r/s r", []string{"r/s/a"}, 0, ""},
		"links to files come as files":   {[]string{"r", "l"}, "mkdir r; echo x >f; ln -s ../f r/l; ln -s f l; ln -s r r/dir; ln -s nowhere r/none", []string{"r/l", "l"}, 0, ""},
		"a FIFO is nothing":              {[]string{"p", "f"}, "mkfifo p; touch f", []string{"f"}, 40, "named in spec.outputs: p"},
		"the script made the directory":  {[]string{"f"}, "mkdir -p .htcd-out/x; touch .htcd-out/x/y f; chmod 500 .htcd-out/x", []string{"f"}, 0, ""},
		"one is missing":                 {[]string{"f", "r/*.root", "g"}, "touch f; mkdir r", []string{"f"}, 41, "named in spec.outputs: r/*.root, g"},
		"one is missing, and it failed":  {[]string{"f", "g"}, "touch f; exit 3", []string{"f"}, -3, ""},
		"another code is a success, too": {[]string{"f", "g"}, "touch f; exit 5", []string{"f"}, 41, "named in spec.outputs: g"},
		"a directory is not a pattern":   {[]string{"*/f"}, "mkdir a b; touch a/f b/f f", []string{"a/f", "b/f"}, 0, ""},
		"inputs only by their own names": {[]string{"*.in", "b.in"}, "touch a.in b.in c.in", []string{"b.in", "c.in"}, 0, ""},
		"names that look like patterns":  {[]string{"a[1]", "x?"}, "touch a1 'a[1]' 'x*'", []string{"a1", "x*"}, 0, ""},
	} {
		for shell, argv := range shellsOf(t, name) {
			t.Run(name+" "+shell, func(t *testing.T) {
				t.Parallel()
				r := receive(t)
				d := r.description(c.source + "\n")
				d.Outputs, d.JobOptions.SuccessCodes = outputsOf(c.outputs...), []int{0, 5}
				d.Inputs = []Input{{Name: "a.in"}, {Name: "b.in"}}
				s := node(t, d, gatheringTools())
				s.shell = argv
				s.ad(t, `TransferOutput = ".htcd-out"`, "NumJobStarts = 3")
				cmd := s.command()
				var stderr strings.Builder
				cmd.Stderr = &stderr
				_ = cmd.Run()
				status := cmd.ProcessState.Sys().(syscall.WaitStatus)
				if c.signal > 0 {
					require.True(t, status.Signaled(), stderr.String())
					require.Equal(t, syscall.Signal(c.signal), status.Signal())
				} else {
					require.Equal(t, -c.signal, status.ExitStatus(), stderr.String())
				}
				require.Contains(t, stderr.String(), c.stderr)
				if c.stderr == "" {
					require.Empty(t, stderr.String())
				}
				require.ElementsMatch(t, c.files, filesBelow(t, filepath.Join(s.dir, ".htcd-out", "3")))
				require.Len(t, r.events, 1)
				if c.signal > 0 {
					require.EqualValues(t, 128+c.signal, r.events[0]["data"].(map[string]any)["retcode"])
				}
			})
		}
	}
}

func in(dir string, names ...string) []string {
	var all []string
	for _, name := range names {
		all = append(all, dir+"/"+name)
	}
	return all
}

// filesBelow lists what HTCondor would bring: no links to directories among them, which it refuses.
func filesBelow(t *testing.T, dir string) (files []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := os.Stat(path)
		require.NoError(t, err, "a link to nowhere")
		require.True(t, info.Mode().IsRegular(), path)
		name, err := filepath.Rel(dir, path)
		files = append(files, name)
		return err
	}))
	return files
}

// A job that is removed is not judged.
func TestWrapperThatIsToldToEndJudgesNoOutputs(t *testing.T) {
	r := receive(t)
	d := r.description("kill -TERM $PPID; sleep 5; exit 0\n")
	d.Outputs = outputsOf("f")
	s := node(t, d, gatheringTools())
	code, _, stderr := s.run(t)
	require.NotEqual(t, 168, code, stderr)
	require.Empty(t, r.events)
	require.DirExists(t, filepath.Join(s.dir, ".htcd-out"), "HTCondor holds a job without it")
}

func TestWrapperMakesTheDirectoryOfOutputsBeforeTheScript(t *testing.T) {
	r := receive(t)
	d := r.description("ls -A \"$_CONDOR_SCRATCH_DIR\"\n")
	d.Outputs = outputsOf("f")
	tools := gatheringTools()
	tools["ls"] = ""
	_, stdout, _ := node(t, d, tools).run(t)
	require.True(t, slices.Contains(strings.Fields(stdout), ".htcd-out"), "it is there if the job is killed")
}
