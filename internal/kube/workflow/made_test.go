package workflow

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

// split has a step whose items the one before it writes.
func split() *v1alpha1.HTCWorkflow {
	flow := newWorkflow("flow")
	flow.Spec.Sequences, flow.Spec.Steps[1].Pairing = nil, ""
	flow.Spec.Steps[1].ForEach = &v1alpha1.ForEach{ItemsFrom: &v1alpha1.ItemsFrom{Step: "a", Path: "t.csv"}}
	return flow
}

// leaves puts a file into the output of the first node.
func (w *world) leaves(text string) { w.leavesIn("a/job_0", text) }

func (w *world) leavesIn(node, text string) {
	dir, err := w.Output.AttemptDir(attemptOf(w.flow("flow"), 1))
	require.NoError(w.t, err)
	require.NoError(w.t, os.MkdirAll(filepath.Join(dir, node), 0o700))
	require.NoError(w.t, os.WriteFile(filepath.Join(dir, node, "t.csv"), []byte(text), 0o600))
}

func (w *world) itemsOf(step string) (rows []string) {
	require.NoError(w.t, w.book.Read(w.t.Context(), func(tx *ledger.Tx) error {
		all, err := tx.Tables("uid-flow", 2)
		rows = all[step]
		return err
	}))
	return rows
}

func TestTheJobsOfAStepAreThoseOfTheTableThatAnotherHasWritten(t *testing.T) {
	w := newWorld(t)
	flow := w.apply(split())
	require.EqualValues(t, 1, flow.Status.Nodes.Total, "%v", flow.Status.Conditions)
	w.leaves("FILE\nx\ny\n")
	w.schedd.Fail(scheddtest.Submit, scheddtest.Fault{Err: errors.New("no answer")})
	w.ends(1)
	require.Equal(t, []string{"FILE=x\n", "FILE=y\n"}, w.itemsOf("b"))
	w.leaves("FILE\nz\n")
	w.restart()
	w.later(time.Hour)
	w.later(time.Hour)
	require.Equal(t, []string{"FILE=x\n", "FILE=y\n"}, w.itemsOf("b"), "it is read once")
	flow = w.flow("flow")
	require.EqualValues(t, 3, flow.Status.Nodes.Total)
	require.NotEmpty(t, flow.Status.ItemsDigest)
	w.ends(w.schedd.Jobs()[0].Cluster)
	flow = w.flow("flow")
	require.Equal(t, v1alpha1.PhaseSucceeded, flow.Status.Phase, "%v", flow.Status.Conditions)
	require.EqualValues(t, 3, flow.Status.Nodes.Done)
	require.Len(t, flow.Status.JobID, 2)
}

func TestATableThatIsNoneEndsTheWorkflow(t *testing.T) {
	for name, c := range map[string]struct{ text, words string }{
		"missing":   {"", "the items of the step b: t.csv of a/job_0: there is no such file in its output"},
		"empty":     {"\n", "the items of the step b: t.csv of a/job_0: the table is empty"},
		"no rows":   {"FILE\n", "t.csv of a/job_0: the table has no rows"},
		"broken":    {"FILE\nx,y\n", "t.csv of a/job_0: line 2: expected 1 fields (FILE), found 2"},
		"forbidden": {"LD_PRELOAD,jobid\nx,y\n", "column 2"},
		"too large": {strings.Repeat("x", inputs.MaxTable+1), "expected a table of at most 16 MiB, found more"},
		"too many":  {"A\n" + strings.Repeat("1\n", 100_001), "expected at most 100000 items, found more"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(split())
			if c.text != "" {
				w.leaves(c.text)
			}
			w.ends(1)
			require.Equal(t, v1alpha1.PhaseFailed, w.flow("flow").Status.Phase)
			reason, message := w.says("flow", v1alpha1.ConditionSubmitted)
			require.Equal(t, "Refused", reason)
			require.Contains(t, message, c.words)
			require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
		})
	}
}

func TestTheTablesOfAStepAreBoundedTogetherAlsoInTheNamesOfTheirColumns(t *testing.T) {
	w := newWorld(t)
	flow := split()
	flow.Spec.Steps[0].ForEach = &v1alpha1.ForEach{Count: 3}
	flow = w.apply(flow)
	require.EqualValues(t, 3, flow.Status.Nodes.Total, "%v", flow.Status.Conditions)
	var names []string
	for i := range 128 {
		names = append(names, fmt.Sprintf("%s%d", strings.Repeat("x", 120), i))
	}
	table := strings.Join(names, ",") + "\n" + strings.Repeat(strings.Repeat(",", 127)+"\n", 600)
	for i := range 3 {
		w.leavesIn(fmt.Sprintf("a/job_0/%d", i), table)
	}
	w.ends(1)
	reason, message := w.says("flow", v1alpha1.ConditionSubmitted)
	require.Equal(t, "Refused", reason, message)
	require.Contains(t, message, "all tables together are too large")
}

func TestTheRowsOfATableCountForTheLimits(t *testing.T) {
	w := newWorld(t)
	w.Options.Site.MaxQueue = 3
	w.restart()
	w.apply(split())
	w.leaves("FILE\nx\ny\nz\n")
	w.ends(1)
	require.Equal(t, v1alpha1.PhaseFailed, w.flow("flow").Status.Phase)
	_, message := w.says("flow", v1alpha1.ConditionSubmitted)
	require.Contains(t, message, "4 nodes are more than the 3 that one HTCWorkflow may have")
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
}

func TestATableThatLeadsElsewhereIsMissing(t *testing.T) {
	w := newWorld(t)
	w.apply(split())
	w.leaves("")
	dir, err := w.Output.AttemptDir(attemptOf(w.flow("flow"), 1))
	require.NoError(t, err)
	table := filepath.Join(dir, "a/job_0/t.csv")
	require.NoError(t, os.Remove(table))
	require.NoError(t, os.Symlink("/etc/passwd", table))
	w.ends(1)
	_, message := w.says("flow", v1alpha1.ConditionSubmitted)
	require.Contains(t, message, "there is no such file in its output")
}
