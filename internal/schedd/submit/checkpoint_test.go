package submit

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

func checkpointing(source string) Description {
	d := description()
	d.Command, d.Source, d.Checkpoint = "sh", source, &Checkpoint{
		ExitCode: 85,
		Files:    []string{"state", "deep/er/n", "latest"},
	}
	return d
}

var checkpointTools = map[string]string{
	"apptainer": fakeApptainer,
	"sh":        "",
	"ln":        "",
	"find":      "",
	"readlink":  "",
	"stat":      "",
	"touch":     "",
	"rmdir":     "",
}

// oneUnit computes one unit in each execution, and the end in the fourth.
const oneUnit = `set -e
[ ! -f rest ] || echo again
n=0
[ ! -f deep/er/n ] || n=$(cat deep/er/n)
[ "$n" = 0 ] || [ "$(cat latest)" = "$n" ]
[ -f script ]
n=$((n + 1))
echo "unit $n $HTCPROCID"
rm -rf state
mkdir -p state deep/er
ln -s /nowhere/at/all dangling 2>/dev/null || :
echo $n >"state/a, $n"
echo $n >deep/er/n
ln -s ../elsewhere state/away
ln -sf "state/a, $n" latest
echo rest >rest
[ $n -lt 4 ] || { rm -rf state deep latest; echo done >result; exit 3; }
exit 85
`

func TestACheckpointIsNoEndAndTheNextExecutionGoesOn(t *testing.T) {
	for name, shell := range shells(t) {
		t.Run(name, func(t *testing.T) {
			to := receive(t)
			d := checkpointing(oneUnit)
			d.CallbackURL, d.Environment = to.URL, map[string]string{"A": "b"}
			s := node(t, d, checkpointTools)
			s.bin, s.shell = s.bin+":"+os.Getenv("PATH"), shell
			code, out, errs := s.run(t)
			require.Equal(t, 85, code, errs)
			require.Equal(t, "unit 1 2\n", out)
			require.NoFileExists(t, filepath.Join(s.dir, "token"))
			list, err := filepath.Glob(filepath.Join(s.dir, DirCheckpoint, "*"))
			require.NoError(t, err)
			require.Len(t, list, 3, "latest is a link to a file, which goes along")
			require.FileExists(t, filepath.Join(s.dir, DirCheckpoint, "state/a, 1"))
			require.NoFileExists(t, filepath.Join(s.dir, DirCheckpoint, "state/away"))

			// In the same directory all is as it was.
			code, out, errs = s.run(t)
			require.Equal(t, 85, code, errs)
			require.Equal(t, "again\nunit 2 2\n", out)

			// An eviction: HTCondor sends what it sent before, and the checkpoint.
			other := node(t, d, checkpointTools)
			other.bin, other.shell = other.bin+":"+os.Getenv("PATH"), shell
			require.NoError(
				t,
				os.CopyFS(filepath.Join(other.dir, DirCheckpoint), os.DirFS(filepath.Join(s.dir, DirCheckpoint))),
			)
			code, out, errs = other.run(t)
			require.Equal(t, 85, code, errs)
			require.Equal(t, "unit 3 2\n", out)
			require.Empty(t, to.events)
			code, _, errs = other.run(t)
			require.Equal(t, 3, code, errs)
			require.Len(t, to.events, 1)
			require.EqualValues(t, 3, to.events[0]["data"].(map[string]any)["retcode"])
			require.FileExists(t, filepath.Join(other.dir, "result"))
			require.NoDirExists(t, filepath.Join(other.dir, DirCheckpoint))
			require.NoDirExists(t, filepath.Join(other.dir, ".htcd"))
		})
	}
}

func TestACheckpointWithoutItsFilesIsAFailureThatNamesThem(t *testing.T) {
	to := receive(t)
	d := checkpointing("mkdir state\nexit 85\n")
	d.CallbackURL = to.URL
	s := node(t, d, checkpointTools)
	s.bin += ":" + os.Getenv("PATH")
	cmd := s.command()
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(t, status.Signaled(), "%v: %s", cmd.ProcessState, out)
	require.Equal(t, condor.UnsavedSignal, status.Signal())
	require.Contains(t, string(out), "has left no deep/er/n, latest, which spec.checkpoint.files names")
	require.Empty(t, to.events, "its end is HTCondor's to tell")

	signalled, signal := true, int(condor.UnsavedSignal)
	o := condor.Job{Status: condor.Completed, ExitBySignal: &signalled, ExitSignal: &signal}.Outcome()
	require.Equal(t, condor.OutcomeFailed, o.State)
	require.Equal(t, "CheckpointMissing", o.Reason)
}

func TestTheContainerOfAScriptThatHasWrittenACheckpointDoesNotStay(t *testing.T) {
	d := checkpointing("mkdir -p state deep/er\ntouch latest deep/er/n\nexit 85\n")
	d.KeepOnFailure = 600
	s := node(t, d, sleepless)
	s.bin += ":" + os.Getenv("PATH")
	code, _, errs := s.run(t)
	require.Equal(t, 85, code, errs)
	require.Empty(t, s.slept(t))
}

func TestWhatIsNoCheckpointIsRefusedInWords(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Description)
		words  string
	}{
		"no code":                   {func(d *Description) { d.Checkpoint.ExitCode = 0 }, "found 0, expected 2 to 124"},
		"the code of a failure":     {func(d *Description) { d.Checkpoint.ExitCode = 1 }, "found 1, expected 2 to 124"},
		"a code that is none":       {func(d *Description) { d.Checkpoint.ExitCode = 256 }, "found 256, expected"},
		"apptainer's own":           {func(d *Description) { d.Checkpoint.ExitCode = 125 }, "found 125, expected"},
		"a success":                 {func(d *Description) { d.JobOptions.SuccessCodes = []int{0, 85} }, "85 is a success, too"},
		"a success of htcopts":      {func(d *Description) { d.Options = "success_exit_code = 85" }, "85 is a success, too"},
		"the end of retries":        {func(d *Description) { d.Options = "max_retries = 2\nretry_until = 85" }, "that of retry_until, too"},
		"an interactive job":        {func(d *Description) { d.Interactive = 60 }, "runs no script"},
		"no file":                   {func(d *Description) { d.Checkpoint.Files = nil }, "expected 1 to 20, found 0"},
		"too many":                  {func(d *Description) { d.Checkpoint.Files = make([]string, 100_000) }, "found 100000: name a directory"},
		"a file outside":            {func(d *Description) { d.Checkpoint.Files[0] = "../x" }, `found "../x", expected a path in the script's directory`},
		"an absolute path":          {func(d *Description) { d.Checkpoint.Files[0] = "/tmp/x" }, `found "/tmp/x", expected a path`},
		"a path that leads outside": {func(d *Description) { d.Checkpoint.Files[0] = "a/../../x" }, "expected a path"},
		"a pattern":                 {func(d *Description) { d.Checkpoint.Files[0] = "ck-*" }, "for files whose names change name their directory"},
		"several lines":             {func(d *Description) { d.Checkpoint.Files[0] = "a\nb" }, "expected a path"},
		"htcd's own":                {func(d *Description) { d.Checkpoint.Files[0] = "token" }, "a name that htcd or HTCondor uses"},
		"twice":                     {func(d *Description) { d.Checkpoint.Files[1] = "state" }, `found "state" twice`},
		"in htcopts":                {func(d *Description) { d.Options = "checkpoint_exit_code = 85" }, "write spec.checkpoint"},
		"by eviction":               {func(d *Description) { d.Options = "when_to_transfer_output = ON_EXIT_OR_EVICT" }, "spec.checkpoint.onEviction keeps it"},
		"two ways":                  {func(d *Description) { d.Checkpoint.OnEviction = true }, "instead of exitCode and files"},
		"a session evicted":         {func(d *Description) { d.Checkpoint, d.Interactive = &Checkpoint{OnEviction: true}, 60 }, "runs no script"},
	} {
		t.Run(name, func(t *testing.T) {
			d := checkpointing("")
			c.change(&d)
			_, err := d.Render()
			require.ErrorContains(t, err, c.words)
			require.Equal(t, condor.Refused, condor.KindOf(err))
		})
	}
}

func TestTheOutputOfAnEvictedJobIsThereWhenItStartsAgain(t *testing.T) {
	d := description()
	d.Command, d.Checkpoint, d.Outputs = "sh", &Checkpoint{OnEviction: true}, []Output{{Path: "state"}, {Path: "dir/*"}}
	d.Source = "cat state dir/x; mkdir -p dir; echo more >>state; echo other >dir/x; echo rest >rest"
	first, second := node(t, d, checkpointTools), node(t, d, checkpointTools)
	first.bin, second.bin = first.bin+":"+os.Getenv("PATH"), second.bin+":"+os.Getenv("PATH")
	code, out, errs := first.run(t)
	require.Equal(t, 0, code, errs)
	require.Empty(t, out)
	left := os.DirFS(filepath.Join(first.dir, dirOutputs, "0"))
	require.NoError(t, os.MkdirAll(filepath.Join(second.dir, dirOutputs, "9"), 0o700))
	require.NoError(t, os.CopyFS(filepath.Join(second.dir, dirOutputs, "10"), left))
	code, out, errs = second.run(t)
	require.Equal(t, 0, code, errs)
	require.Equal(t, "more\nother\n", out)
	state, err := os.ReadFile(filepath.Join(second.dir, dirOutputs, "0", "state"))
	require.NoError(t, err)
	require.Equal(t, "more\nmore\n", string(state))
	require.NoDirExists(t, filepath.Join(second.dir, dirOutputs, "10"))
	require.Contains(t, d.submit(nil, nil), "when_to_transfer_output = ON_EXIT_OR_EVICT\n")
}
