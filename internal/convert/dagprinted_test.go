package convert

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// printing is a DAG of a node that prints, with these lines in its file, and one after it that has these.
func printing(t *testing.T, before, after string, more ...string) Result {
	t.Helper()
	return converted(t, "-- flow.dag --\nJOB a a.sub\nJOB b b.sub\nPARENT a CHILD b\n"+strings.Join(more, "\n")+
		"\n-- a.sub --\nexecutable = work.sh\n"+before+"\nqueue\n-- b.sub --\nexecutable = work.sh\n"+after+
		"\nqueue\n-- work.sh --\n#!/bin/sh\n-- look.sh --\n-- old --\n",
		Options{Image: "centos", ScriptsInJobs: true})
}

func TestWhatANodePrintsIsPulled(t *testing.T) {
	const out, both = "cat /tmp/stdout\nmv /tmp/stdout ", "cat /tmp/stderr >&2\nmv /tmp/stderr "
	for name, c := range map[string]struct{ before, after, script, path string }{
		"standard output": {"output = A.out", "transfer_input_files = A.out", "work.sh > /tmp/stdout\ncode=$?\n" + out +
			"A.out\nexit $code\n", "A.out"},
		"standard error": {"error = A.err", "input = A.err", "work.sh 2> /tmp/stderr\ncode=$?\n" + both +
			"A.err\nexit $code\n", "A.err"},
		"one file of both": {"output = A.log\nerror = A.log", "transfer_input_files = A.log",
			"work.sh > /tmp/stdout 2>&1\ncode=$?\n" + out + "A.log\nexit $code\n", "A.log"},
		"with standard input": {"input = old\noutput = A.out", "transfer_input_files = A.out",
			"work.sh < old > /tmp/stdout\ncode=$?\n", "A.out"},
		"in a directory": {"output = log/A.out",
			"transfer_input_files = ./log/A.out", "mv /tmp/stdout A.out\n", "A.out"},
		"in initialdir": {"initialdir = x\noutput = A.out\ntransfer_executable = false",
			"transfer_input_files = x/A.out", "mv /tmp/stdout A.out\n", "A.out"},
		"an older file": {"output = old", "transfer_input_files = old", "mv /tmp/stdout old\n", "old"},
		"an absolute one": {"output = /eos/A.out",
			"transfer_input_files = /eos/A.out", "mv /tmp/stdout A.out\n", "A.out"},
		"by the node's name": {"output = $(JOB).out",
			"transfer_input_files = a.out", "mv /tmp/stdout a.out\n", "a.out"},
		"beside outputs": {"output = A.out\ntransfer_output_files = x",
			"transfer_input_files = A.out", out + "A.out\n", "A.out"},
		"in another's place": {"output = old\ntransfer_input_files = old", "transfer_input_files = old",
			"mv /tmp/stdout old\n", "old"},
	} {
		t.Run(name, func(t *testing.T) {
			r := printing(t, c.before, c.after)
			require.Empty(t, lost(r))
			require.Contains(t, r.Workflow.Spec.Steps[0].Job.Script.Source, c.script)
			require.Equal(t, []v1alpha1.Pull{{From: "a", Path: c.path}}, r.Workflow.Spec.Steps[1].Pull)
			require.Contains(t, r.Workflow.Spec.Steps[1].Job.Script.Source, "exec ./work.sh")
			checked(t, r)
		})
	}
}

func TestWhatIsPrintedAndCannotBePulledIsSaid(t *testing.T) {
	for name, c := range map[string]struct{ before, after, want string }{
		"an output, too": {"output = A.out\ntransfer_output_files = A.out", "transfer_input_files = A.out",
			"transfer_output_files of that node has A.out, too; instead: another name for one of the two"},
		"two files": {"output = A.out\nerror = ./A.out", "input = A.out",
			"its output and its error are two files there; instead: the same words for both"},
		"two names alike": {"output = x/A\nerror = y/A", "transfer_input_files = x/A, y/A",
			"its output and its error are both files that are called A; instead: another name"},
		"a name": {"output = .A", "input = .A", `no output of a step can be called ".A"; instead: letters`},
		"several jobs": {"output = A.out\nqueue 2", "input = A.out",
			"several of its jobs print there; instead: $(Process), or $(JOB), in output of that node"},
		"a checkpoint": {"output = A.out\nwhen_to_transfer_output = ON_EXIT_OR_EVICT", "input = A.out",
			"when it goes on after an interruption, what it had printed before is lost; instead: a program that"},
	} {
		t.Run(name, func(t *testing.T) {
			r := printing(t, c.before, c.after)
			require.Contains(t, lost(r), "what a node before prints, and "+c.want)
		})
	}
}

func TestOnlyStepsWhosePrintedFileIsPulledChange(t *testing.T) {
	r := printing(t, "output = A.out\nerror = A.err", "transfer_input_files = A.err\noutput = B.out")
	require.Empty(t, lost(r))
	require.NotContains(t, r.Workflow.Spec.Steps[0].Job.Script.Source, "/tmp/stdout")
	require.Contains(t, r.Workflow.Spec.Steps[1].Job.Script.Source, "exec ./work.sh")
	require.Equal(t, map[string]v1alpha1.LandingPlace{"A.err": "a/{{item.jobid}}/A.err"},
		r.Workflow.Spec.Steps[0].Job.Landing.Files)
	require.Equal(t, v1alpha1.LandingPlace("A.err"), r.Workflow.Spec.Steps[0].Job.Landing.Stderr)
}

func TestWhatRunsAfterANodeSeesWhatItHasPrinted(t *testing.T) {
	r := printing(t, "output = A.out\nerror = A.err", "transfer_input_files = A.out", "SCRIPT POST a look.sh $RETURN",
		"RETRY a 3")
	require.Empty(t, lost(r))
	a := r.Workflow.Spec.Steps[0]
	require.Contains(t, a.Job.Script.Source, "mv /tmp/stdout A.out\ncat /tmp/stderr >&2\nmv /tmp/stderr A.err\n")
	require.Contains(t, a.Job.Script.After.Source, "look.sh")
	require.Equal(t, int32(3), *a.Retries)
}

func TestWhatNodesPrintByNamesOfTheirOwnIsPulled(t *testing.T) {
	files := "-- a.sub --\nexecutable = work.sh\noutput = $(JOB).out\nerror = a$(n).err\nqueue\n-- b.sub --\n" +
		"executable = work.sh\ntransfer_input_files = %\nqueue\n-- work.sh --\n#!/bin/sh\n"
	nodes := "-- flow.dag --\nJOB a1 a.sub\nJOB a2 a.sub\nVARS a1 n=\"1\"\nVARS a2 n=\"2\"\n"
	side := converted(t, nodes+"JOB b b.sub\nPARENT a1 a2 CHILD b\n"+
		strings.ReplaceAll(files, "%", "a1.out, a2.out, a2.err"), Options{Image: "centos"})
	require.Empty(t, lost(side))
	require.Len(t, side.Workflow.Spec.Steps, 2)
	require.Contains(t, side.Workflow.Spec.Steps[0].Job.Script.Source,
		"work.sh > /tmp/stdout 2> /tmp/stderr\ncode=$?\n"+
			"cat /tmp/stdout\nmv /tmp/stdout \"${JOB}\".out\ncat /tmp/stderr >&2\nmv /tmp/stderr a\"${n}\".err\n")
	require.Equal(t, v1alpha1.LandingPlace("a/{{item.jobid}}/{{proc}}/{{item.JOB}}.out"),
		side.Workflow.Spec.Steps[0].Job.Landing.Files["{{item.JOB}}.out"])
	require.Equal(t, []v1alpha1.Pull{{From: "a", Path: "a*.out"}, {From: "a", Path: "a*.err"}},
		side.Workflow.Spec.Steps[1].Pull)
	require.Contains(t, side.Workflow.Spec.Steps[1].Job.Script.Source,
		"mv job_0/0/a1.out a1.out\nmv job_0/1/a2.out a2.out\nmv job_0/1/a2.err a2.err\n")
	checked(t, side)

	pairs := converted(t, nodes+"JOB b1 b.sub\nJOB b2 b.sub\nVARS b1 n=\"1\"\nVARS b2 n=\"2\"\nPARENT a1 CHILD b1\n"+
		"PARENT a2 CHILD b2\n"+strings.ReplaceAll(files, "%", "a$(n).out"), Options{Image: "centos"})
	require.Empty(t, lost(pairs))
	require.Len(t, pairs.Workflow.Spec.Sequences.Items, 2)
	require.Equal(t, []v1alpha1.Pull{{From: "a", Path: "a*.out"}}, pairs.Workflow.Spec.Steps[1].Pull)
	require.Contains(t, pairs.Workflow.Spec.Steps[0].Job.Script.Source, "mv /tmp/stdout \"${JOB}\".out\n")
	checked(t, pairs)
}

func TestAProgramWhoseOutputIsPulledEndsAndPrintsAsBefore(t *testing.T) {
	for name, c := range map[string]struct {
		program string
		code    int
	}{
		"a success": {"true", 0}, "a failure": {"exit 7", 7}, "a signal": {"kill -9 $$", 128 + 9},
	} {
		t.Run(name, func(t *testing.T) {
			r := printing(t, "output = A.out\nerror = A.err\ntransfer_input_files = old",
				"transfer_input_files = A.out, A.err")
			require.Empty(t, lost(r))
			dir := t.TempDir()
			program := "#!/bin/sh\necho told\necho warned >&2\n" + c.program + "\n"
			require.NoError(t, os.WriteFile(filepath.Join(dir, "work.sh"), []byte(program), 0o700))
			run := exec.CommandContext(t.Context(), "sh", "-c",
				strings.ReplaceAll(r.Workflow.Spec.Steps[0].Job.Script.Source, "/tmp/", dir+"/.tmp-"))
			run.Dir = dir
			var out, err strings.Builder
			run.Stdout, run.Stderr = &out, &err
			_ = run.Run()
			require.Equal(t, c.code, run.ProcessState.ExitCode(), err.String())
			require.Equal(t, "told\n", out.String())
			require.Contains(t, err.String(), "warned\n")
			for file, want := range map[string]string{"A.out": "told\n", "A.err": "warned\n"} {
				text, err := os.ReadFile(filepath.Join(dir, file))
				require.NoError(t, err)
				require.True(t, strings.HasPrefix(string(text), want), string(text)) // a shell may add "Killed"
			}
		})
	}
}

func TestWhatManyNodesPrintIsPulledAtOnce(t *testing.T) {
	var dag strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&dag, "JOB a%[1]d a.sub\nJOB b%[1]d b.sub\nPARENT a%[1]d CHILD b%[1]d\n"+
			"VARS b%[1]d n=\"%[1]d\"\n", i)
	}
	r := converted(t, "-- flow.dag --\n"+dag.String()+"-- a.sub --\nexecutable = work.sh\noutput = $(JOB).out\nqueue\n"+
		"-- b.sub --\nexecutable = work.sh\ntransfer_input_files = a$(n).out\nqueue\n-- work.sh --\n",
		Options{Image: "centos"})
	require.Empty(t, lost(r))
	require.Equal(t, []v1alpha1.Pull{{From: "a", Path: "a*.out"}}, r.Workflow.Spec.Steps[1].Pull)
}
