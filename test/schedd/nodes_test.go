package schedd_test

import (
	"context"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/crosscheck/nodes"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/target/backend"
)

// followed is a DAG with its rows in a ledger, and what brings these into line with HTCondor.
type followed struct {
	*graph
	book  *ledger.Ledger
	run   ledger.Run
	dags  *crosscheck.Checker
	rest  *nodes.Checker
	ahead atomic.Int64 // of the clock, in nanoseconds

	mu       sync.Mutex
	reported map[int]ledger.NodeState // what callbacks made of nodes
}

// follow sends a DAG whose intent is in the ledger. Step numbers are those of the DAG; places are of its nodes. Its
// jobs report if reports is set.
func follow(g *graph, places []ledger.Place, reports bool) *followed {
	g.t.Helper()
	book, err := ledger.Open(g.t.Context(), filepath.Join(g.t.TempDir(), "htcjobs.db"))
	require.NoError(g.t, err)
	g.t.Cleanup(func() { require.NoError(g.t, book.Close()) })
	f := &followed{graph: g, book: book, reported: map[int]ledger.NodeState{}}
	now := func() time.Time { return time.Now().Add(time.Duration(f.ahead.Load())) }
	as := func(context.Context, backend.Target) (schedd.Identity, error) { return g.id, nil }
	f.dags = &crosscheck.Checker{
		Driver: crosscheck.Driver[crosscheck.RunObserver]{
			Ledger: book, Schedd: g.Client, As: as, Now: now, Observer: silent{},
		},
		Kind: ledger.Workflows,
	}
	f.rest = &nodes.Checker{
		Driver: crosscheck.Driver[crosscheck.Observer]{
			Ledger: book, Schedd: g.Client, As: as, Now: now, Observer: silent{}, Whole: 10 * time.Minute,
		},
		Started: f.dags.Started,
		Accounts: func(ctx context.Context, _ backend.Target) ([]string, error) {
			account, err := g.Ping(ctx, g.id, schedd.Writing)
			return []string{account}, err
		},
	}
	if reports {
		receiver := httptest.NewServer(notify.NewReceiver(f, notify.Options{}, zerolog.Nop()))
		g.t.Cleanup(receiver.Close)
		for k := range g.dag.Steps {
			g.dag.Steps[k].CallbackURL = receiver.URL + notify.Path
		}
	} else {
		for k := range g.dag.Steps {
			g.dag.Steps[k].CallbackURL = ""
		}
	}
	s, err := g.dag.Render()
	require.NoError(g.t, err)
	var steps []ledger.Step
	for k, step := range g.dag.Steps {
		steps = append(steps, ledger.Step{Number: k, Name: step.Name, Deferred: s.Steps[k].Deferred})
	}
	for n := range places {
		places[n].Step = g.dag.Nodes[n].Step
	}
	tag := g.dag.Tag
	f.run = ledger.Run{
		Kind:      ledger.Workflows,
		UID:       tag.UID,
		Attempt:   tag.Attempt,
		Namespace: tag.Namespace,
		Name:      tag.Name,
		State:     ledger.Intent,
		Procs:     1,
		TokenHash: notify.Hash(token),
		Created:   now(),
		Deferred:  true,
	}
	f.write(func(tx *ledger.Tx) error {
		require.NoError(g.t, tx.InsertRun(f.run))
		return tx.InsertNodes(f.run, steps, places)
	})
	g.submit()
	f.run.State, f.run.Cluster, f.run.Submitted = ledger.Submitted, g.cluster.ID, now()
	f.write(func(tx *ledger.Tx) error {
		require.NoError(g.t, tx.UpdateRun(f.run))
		return tx.InsertProcs(f.run, 1)
	})
	return f
}

func (f *followed) write(fn func(*ledger.Tx) error) {
	f.t.Helper()
	require.NoError(f.t, f.book.Write(f.t.Context(), fn))
}

// Record implements notify.Recorder.
func (f *followed) Record(ctx context.Context, c notify.Callback, tokenHash []byte) error {
	return f.book.Write(ctx, func(tx *ledger.Tx) error {
		r, err := nodes.Record(tx, c, tokenHash, time.Now())
		if err == nil && r.Changed {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.reported[r.Node.Number] = r.Node.State()
		}
		return err
	})
}

// pass makes one, and reports whether the DAG is settled.
func (f *followed) pass() (settled bool) {
	f.t.Helper()
	require.NoError(f.t, f.dags.Crosscheck(f.t.Context()))
	require.NoError(f.t, f.rest.Crosscheck(f.t.Context()))
	require.NoError(f.t, f.book.Read(f.t.Context(), func(tx *ledger.Tx) error {
		run, err := tx.Run(f.run.UID, f.run.Attempt)
		require.NoError(f.t, err)
		settled, err = tx.Settled(f.run.UID, f.run.Attempt)
		settled = settled && run.Confirmed
		return err
	}))
	return settled
}

func (f *followed) rows() (rows []ledger.Node) {
	f.t.Helper()
	require.NoError(f.t, f.book.Read(f.t.Context(), func(tx *ledger.Tx) (err error) {
		rows, err = tx.Nodes(f.run.UID, f.run.Attempt, ledger.NodeFilter{})
		return err
	}))
	return rows
}

func (f *followed) states() (states []ledger.NodeState) {
	for _, n := range f.rows() {
		states = append(states, n.State())
	}
	return states
}

type silent struct{}

func (silent) Passed(string, schedd.Endpoint, time.Duration, error) {}
func (silent) Changed(ledger.Run)                                   {}
func (silent) Checked(ledger.Run)                                   {}
func (silent) Unchanged(ledger.Run)                                 {}
func (silent) Used(ledger.Run, int64)                               {}
func (silent) Missing(backend.Target, crosscheck.Missing)           {}
func (silent) Unread(ledger.Run, []string)                          {}
func (silent) Repaired(ledger.Run, crosscheck.Alike)                {}
func (silent) Stuck(context.Context, ledger.Run) error              { return nil }

// shapes adds three sequences of steps of all kinds.
func shapes(g *graph) (places []ledger.Place) {
	at := func(sequence int) { places = append(places, ledger.Place{Sequence: sequence}) }
	var first, second []int
	g.step("first", `test "$N" != 1 || { echo "went wrong" >&2; exit 3; }`)
	for s := range 3 {
		first = append(first, g.node(submit.DAGNode{Variables: "N=" + strconv.Itoa(s) + "\n"}))
		at(s)
	}
	again := g.step(
		"again",
		`starts=$(sed -n 's/^NumJobStarts = //p' .job.ad); test "${starts:-0}" -ge 1 || { echo "try $starts" >&2; exit 75; }`,
	)
	again.JobOptions.Retries, again.RetryExitCodes = new(2), []int{75}
	for s := range 3 {
		second = append(second, g.node(submit.DAGNode{Parents: []int{first[s]}}))
		at(s)
	}
	counts := g.step("counts", `exit 9`)
	counts.AlwaysSucceeds = true
	for s := range 3 {
		g.node(submit.DAGNode{Parents: []int{second[s]}})
		at(s)
	}
	zero := g.step("zero is none", `exit 0`)
	zero.JobOptions.SuccessCodes = []int{5}
	g.node(submit.DAGNode{})
	at(ledger.AllSequences)
	return places
}

func TestTheRowsOfADAGsNodesEndAsHTCondorSays(t *testing.T) {
	const done, failed, futile = ledger.NodeDone, ledger.NodeFailed, ledger.NodeFutile
	want := []ledger.NodeState{done, failed, done, done, futile, done, done, futile, done, failed}
	for name, reports := range map[string]bool{"by callbacks and passes": true, "by passes alone": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGraph(t)
			f := follow(g, shapes(g), reports)
			require.Eventually(t, f.pass, patience, 500*time.Millisecond)
			require.Equal(t, want, f.states())
			said := f.graph.nodes()
			for _, n := range f.rows() {
				j, ran := said[n.Number]
				require.Equal(t, n.State() != futile, ran, n.Number)
				if ran {
					require.Equal(t, j.ID(), n.JobID())
					require.Equal(t, crosscheck.FromHTCondor, n.Source)
				}
			}
			rows := f.rows()
			require.Equal(t, 3, *rows[1].ExitCode)
			require.Equal(t, nodes.ReasonFutile, rows[4].Reason)
			if !reports {
				require.Equal(
					t,
					[]int{0, 1},
					[]int{*rows[6].ExitCode, *rows[9].ExitCode},
					"what the wrapper made of it",
				)
				return
			}
			require.Equal(t, []int{9, 0}, []int{*rows[6].ExitCode, *rows[9].ExitCode}, "the script's own")
			require.Equal(t, "went wrong", rows[1].Stderr)
			require.Empty(t, rows[3].Stderr, "its second try has succeeded")
			f.mu.Lock()
			defer f.mu.Unlock()
			require.Len(t, f.reported, 8, "every job that ran")
			require.NoError(t, f.book.Read(t.Context(), func(tx *ledger.Tx) error {
				counts, err := tx.SequenceCounts(f.run.UID, f.run.Attempt)
				require.Equal(t, ledger.SequenceCounts{Succeeded: 2, Failed: 1}, counts)
				return err
			}))
		})
	}
}

func TestTheRowsOfARemovedDAGSayWhy(t *testing.T) {
	t.Parallel()
	g := newGraph(t)
	g.step("slow", `sleep 1000`)
	slow := g.node(submit.DAGNode{})
	g.step("after", `exit 0`)
	g.node(submit.DAGNode{Parents: []int{slow}})
	f := follow(g, []ledger.Place{{}, {}}, true)
	require.Eventually(
		t,
		func() bool { f.pass(); return f.states()[0] == ledger.NodeRunning },
		patience,
		500*time.Millisecond,
	)
	f.write(func(tx *ledger.Tx) error {
		run, err := tx.Run(f.run.UID, f.run.Attempt)
		require.NoError(t, err)
		run.Stop = crosscheck.StopSuspended
		return tx.UpdateRun(run)
	})
	require.NoError(
		t,
		scheddtest.Err(
			g.Change(
				t.Context(),
				g.id,
				schedd.Remove{
					Where:  g.dag.Tag.Constraint().In(g.cluster.ID),
					Reason: crosscheck.RemoveReason(crosscheck.StopSuspended),
				},
			),
		),
	)
	require.Eventually(t, func() bool {
		f.ahead.Add(int64(crosscheck.LostAfter))
		return f.pass()
	}, patience, 500*time.Millisecond)
	rows := f.rows()
	require.Equal(t, []ledger.NodeState{ledger.NodeFutile, ledger.NodeFutile}, f.states())
	require.Equal(
		t,
		[]string{crosscheck.StopSuspended, crosscheck.StopSuspended},
		[]string{rows[0].Reason, rows[1].Reason},
	)
	require.Contains(t, rows[0].Message, "removed")
}
