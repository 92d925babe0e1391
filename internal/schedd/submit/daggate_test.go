package submit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// gated is a chain of two nodes, one that runs whatever becomes of them, and one that needs the second.
func gated() DAG {
	g := dag()
	g.Steps = g.Steps[:1]
	g.Nodes = []DAGNode{{}, {Parents: []int{0}}, {Ended: []int{1}}, {Parents: []int{1, 2}}}
	return g
}

func TestWhatComesBeforeANodeThatRunsInAnyCaseIsASuccessToDAGMan(t *testing.T) {
	s, err := gated().Render()
	require.NoError(t, err)
	files := unpacked(t, s)
	_, gates, _ := strings.Cut(files["flow.dag.new"], "PARENT N1 N2 CHILD N3\n")
	require.Equal(t, `SCRIPT POST N0 ./gate.sh note 0 $RETURN
SCRIPT POST N1 ./gate.sh note 1 $RETURN
SCRIPT PRE N1 ./gate.sh skip 1 0: 0
PRE_SKIP N1 3
SCRIPT PRE N3 ./gate.sh fail 3 0: 1
JOB E s0.sub NOOP
SCRIPT PRE E ./gate.sh end
PARENT N1 CHILD E
MAXJOBS s0 20
`, gates)
	require.Contains(t, files["flow.dag.new"], "PARENT N1 CHILD N2\n")
	require.Equal(t, gateBody, files["gate.sh"])
	require.Contains(t, files, "bad/")
}

func TestANodeRunsThoughSomeOfThoseItNeedsHaveFailed(t *testing.T) {
	g := dag()
	g.Steps[0].MayFail, g.Steps[1].Pulls = 2, nil
	g.Nodes = []DAGNode{{}, {}, {Done: true}, {Step: 1, Parents: []int{0, 1, 2}}}
	s, err := g.Render()
	require.NoError(t, err)
	_, gates, _ := strings.Cut(unpacked(t, s)["flow.dag.new"], "PARENT N0 N1 N2 CHILD N3\n")
	require.Equal(t, `SCRIPT POST N0 ./gate.sh note 0 $RETURN
SCRIPT POST N1 ./gate.sh note 1 $RETURN
SCRIPT PRE N3 ./gate.sh fail 3 2: 0 1 2
JOB E s0.sub NOOP
SCRIPT PRE E ./gate.sh end
PARENT N0 N1 N2 CHILD E
MAXJOBS s0 20
`, gates)
}

func TestAGateLetsThroughWhatMayRun(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, dirBad), 0o700))
	gate := func(args ...string) int {
		cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", gateBody, fileGate}, args...)...)
		cmd.Dir = dir
		if err := cmd.Run(); cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode()
	}
	bad := func() (names []string) {
		all, err := os.ReadDir(filepath.Join(dir, dirBad))
		require.NoError(t, err)
		for _, f := range all {
			names = append(names, f.Name())
		}
		return names
	}
	require.Equal(t, 0, gate("note", "0", "0"))
	require.Equal(t, 0, gate("skip", "1", "0:", "0"))
	require.Equal(t, 0, gate("end"))
	require.Equal(t, 0, gate("note", "5", "-1002"), "its job was removed")
	require.Equal(t, 1, gate("fail", "6", "0:", "0", "5"))
	require.Equal(t, 0, gate("fail", "6", "0:", "0", "1:", "4", "5"), "one may have failed")
	require.Equal(t, []string{"5"}, bad())
	require.Equal(t, 3, gate("skip", "7", "0:", "5", "0"))
	require.Equal(t, []string{"5", "7"}, bad(), "what comes after it does not run either")
	require.Equal(t, 1, gate("fail", "8", "3:", "7"), "what could not run is none that may fail")
	require.Equal(t, 1, gate("end"))

	require.NoError(t, os.RemoveAll(filepath.Join(dir, dirBad)))
	require.NotZero(t, gate("note", "0", "1"), "a failure that cannot be noted stays one to DAGMan")
}
