package schedd

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadAnalysis(t *testing.T) {
	const steps = `         Slots
Step    Matched  Condition
-----  --------  ---------
[0]           0  HasUnicorn is true
[1]           4  TARGET.Arch == "X86_64"
[9]           0  [0] && [1]

No successful match recorded.

`
	want := Analysis{
		Slots:   4,
		Rejects: 3,
		Refused: 1,
		Steps:   []Step{{"HasUnicorn is true", 0}, {`TARGET.Arch == "X86_64"`, 4}, {"[0] && [1]", 0}},
	}
	for name, text := range map[string]string{
		"HTCondor 23.9": steps + `001.000:  Run analysis summary ignoring user priority.  Of 4 machines,
      3 are rejected by your job's requirements
      1 reject your job because of their own requirements
      0 match and are already running your jobs
`,
		"HTCondor 25.14": steps + `001.000:  Run analysis summary ignoring user priority.  Of 4 slots on 1 machines,
      3 slots are rejected by your job's requirements
      1 slots reject your job because of their own requirements
      0 slots match and are willing to run your job
`,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readAnalysis(strings.NewReader(text))
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
	got, err := readAnalysis(strings.NewReader("\n001.000:  Job is running.\n"))
	require.NoError(t, err)
	require.Zero(t, got)
	got, err = readAnalysis(strings.NewReader(strings.Repeat("[0]           0  X\n", 100_000)))
	require.NoError(t, err)
	require.Len(t, got.Steps, maxSteps)
}

func TestReadRequest(t *testing.T) {
	line := "7\t2\t1\tundefined\t512000.5\t17\t(TARGET.Memory >= RequestMemory)\t348\tundefined\tundefined\tundefined\t15\t17"
	r, ok := readRequest(line)
	require.True(t, ok)
	require.Equal(t, Size{CPUs: 1, Memory: 512000, Disk: 17}, r.Size)
	require.Equal(t, []int{7, 2}, []int{r.Cluster, r.Proc})
	require.EqualValues(t, 348, r.InVain)
	other, _ := readRequest(strings.Replace(line, "TARGET.Memory", "TARGET.Disk", 1))
	require.NotEqual(t, r.Requirements, other.Requirements)
	for _, hostile := range []string{"", "7", "x\ty", strings.Repeat("\t", 20)} {
		_, ok := readRequest(hostile)
		require.False(t, ok, hostile)
	}
}
