package submit

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/programtest"
)

func TestALauncherHandsOverWhatWouldBeSentAsACluster(t *testing.T) {
	d := description()
	d.Queue, d.Items, d.Parallelism = 2, []string{"A=1\n", "A=2\n"}, 1
	d.Inputs = []Input{{Name: "table"}, {Name: "own", OfProc: true}, {Name: "far", URL: "https://example.org/far"}}
	d.AllowSchemes, d.Tag.Pool = []string{"https"}, "common"
	s, err := d.Render()
	require.NoError(t, err)
	require.Equal(t, 2, s.Procs)
	require.Equal(t, 1, s.Factory)
	dir := t.TempDir()
	require.NoError(t, Stage(dir, s, "secret"))
	read := func(name string) []string {
		text, err := os.ReadFile(dir + "/" + name)
		require.NoError(t, err)
		return strings.Split(string(text), "\n")
	}
	launcher, factory := read("job.sub"), read("factory.sub")
	require.Subset(
		t,
		launcher,
		[]string{
			"universe = scheduler",
			"executable = factory.sh",
			"My.HTCJobLauncher = true",
			`My.HTCJobUID = "` + d.Tag.UID + `"`,
			"queue 1",
		},
	)
	require.NotContains(t, strings.Join(launcher, "\n"), "HTCPool", "a pool that is suspended holds the jobs")
	files := launcher[slices.IndexFunc(launcher, func(line string) bool { return strings.HasPrefix(line, "transfer_input_files") })]
	require.Contains(t, files, "factory.sub, job.sh, own.tgz, ")
	require.True(t, strings.HasSuffix(files, ", .in"))
	require.NotContains(t, files, ".own-")
	require.Subset(t, factory, []string{
		"universe = vanilla",
		"executable = job.sh",
		"arguments = $(ProcId)",
		"max_idle = 0",
		"My.HTCJobFactory = 2",
		"My.StageInFinish = 1",
		`My.HTCPool = "common"`,
		"queue 2",
		"transfer_input_files = $(htcd_here)/script, https://example.org/far, $(htcd_here)/.in/shared/, $(htcd_here)/.in/$(ProcId)/, $(htcd_here)/own/.own-of-$INT(HTCJobBlock)",
		"HTCJobBlock = $(ProcId) / 256",
	})
	require.Subset(t, read("factory.sh"), []string{"most=1", "idle=1"})
	fewer := s.AtMost(7, 5)
	require.Equal(t, 7, fewer.Factory)
	require.NoError(t, Stage(dir, fewer, "secret"))
	require.Subset(t, read("factory.sh"), []string{"most=7", "idle=5"})
	require.FileExists(t, dir+"/own.tgz")
	require.NoFileExists(t, dir+"/.own-0")
	require.NoFileExists(t, dir+"/token")

	d.Queue, d.Numbers = 2, []int{3, 7}
	s, err = d.Render()
	require.NoError(t, err)
	require.NoError(t, Stage(dir, s, "secret"))
	require.Subset(
		t,
		read("factory.sub"),
		[]string{"arguments = $(HTCJobProc)", "My.HTCJobFactory = 2", "queue HTCJobProc from (", "7", "HTCJobBlock = $(HTCJobProc) / 256"},
	)
}

func TestALauncherEndsWithItsOwnJob(t *testing.T) {
	for name, c := range map[string]struct {
		own     string // what condor_q says of its job, time after time, and in the end nothing
		history string // the same of condor_history, if there has been a try before
		sent    string
		removed string
	}{
		"it has been removed":                         {own: "3\n"},
		"it has left the queue":                       {},
		"it has been when the schedd answers":         {own: "no answer\nno answer\n"},
		"its factory goes with it":                    {own: "2\n1\n3\n", sent: "made.sub\n", removed: "9\n"},
		"its factory stays while nobody answers":      {own: "2\nno answer\nno answer\n2\n", sent: "made.sub\n", removed: "9\n"},
		"it has been while an earlier try is sought":  {own: "2\n3\n", history: "no answer\nno answer\nno answer\n"},
		"an earlier try is not made again in between": {own: "2\n3\n", history: "no answer\n"},
		"an earlier try has not come to anything":     {own: "2\n2\n", history: "no answer\n\n", sent: "made.sub\n", removed: "9\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			next := `n=$(grep -c . "%.n" 2>/dev/null); echo x >>"%.n"; s=$(sed -n "$((${n:-0} + 1))p" %); [ "$s" != "no answer" ] && echo "$s"`
			for tool, text := range map[string]string{
				"condor_q": `case "$*" in *"-factory -constraint ClusterId == 9 "*) [ -e removed ] || echo 9 ;; *-factory*) ;;
*"ClusterId == 7 "*) ` + strings.ReplaceAll(next, "%", "own") + " ;; *) exit 1 ;; esac",
				"condor_history":    strings.ReplaceAll(next, "%", "history"),
				"condor_submit":     "echo $2 >>sent; echo 9.0 - 9.4",
				"condor_rm":         "echo $1 >>removed",
				"condor_qedit":      "",
				"condor_config_val": "[ $3 != ALTERNATE_JOB_SPOOL ] && echo /spool",
				"condor_ping":       "",
				"sleep":             "",
			} {
				programtest.Write(t, filepath.Join(dir, tool), "#!/bin/sh\n"+text+"\n")
			}
			files := map[string]string{"own": c.own, "history": c.history, "factory.sub": "queue 5\n"}
			if c.history != "" {
				files["begun"], files["made.sub"] = "", "queue 5\n"
			}
			for file, text := range files {
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
			}
			script := strings.NewReplacer("\tfind_schedd #", "\tsubsystem='-subsystem SCHEDD' #", "/proc/$PPID\"", "/proc/killed\"").
				Replace(description().launcher())
			cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
			cmd.Dir, cmd.Env = dir, []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "CONDOR_ID=7.0"}
			said, err := cmd.CombinedOutput()
			require.NoError(t, err)
			require.Empty(t, string(said))
			for file, want := range map[string]string{"sent": c.sent, "removed": c.removed} {
				text, _ := os.ReadFile(filepath.Join(dir, file)) // #nosec G304
				require.Equal(t, want, string(text), file)
			}
		})
	}
}
