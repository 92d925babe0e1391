package usage_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/usage"
)

func TestAUseComesBackAsItWasWritten(t *testing.T) {
	u := usage.Use{CPU: 1500, Wall: 3, Memory: 310, Disk: 29000, AskedCPUs: 2, AskedMemory: 2000, AskedDisk: 1 << 20}
	require.Equal(t, u, usage.Parse(u.String()))
	require.Empty(t, usage.Use{}.String())
	for _, bad := range []string{"", "1 2 3", "a b c d e f g", "1 2 3 4 5 6 -7", "1 2 3 4 5 6 7 8", "1 2 3 4 5 6 9223372036854775807"} {
		require.Zero(t, usage.Parse(bad), bad)
	}
}

func TestTheSummaryHasTheMedianAndTheWorst(t *testing.T) {
	var none usage.Tally
	require.Nil(t, none.Usage())

	var tally usage.Tally
	for proc, memory := range []int64{100, 420, 310, 420, 90} {
		tally.Add(proc, usage.Use{CPU: 9800, Wall: 10, Memory: memory, Disk: 30000, AskedCPUs: 1, AskedMemory: 2000})
	}
	got := tally.Usage()
	require.EqualValues(t, 5, got.Jobs)
	require.Equal(t, "310Mi", got.Memory.Median.String())
	require.Equal(t, "420Mi", got.Memory.Worst.String())
	require.EqualValues(t, 1, got.Memory.WorstProc, "the first of several")
	require.Equal(t, "2000Mi", got.Memory.Requested.String())
	require.Equal(t, "980m", got.CPU.Median.String())
	require.Equal(t, "30000Ki", got.Disk.Worst.String())
	require.Nil(t, got.Disk.Requested, "disk was not asked for")

	tally.Add(5, usage.Use{CPU: 1, AskedMemory: 2000})
	require.EqualValues(t, 6, tally.Usage().Jobs)
	require.Equal(t, "310Mi", tally.Usage().Memory.Median.String(), "what was not measured does not count")
}

func TestTheAdviceIsAFifthMoreThanTheWorst(t *testing.T) {
	for what, c := range map[string]struct {
		used usage.Use
		want string
	}{
		"what fits stays": {usage.Use{CPU: 9000, Wall: 10, Memory: 1700, AskedCPUs: 1, AskedMemory: 2000}, usage.Fits},
		"much less memory": {usage.Use{CPU: 9000, Wall: 10, Memory: 420, AskedCPUs: 1, AskedMemory: 2000},
			"Next time ask for memory: 512Mi instead of 2000Mi, as no job used more than 420Mi."},
		"more memory than asked for": {usage.Use{CPU: 9000, Wall: 10, Memory: 2100, AskedCPUs: 1, AskedMemory: 2000},
			"Next time ask for memory: 2560Mi instead of 2000Mi, as job 7 used 2100Mi."},
		"one of eight cores": {usage.Use{CPU: 10400, Wall: 10, Memory: 1700, AskedCPUs: 8, AskedMemory: 2000},
			"Next time ask for cpus: 1 instead of 8, as no job used more than 1040m."},
		"more cores than asked for": {usage.Use{CPU: 39000, Wall: 10, Memory: 1700, AskedCPUs: 1, AskedMemory: 2000},
			"Next time ask for cpus: 4 instead of 1, as job 7 used 3900m."},
		"a little more than one core is one core": {usage.Use{CPU: 10900, Wall: 10, AskedCPUs: 1}, usage.Fits},
		"less memory, but not less disk, of which HTCondor does not see everything": {usage.Use{CPU: 10000, Wall: 10, Memory: 100, Disk: 29000, AskedCPUs: 1, AskedMemory: 512, AskedDisk: 10 << 20},
			"Next time ask for memory: 128Mi instead of 512Mi, as no job used more than 100Mi."},
		"nothing is known":         {usage.Use{}, usage.Fits},
		"the smallest is 64 MiB":   {usage.Use{Memory: 1, AskedMemory: 64}, usage.Fits},
		"the largest of an ad":     {usage.Use{CPU: usage.Most, Wall: 1, Memory: usage.Most, Disk: usage.Most}, usage.Fits},
		"an ended job of a second": {usage.Use{CPU: 400, AskedCPUs: 1}, usage.Fits},
	} {
		t.Run(what, func(t *testing.T) {
			var tally usage.Tally
			tally.Add(7, c.used)
			require.Equal(t, c.want, tally.Usage().Advice)
		})
	}
}

func BenchmarkTally(b *testing.B) {
	for b.Loop() {
		var tally usage.Tally
		for proc := range 100_000 {
			tally.Add(proc, usage.Parse("1500 3 310 29000 2 2000 1048576"))
		}
		tally.Usage()
	}
}
