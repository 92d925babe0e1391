package schedd

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/classad"
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

func TestWhatAFactorysAdSays(t *testing.T) {
	ad := classad.Ad{
		{
			Name:  "ClusterId",
			Value: classad.IntValue(7),
		}, {Name: "Owner", Value: classad.StringValue("robot")}, {Name: "HTCJobUID", Value: classad.StringValue("u")},
		{
			Name:  "HTCJobAttempt",
			Value: classad.IntValue(2),
		}, {Name: "HTCJobFactory", Value: classad.IntValue(20)}, {Name: "JobMaterializeNextProcId", Value: classad.IntValue(3)},
		{
			Name:  "QDate",
			Value: classad.IntValue(5),
		}, {Name: "JobMaterializeMaxIdle", Value: classad.IntValue(0)}, {Name: "JobMaterializePauseReason", Value: classad.StringValue("why")},
		{Name: "HTCPool", Value: classad.StringValue("grid")}, {Name: "JobFactoryPaused", Value: classad.IntValue(1)},
	}
	require.Equal(
		t,
		Factory{
			Cluster: 7,
			Tag:     Tag{UID: "u", Attempt: 2, Pool: "grid"},
			Owner:   "robot",
			Next:    3,
			All:     20,
			QDate:   5,
			Paused:  "why",
		},
		newFactory(ad),
	)
	for mode, paused := range map[int64]string{-1: "why", 0: "", 1: "why", 2: "", 3: "it was removed"} {
		ad[len(ad)-1].Value = classad.IntValue(mode)
		require.Equal(t, paused, newFactory(ad).Paused, mode)
	}
}
