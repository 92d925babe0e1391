package schedd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

// inSpool runs a script as root in the DAG's directory at the schedd's host. It may use $1, the process id of the DAG's
// DAGMan, if any.
func (g *graph) inSpool(script string) string {
	g.t.Helper()
	return outside(g.t, fmt.Sprintf(`set -e
dir=$(find "${CONDOR_CONFIG%%/*}/spool" -type d -name cluster%d.proc0.subproc0) || : # others may go meanwhile
cd "${dir:?}"
set --
for p in /proc/[0-9]*; do
	[ "$(cat "$p/comm" 2>/dev/null)" != condor_dagman ] || [ "$(readlink "$p/cwd")" != "$PWD" ] || set -- "${p#/proc/}" "$@"
done
%s`, g.cluster.ID, script))
}

func (g *graph) untilInSpool(script string) {
	g.t.Helper()
	require.Eventually(
		g.t,
		func() bool { return strings.TrimSpace(g.inSpool("if "+script+"; then echo yes; fi")) == "yes" },
		patience,
		100*time.Millisecond,
	)
}

// failing is a DAG with two nodes that fail and two that succeed; one is futile. wait is how long a node runs.
func failing(t *testing.T, wait string) *graph {
	g := newGraph(t)
	again := g.step("fails", wait+`; exit 75`)
	again.JobOptions.Retries, again.RetryExitCodes = new(1), []int{75}
	g.node(submit.DAGNode{})
	g.step("fails at once", `exit 3`)
	g.node(submit.DAGNode{})
	g.step("succeeds", wait)
	g.node(submit.DAGNode{})
	g.step("after", `exit 0`)
	g.node(submit.DAGNode{Parents: []int{2}})
	g.step("futile", `exit 0`)
	g.node(submit.DAGNode{Parents: []int{0}})
	return g
}

// endedOnce waits for the end of failing's DAG.
func (g *graph) endedOnce() {
	g.t.Helper()
	require.Equal(g.t, 2, g.endedEach()[0].NumJobStarts)
}

// endedEach is endedOnce where HTCondor may have lost how often a job has started.
func (g *graph) endedEach() map[int]condor.Job {
	g.t.Helper()
	nodes := g.ended(1) // fails for a node that ran twice
	require.Len(g.t, nodes, 4)
	for n, want := range []string{"exit code 75", "exit code 3", "exit code 0", "exit code 0"} {
		j := nodes[n]
		require.Equal(g.t, want, j.Outcome().Message, n)
		require.Equal(g.t, condor.Completed, j.Status, n)
	}
	return nodes
}

// The tests below are not parallel: the schedd is everybody's.

func TestADAGThatEndedUnnoticedByItsScheddRunsNothingAgain(t *testing.T) {
	for name, gone := range map[string]string{"before DAGMan removed its lock": "", "after DAGMan removed its lock": "rm flow.dag.lock"} {
		t.Run(name, func(t *testing.T) {
			g := failing(t, "sleep 5")
			g.submit()
			// As soon as it has sent the last node, while the first one runs for the first or the second time.
			g.untilInSpool(
				`[ $# -eq 1 ] && [ -e flow.dag.nodes.log ] && [ "$(grep -c ^000 flow.dag.nodes.log)" -eq 4 ] && kill -STOP "$1"`,
			)
			require.Eventually(t, func() bool {
				nodes := g.nodes()
				return nodes[0].Done() && nodes[3].Done()
			}, patience, 50*time.Millisecond)
			// Its end takes a moment in which the schedd can be killed, and it then leaves this.
			outside(t, "kill")
			g.untilInSpool(`[ $# -eq 0 ]`)
			g.inSpool("runuser -u robot -- sh -c 'printf \"DONE N2\\nDONE N3\\n\" >flow.dag.rescue001; " + gone + "'")
			outside(t, "start")
			g.endedOnce()
		})
	}
}

// The schedd was killed after it had taken the jobs and before it wrote that into DAGMan's log; some have ended since.
func TestADAGSendsNoNodeAgainWhoseSubmissionItsLogLacks(t *testing.T) {
	g := failing(t, "sleep 8")
	g.submit()
	g.untilInSpool(`grep -q ^005 flow.dag.nodes.log && [ "$(grep -c ^001 flow.dag.nodes.log)" -ge 3 ]`)
	outside(t, "kill")
	g.untilInSpool(`[ $# -eq 0 ]`)
	g.inSpool(`runuser -u robot -- sed -i '/^000 /,/^\.\.\.$/d' flow.dag.nodes.log`)
	outside(t, "start")
	g.endedEach() // the schedd was killed while a job ran
}

func TestADAGRunsNothingAgainHoweverOftenDAGManIsKilled(t *testing.T) {
	g := failing(t, "sleep 8")
	g.submit()
	for range 3 { // before it has sent anything, if the machine lets it
		g.untilInSpool(`[ $# -eq 1 ] && kill -9 "$1"`)
	}
	for _, reached := range []string{`grep -q ^000 flow.dag.nodes.log`, `grep -q ^001 flow.dag.nodes.log`, `grep -q ^005 flow.dag.nodes.log`, `[ "$(grep -c ^005 flow.dag.nodes.log)" -ge 3 ]`} {
		g.untilInSpool(`[ $# -eq 1 ] && ` + reached + ` && kill -9 "$1"`)
	}
	g.endedOnce()
}

func TestADAGIsWorkedOnByOneDAGManAtATime(t *testing.T) {
	g := failing(t, "sleep 3")
	g.submit()
	g.untilInSpool(`[ $# -eq 1 ] && [ -s dagman.pid ] && grep -q ^000 flow.dag.nodes.log`)
	// What stands for a DAGMan that has outlived its schedd.
	other := strings.TrimSpace(g.inSpool(`pid=$(runuser -u robot -- sh -c 'sleep 100000 >/dev/null 2>&1 & echo $!')
[ "$(readlink "/proc/$pid/cwd")" = "$PWD" ]
echo "$pid" | tee dagman.pid
kill -9 "$1"`))
	g.endedOnce()
	require.Equal(t, "gone\n", outside(t, "[ -e /proc/"+other+"/cwd ] || echo gone"))
}

// restart kills the schedd and waits until it is there again.
func restart(t *testing.T) {
	t.Helper()
	outside(t, "restart")
}

// outside has answerRequests do something, and returns what a script has printed.
func outside(t *testing.T, request string) string {
	t.Helper()
	asked := filepath.Join(os.Getenv(tokensVariable), "asked")
	require.NoError(t, os.WriteFile(filepath.Join(asked, "new"), []byte(request), 0o600))
	require.NoError(t, os.Rename(filepath.Join(asked, "new"), filepath.Join(asked, "request")))
	var said []byte
	require.Eventually(t, func() bool {
		var err error
		said, err = os.ReadFile(filepath.Join(asked, "answer"))
		return err == nil
	}, patience, 100*time.Millisecond)
	require.NoError(t, os.Remove(filepath.Join(asked, "answer")))
	printed, ok := strings.CutPrefix(string(said), "done")
	require.True(t, ok, string(said))
	return printed
}
