package follow

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// newWorkflow is a world with a workflow of two steps and two sequences, of which the first DAG was sent: a a b b |
// all.
func newWorkflow(t *testing.T) *world {
	w := newWorld(t)
	step := func(name v1alpha1.StepName, pairing v1alpha1.Pairing, each int32) v1alpha1.Step {
		s := v1alpha1.Step{StepWork: v1alpha1.StepWork{Name: name}, Pairing: pairing}
		if each > 0 {
			s.ForEach = &v1alpha1.ForEach{Count: each}
		}
		return s
	}
	flow := &v1alpha1.HTCWorkflow{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "scan", UID: "f"},
		Spec: v1alpha1.HTCWorkflowSpec{
			Sequences: &v1alpha1.Sequences{Count: new(int32(2))},
			Steps:     []v1alpha1.Step{step("fit", v1alpha1.PairByIndex, 2), step("plot", v1alpha1.PairAll, 0)},
		},
	}
	w.o.Workflows = only(flow)
	w.o.Nodes = output.Store{Root: filepath.Join(t.TempDir(), "workflows")}
	w.o.Attempt = func(dags []ledger.Run, attempt int) ([]ledger.Run, int) {
		if attempt > 1 || len(dags) == 0 {
			return nil, 0
		}
		return dags, 1
	}
	return w
}

// sentDAG records that a DAG was sent.
func (w *world) sentDAG(number int, steps []ledger.Step, nodes ...ledger.Place) {
	w.write(func(tx *ledger.Tx) error {
		run := ledger.Run{
			Kind:      ledger.Workflows,
			UID:       "f",
			Attempt:   number,
			Namespace: "ns",
			Name:      "scan",
			State:     ledger.Submitted,
			Cluster:   7,
			Procs:     1,
			OutputDir: "/out",
			Submitted: time.Now(),
		}
		return errors.Join(tx.InsertRun(run), tx.InsertNodes(run, steps, nodes), tx.InsertProcs(run, 1))
	})
}

func (w *world) sentFirst() {
	w.sentDAG(
		1,
		[]ledger.Step{{Number: 0, Name: "fit"}},
		ledger.Place{Sequence: 0, Item: 0},
		ledger.Place{Sequence: 0, Item: 1},
		ledger.Place{Sequence: 1, Item: 0},
		ledger.Place{Sequence: 1, Item: 1},
	)
}

// changed changes what the ledger has of a node.
func (w *world) changed(dag, number int, change func(*ledger.Node)) {
	w.write(func(tx *ledger.Tx) error {
		n, err := tx.Node("f", dag, number)
		change(&n)
		return errors.Join(err, tx.UpdateNode(n))
	})
}

// fetched says that the output of a DAG's nodes is in the store.
func (w *world) fetched(dag int) {
	w.write(func(tx *ledger.Tx) error {
		job, err := tx.Proc("f", dag, 0)
		job.Fetched = ledger.IsFetched
		return errors.Join(err, tx.UpdateProc(job))
	})
}

func ofNodes(step string, sequence, index int, change ...func(*aggregate.Query)) aggregate.Query {
	q := aggregate.Query{
		Resource:  "htcworkflows",
		Namespace: "ns",
		Name:      "scan",
		TailLines: -1,
		Node:      aggregate.Place{Step: step, Sequence: sequence, Index: index},
	}
	for _, f := range change {
		f(&q)
	}
	return q
}

func (w *world) listed(change ...func(*aggregate.Query)) []aggregate.Node {
	w.t.Helper()
	answer, err := w.Nodes(w.t.Context(), ofNodes("", 0, 0, change...))
	return linesOf[aggregate.Node](w.t, answer, err)
}

func TestNodesAreListedInTheOrderOfTheirDAGs(t *testing.T) {
	w := newWorkflow(t)
	require.Empty(t, w.listed(), "nothing was sent")
	w.sentFirst()
	w.sentDAG(2, []ledger.Step{{Number: 1, Name: "plot"}}, ledger.Place{Step: 1, Sequence: ledger.AllSequences})
	w.changed(1, 1, func(n *ledger.Node) {
		n.Cluster, n.Status, n.ExitCode, n.Reason, n.Message, n.Stderr = 93, ledger.StatusFailed, new(
			3,
		), "Exited", "exit 3", "no"
	})
	w.changed(1, 2, func(n *ledger.Node) { n.Cluster, n.JobStatus = 94, int(condor.Running) })
	zero, one := 0, 1
	require.Equal(t, []aggregate.Node{
		{Step: "fit", Sequence: &zero, Index: 0, State: "waiting", NodeKey: aggregate.NodeKey{DAG: 1, Node: 0}},
		{
			Step:     "fit",
			Sequence: &zero,
			Index:    1,
			State:    "failed",
			JobID:    "93.0",
			ExitCode: new(3),
			Reason:   "Exited",
			Message:  "exit 3",
			Stderr:   "no",
			NodeKey:  aggregate.NodeKey{DAG: 1, Node: 1},
		},
		{
			Step:     "fit",
			Sequence: &one,
			Index:    0,
			State:    "running",
			JobID:    "94.0",
			NodeKey:  aggregate.NodeKey{DAG: 1, Node: 2},
		},
		{Step: "fit", Sequence: &one, Index: 1, State: "waiting", NodeKey: aggregate.NodeKey{DAG: 1, Node: 3}},
		{Step: "plot", Index: 0, State: "waiting", NodeKey: aggregate.NodeKey{DAG: 2, Node: 0}},
	}, w.listed())

	keys := func(change func(*aggregate.Query)) (keys []string) {
		for _, n := range w.listed(change) {
			keys = append(keys, n.NodeKey.String())
		}
		return keys
	}
	require.Equal(t, []string{"1.1"}, keys(func(q *aggregate.Query) { q.State = aggregate.NodeFailed }))
	require.Equal(t, []string{"2.0"}, keys(func(q *aggregate.Query) { q.Node.Step = "plot" }))
	require.Equal(
		t,
		[]string{"1.3", "2.0"},
		keys(func(q *aggregate.Query) { q.After = aggregate.NodeKey{DAG: 1, Node: 2} }),
	)
	require.Equal(t, []string{"1.3"}, keys(func(q *aggregate.Query) {
		q.After, q.State, q.Node.Step = aggregate.NodeKey{DAG: 1, Node: 2}, aggregate.NodeWaiting, "fit"
	}))
	require.Empty(t, keys(func(q *aggregate.Query) { q.After = aggregate.NodeKey{DAG: 2, Node: 0} }))

	_, err := w.Nodes(t.Context(), ofNodes("", 0, 0, func(q *aggregate.Query) { q.Attempt = 2 }))
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	_, err = w.Nodes(t.Context(), ofNodes("", 0, 0, func(q *aggregate.Query) { q.Name = "zero" }))
	require.True(t, apierrors.IsNotFound(err), "an HTCJob is none: %v", err)
}

func TestALongListIsReadInPages(t *testing.T) {
	w := newWorkflow(t)
	nodes := make([]ledger.Place, 2*nodesAtOnce+1)
	for i := range nodes {
		nodes[i].Sequence = i
	}
	w.sentDAG(1, []ledger.Step{{Number: 0, Name: "fit"}}, nodes...)
	all := w.listed()
	require.Len(t, all, len(nodes))
	require.True(t, slices.IsSortedFunc(all, func(a, b aggregate.Node) int { return a.Node - b.Node }))
}

func TestTheNodeThatIsMeantIsFound(t *testing.T) {
	w := newWorkflow(t)
	w.sentFirst()
	w.changed(1, 3, func(n *ledger.Node) {
		n.Cluster, n.JobStatus, n.Status = 95, int(condor.Completed), ledger.StatusSucceeded
	})
	_, err := w.NodeLog(t.Context(), ofNodes("fit", 1, 1))
	require.ErrorContains(t, err, "fit/job_1/1 (job 95.0) has ended, and its output is fetched within some time")
	w.fetched(1)
	dir := filepath.Join(w.o.Nodes.Root, "ns", "scan", "1", "fit", "job_1", "1")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, output.Stdout), []byte("one\ntwo\n"), 0o600))
	answer, err := w.NodeLog(t.Context(), ofNodes("fit", 1, 1))
	require.NoError(t, err)
	defer answer.Close()
	var got strings.Builder
	require.NoError(t, answer.Write(t.Context(), &got))
	require.Equal(t, "one\ntwo\n", got.String())
	require.Equal(t, 1, answer.Attempt)

	for what, q := range map[string]aggregate.Query{
		"another step":              ofNodes("fix", 0, 0),
		"another sequence":          ofNodes("fit", 2, 0),
		"another index":             ofNodes("fit", 0, 2),
		"one for all":               ofNodes("fit", aggregate.AllSequences, 0),
		"a sequence of one for all": ofNodes("plot", 1, 0),
		"another attempt":           ofNodes("fit", 0, 0, func(q *aggregate.Query) { q.Attempt = 2 }),
	} {
		_, err := w.NodeLog(t.Context(), q)
		require.True(t, apierrors.IsNotFound(err), "%s: %v", what, err)
	}
	_, err = w.NodeLog(t.Context(), ofNodes("plot", 0, 0))
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.ErrorContains(t, err, "plot/all waits for the nodes before it")
	_, err = w.NodeLog(t.Context(), ofNodes("fit", 0, 0))
	require.ErrorContains(t, err, "fit/job_0/0 waits for the nodes before it")
	w.changed(1, 0, func(n *ledger.Node) { n.JobStatus = int(condor.Running) })
	_, err = w.NodeLog(t.Context(), ofNodes("fit", 0, 0))
	require.ErrorContains(t, err, "fit/job_0/0 has started, and HTCondor is asked for the number of its job")
	w.changed(1, 0, func(n *ledger.Node) { n.Status = ledger.StatusFutile })
	_, err = w.NodeLog(t.Context(), ofNodes("fit", 0, 0))
	require.ErrorContains(t, err, "fit/job_0/0 was never run")
}

func TestANodeIsFoundByTheNameOfItsStep(t *testing.T) {
	w := newWorkflow(t)
	w.sentFirst()
	w.changed(1, 0, func(n *ledger.Node) { n.Cluster, n.Status = 95, ledger.StatusSucceeded })
	flow, _, err := w.o.Workflows(t.Context(), "ns", "scan")
	require.NoError(t, err)
	slices.Reverse(flow.Spec.Steps) // after the DAG was sent
	_, err = w.NodeLog(t.Context(), ofNodes("fit", 0, 0))
	require.ErrorContains(t, err, "fit/job_0/0 (job 95.0) has ended")
	_, err = w.NodeLog(t.Context(), ofNodes("plot", 0, 0))
	require.ErrorContains(t, err, "plot/all waits for the nodes before it")
	answer, err := w.NodeFiles(t.Context(), ofNodes("fit", 0, 0))
	require.NoError(t, err)
	require.Equal(t, 2, answer.Jobs)
}

func TestANodeIsFollowedFromItsStartToItsEnd(t *testing.T) {
	w := newWorkflow(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	answer, err := w.NodeLog(ctx, ofNodes("fit", 0, 1, func(q *aggregate.Query) { q.Follow = true }))
	require.NoError(t, err)
	defer answer.Close()
	from, to := io.Pipe()
	written := make(chan error, 1)
	go func() { written <- answer.Write(ctx, to); _ = to.Close() }()
	w.sentFirst()
	w.node.set(func() { w.node.status, w.node.starts, w.node.written = condor.Running, 1, "one\n" })
	w.changed(1, 1, func(n *ledger.Node) { n.Cluster, n.JobStatus = 7, int(condor.Running) })
	line := make([]byte, 4)
	_, err = io.ReadFull(from, line)
	require.NoError(t, err)
	require.Equal(t, "one\n", string(line))
	dir := filepath.Join(w.o.Nodes.Root, "ns", "scan", "1", "fit", "job_0", "1")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, output.Stdout), []byte("one\ntwo\n"), 0o600))
	w.node.set(func() { w.node.status = condor.Completed })
	w.changed(1, 1, func(n *ledger.Node) {
		n.JobStatus, n.Status = int(condor.Completed), ledger.StatusSucceeded
	})
	w.fetched(1)
	_, err = io.ReadFull(from, line)
	require.NoError(t, err)
	require.Equal(t, "two\n", string(line))
	require.NoError(t, <-written)
}
