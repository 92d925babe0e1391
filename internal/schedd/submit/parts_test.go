package submit

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// seeingApptainer is a fakeApptainer in which a script sees its variables.
const seeingApptainer = `#!/bin/sh
eval "$(env | sed -n 's/^APPTAINERENV_\([A-Z_]*\)=\(.*\)/export \1="\2"/p')"
` + enterFake + `
exec "$@"
`

func TestWhatRunsBeforeAndAfterTheScriptDecides(t *testing.T) {
	const script = "echo script; "
	for name, c := range map[string]struct {
		before, source, after string
		codes                 []int
		code                  int
		stdout, stderr        string
	}{
		"all go well": {"echo before", script, "echo after $RETURN", nil, 0, "before\nscript\nafter 0\n", ""},
		"what fails before keeps the script from running": {
			"echo before; exit 3", script, "echo after", nil, 3, "before\n",
			"htcd: script.before has ended with the return code 3: the script was not run\n",
		},
		"whatever counts as a success of the job": {"exit 3", script, "", []int{0, 1, 3}, 125, "", "return code 3"},
		"what runs after says whether a failure is one": {
			"", script + "exit 4", "echo $RETURN; [ $RETURN = 4 ]", nil, 0, "script\n4\n",
			"htcd: the script has ended with the return code 4, and script.after, which decides, with 0\n",
		},
		"or a success":                        {"", script, "exit 5", nil, 5, "script\n", "return code 0, and script.after, which decides, with 5\n"},
		"and its code is judged as the job's": {"", script, "exit 7", []int{7}, 7, "script\n", "with 7\n"},
		"a script that is killed has ended":   {"", script + "kill -9 $$", "echo $RETURN", nil, 0, "script\n137\n", "return code 137"},
		"a script that cannot be found in the end": {
			"", "rm -f script; mkdir .htcd-after; echo evil >.htcd-after/x; chmod 000 .htcd-after", "echo after", nil, 0,
			"after\n", "",
		},
	} {
		for shell, argv := range shellsOf(t, name) {
			t.Run(name+" "+shell, func(t *testing.T) {
				t.Parallel()
				r := receive(t)
				d := r.description(c.source + "\n")
				d.JobOptions.SuccessCodes = c.codes
				if c.before != "" {
					d.Before = &Part{Source: c.before}
				}
				if c.after != "" {
					d.After = &Part{Source: c.after}
				}
				s := node(t, d, map[string]string{"apptainer": seeingApptainer, "curl": "", "sh": ""})
				s.shell = argv
				code, stdout, stderr := s.run(t)
				require.Equal(t, c.code, code, stderr)
				require.Equal(t, c.stdout, stdout)
				require.Contains(t, stderr, c.stderr)
				if c.stderr == "" {
					require.Empty(t, stderr)
				}
				require.Len(t, r.events, 1)
				require.EqualValues(t, c.code, r.events[0]["data"].(map[string]any)["retcode"])
				left, err := filepath.Glob(filepath.Join(s.dir, ".htcd*"))
				require.NoError(t, err)
				require.Empty(t, left)
			})
		}
	}
}

func TestEachPartHasItsOwnCommandAndArgumentsAndTheJobsVariables(t *testing.T) {
	for shell, argv := range shells(t) {
		t.Run(shell, func(t *testing.T) {
			d := description()
			const shows = `echo "$0" "$@" $SAME $FILE $HTC_RETRY` + "\n"
			d.Command, d.Source = "sh", "ls -A\n"+shows
			d.Queue, d.Items = 3, []string{"FILE=a\n", "FILE=b\n", "FILE=it's c\n"}
			d.Environment = map[string]string{"SAME": "same"}
			d.Args = []string{"x"}
			d.Before = &Part{Source: shows, Command: "sh -e"}
			d.After = &Part{Source: shows, Args: []string{"{{item.FILE}}", "$(date) '", "{{proc}}"}}
			s := node(t, d, map[string]string{"apptainer": seeingApptainer, "sh": "", "ls": ""})
			own := "tok-0123456789\n\n" + d.itemFiles()[2].Content
			require.NoError(t, os.WriteFile(filepath.Join(s.dir, ".own-2"), []byte(own), 0o600))
			s.shell = argv
			code, stdout, stderr := s.run(t)
			require.Equal(t, 0, code, stderr)
			dir := filepath.Join(s.dir, ".htcd/job")
			lines := strings.Split(stdout, "\n")
			require.Equal(t, dir+"/.htcd-before 2 same it's c 0", lines[0])
			require.Equal(t, dir+"/script x same it's c 0", lines[len(lines)-3])
			require.Equal(t, dir+"/.htcd-after it's c $(date) ' 2 same it's c 0", lines[len(lines)-2])
			require.NotContains(t, lines, ".htcd-after", "the script does not see what decides about it")
		})
	}
}

func TestAJobThatIsAskedToEndRunsNothingMore(t *testing.T) {
	const asked = "trap 'echo asked; exit 7' TERM; echo started; while :; do sleep 0.01; done"
	endsIn := func(part string) string { return "htcd: the job was asked to end while " + part + " ran\n" }
	for name, c := range map[string]struct {
		change func(d *Description)
		code   int
		says   string
	}{
		"the script":    {func(d *Description) { d.Source = asked }, 7, ""},
		"script.before": {func(d *Description) { d.Before, d.Source = &Part{Source: asked}, "echo script" }, 7, endsIn("script.before")},
		"with successes": {
			func(d *Description) { d.Before, d.JobOptions.SuccessCodes = &Part{Source: asked}, []int{0, 7} }, 1, endsIn("script.before"),
		},
		"script.after": {func(d *Description) { d.Source, d.After.Source = "exit 3", asked }, 7, endsIn("script.after")},
	} {
		for shell, argv := range shellsOf(t, name) {
			t.Run(name+" "+shell, func(t *testing.T) {
				t.Parallel()
				r := receive(t)
				d := r.description("")
				d.After = &Part{Source: "echo after"}
				c.change(&d)
				s := node(t, d, map[string]string{"apptainer": seeingApptainer, "curl": "", "sh": ""})
				s.shell = argv
				require.Equal(t, "asked\n", s.toldToEnd(t, c.code))
				require.Empty(t, r.events)
				errs, err := os.ReadFile(filepath.Join(s.dir, "..", "stderr"))
				require.NoError(t, err)
				require.Equal(t, c.says, string(errs))
			})
		}
	}
}

func TestACheckpointIsNoEndForWhatRunsAfterTheScript(t *testing.T) {
	for name, shell := range shellsOf(t, t.Name()) {
		t.Run(name, func(t *testing.T) {
			to := receive(t)
			d := checkpointing(oneUnit)
			d.CallbackURL, d.Environment = to.URL, map[string]string{"A": "b"}
			d.Before = &Part{Source: "echo before"}
			d.After = &Part{Source: "echo after $RETURN $A; exit 85"}
			tools := maps.Clone(checkpointTools)
			tools["apptainer"] = seeingApptainer
			s := node(t, d, tools)
			s.bin, s.shell = s.bin+":"+os.Getenv("PATH"), shell
			code, out, errs := s.run(t)
			require.Equal(t, 85, code, errs)
			require.Equal(t, "before\nunit 1 2\n", out)
			code, out, errs = s.run(t)
			require.Equal(t, 85, code, errs)
			require.Equal(t, "again\nunit 2 2\n", out, "it goes on where it was")

			other := node(t, d, tools)
			other.bin, other.shell = other.bin+":"+os.Getenv("PATH"), shell
			require.NoError(
				t,
				os.CopyFS(filepath.Join(other.dir, DirCheckpoint), os.DirFS(filepath.Join(s.dir, DirCheckpoint))),
			)
			code, out, errs = other.run(t)
			require.Equal(t, 85, code, errs)
			require.Equal(t, "before\nunit 3 2\n", out, "what it had left is gone")
			require.Empty(t, to.events)
			code, out, errs = other.run(t)
			require.Equal(t, 1, code, "the code of a checkpoint is none of what runs after: %s", errs)
			require.Equal(t, "again\nunit 4 2\nafter 3 b\n", out)
			require.Len(t, to.events, 1)
			require.EqualValues(t, 1, to.events[0]["data"].(map[string]any)["retcode"])
		})
	}
}

func TestAContainerStaysWhereItIsDecidedThatTheJobHasFailed(t *testing.T) {
	for name, c := range map[string]struct {
		before, source, after, stays string
	}{
		"before":                            {"exit 3", "exit 0", "exit 0", "htcd: script.before has ended with the return code 3; its"},
		"not before, and not at the script": {"exit 0", "exit 4", "exit 0", ""},
		"after":                             {"exit 0", "exit 0", "exit 5", "htcd: script.after has ended with the return code 5; its"},
	} {
		t.Run(name, func(t *testing.T) {
			d := description()
			d.Command, d.KeepOnFailure, d.Source = "sh", 600, c.source
			d.Before, d.After = &Part{Source: c.before}, &Part{Source: c.after}
			s := node(t, d, sleepless)
			_, _, errs := s.run(t)
			if c.stays == "" {
				require.Empty(t, s.slept(t))
				return
			}
			require.Equal(t, "600\n", s.slept(t))
			require.Contains(t, errs, c.stays)
		})
	}
}

func TestAnInteractiveJobRunsNoOtherPartEither(t *testing.T) {
	d := description()
	d.Interactive, d.Source = 3600, "echo ran\n"
	d.Before, d.After = &Part{Source: "echo before"}, &Part{Source: "echo after"}
	s := node(t, d, sleepless)
	out, err := s.command().Output()
	require.Error(t, err, "it ends by a signal")
	require.Equal(t, "3600\n", s.slept(t))
	require.Empty(t, string(out))
}

func TestPartsThatCannotRunAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Description)
		words  string
	}{
		"several machines": {func(d *Description) { d.Nodes, d.Sender = 2, "/usr/bin/htcd" }, "spec.script.after: found nodes, too"},
		"nothing":          {func(d *Description) { d.After.Source = " \n" }, "spec.script.after.source: expected at least one command"},
		"too much":         {func(d *Description) { d.After.Source = strings.Repeat("é", 1<<15) + "a" }, "at most 64 KiB of UTF-8, found 65537 bytes"},
		"no text":          {func(d *Description) { d.After.Source = "a\x00" }, "spec.script.after.source: expected text without NUL"},
		"no program":       {func(d *Description) { d.After.Command = "-x" }, `spec.script.after.command "-x": expected a program`},
		"no command at all": {func(d *Description) { d.Executable, d.Command, d.Source = "/bin/true", "", "" },
			"spec.script.after.command: expected one beside spec.script.executable"},
		"a blank command":     {func(d *Description) { d.After.Command = " " }, "spec.script.after.command"},
		"arguments":           {func(d *Description) { d.After.Args = []string{"\x00"} }, "spec.script.after.args[0]: found a NUL"},
		"variables of nobody": {func(d *Description) { d.After.Args = []string{"{{item.X}}"} }, "spec.script.after.args[0]: found {{item.X}}"},
	} {
		t.Run(name, func(t *testing.T) {
			d := description()
			d.After = &Part{Source: "true"}
			c.change(&d)
			_, err := d.Render()
			require.Equal(t, condor.Refused, condor.KindOf(err))
			require.ErrorContains(t, err, c.words)
		})
	}
}

func TestThePartsOfAStepGoWithItsNodes(t *testing.T) {
	step := DAGStep{Description: description(), Name: "check"}
	step.After = &Part{Source: "test -s result"}
	r, err := step.render(0, nil)
	require.NoError(t, err)
	for _, f := range r.files {
		if f.Name == "s0/"+fileAfter {
			require.Equal(t, "test -s result", f.Content)
			return
		}
	}
	t.Fatal("it is not there")
}
