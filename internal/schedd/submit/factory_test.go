package submit

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
		"universe = vanilla", "executable = job.sh", "arguments = $(ProcId)", "max_idle = 0", "My.HTCJobFactory = 2", "My.StageInFinish = 1", `My.HTCPool = "common"`, "queue 2",
		"transfer_input_files = $(htcd_here)/script, https://example.org/far, $(htcd_here)/.in/shared/, $(htcd_here)/.in/$(ProcId)/, $(htcd_here)/own/.own-$(ProcId)",
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
		[]string{"arguments = $(HTCJobProc)", "My.HTCJobFactory = 2", "queue HTCJobProc from (", "7"},
	)
}
