package ledger

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhatIsAskedAboutHTCJobsDoesNotShowDAGs(t *testing.T) {
	l, _ := openTemp(t)
	dag := insertDAG(t, l, "u1", 1)
	dag.Pool, dag.OutputDir, dag.Secret = "grid", "/out", "mine"
	intent, steps, nodes := testDAG("u2", 1)
	intent.State, intent.Pool, intent.Name = Intent, "grid", "sent"
	mustWrite(t, l, func(tx *Tx) error {
		require.NoError(t, tx.UpdateRun(dag))
		require.NoError(t, tx.InsertRun(intent))
		require.NoError(t, tx.InsertNodes(intent, steps, nodes))
		require.NoError(t, tx.SetDestinations("u1", 1, []Destination{{Path: "a", Artifact: "registry/a"}}))
		p, err := tx.Proc("u1", 1, 0)
		p.Status, p.JobStatus = StatusSucceeded, 4
		require.NoError(t, tx.UpdateProc(p))
		require.NoError(t, tx.ExpectWritten("u1", 1, 0, ""))
		p.Status, p.JobStatus, p.Reason = StatusOpen, jobHeld, "PoolSuspended"
		require.NoError(t, tx.UpdateProc(p))
		return err
	})
	for name, ask := range map[string]func(tx *Tx) (any, error){
		"runs":              func(tx *Tx) (any, error) { return tx.Runs(RunFilter{}) },
		"runs of a name":    func(tx *Tx) (any, error) { return tx.Runs(RunFilter{Namespace: "physics", Name: "zero"}) },
		"unconfirmed runs":  func(tx *Tx) (any, error) { return tx.Runs(RunFilter{State: Submitted, Unconfirmed: true}) },
		"intents":           func(tx *Tx) (any, error) { return tx.Runs(RunFilter{State: Intent}) },
		"use of a pool":     func(tx *Tx) (any, error) { return tx.PoolUse("grid") },
		"recently sent":     func(tx *Tx) (any, error) { return tx.SentSince(noon.Add(-time.Hour)) },
		"open procs":        func(tx *Tx) (any, error) { return tx.OpenProcs() },
		"output to fetch":   func(tx *Tx) (any, error) { return tx.UnfetchedRuns() },
		"artifacts to push": func(tx *Tx) (any, error) { return tx.UnpushedRuns() },
	} {
		t.Run(name, func(t *testing.T) {
			mustRead(t, l, func(tx *Tx) error {
				all, err := ask(tx)
				require.Empty(t, all)
				return err
			})
		})
	}
	mustRead(t, l, func(tx *Tx) error {
		n, err := tx.UnfetchedProcs()
		require.NoError(t, err)
		require.Zero(t, n)
		held, err := tx.HeldByPools("grid")
		require.NoError(t, err)
		require.Empty(t, held)
		totals, err := tx.Totals()
		require.NoError(t, err)
		require.Zero(t, totals)
		_, err = tx.ProcByJobID("physics", "zero", "91.0", dag.TokenHash)
		require.ErrorIs(t, err, ErrNotFound)

		open, err := tx.OpenRuns()
		require.NoError(t, err)
		require.Equal(t, []OpenAt{{Schedd: dag.Schedd, Runs: 1, Checked: dag.Submitted}}, open, "it is compared, too")
		sent, err := tx.SentWith("physics", "mine", false)
		require.NoError(t, err)
		require.True(t, sent, "its Secret is kept")
		dags, err := tx.Runs(RunFilter{Kind: Workflows})
		require.Equal(t, []Run{dag, intent}, dags)
		return err
	})
}

func TestADAGIsSettledWhenHTCondorHasConfirmedAllOfIt(t *testing.T) {
	l, _ := openTemp(t)
	insertDAG(t, l, "u1", 1)
	settled := func() (is bool) {
		mustRead(t, l, func(tx *Tx) error {
			open, err := tx.OpenDAGs()
			require.NoError(t, err)
			is, err = tx.Settled("u1", 1)
			require.Equal(t, is, len(open) == 0)
			return err
		})
		return is
	}
	require.False(t, settled(), "all wait")
	code := 0
	end := func(n *Node) {
		n.Cluster, n.Status, n.ExitCode, n.Source = 92+n.Number, StatusSucceeded, &code, "callback"
	}
	set(
		t,
		l,
		map[int]func(*Node){
			0: end,
			1: end,
			2: end,
			3: func(n *Node) { n.Status, n.Source = StatusFutile, "crosscheck" },
		},
	)
	require.False(t, settled(), "only callbacks have said so")
	confirm := func(n *Node) { n.Source = "crosscheck" }
	set(t, l, map[int]func(*Node){0: confirm, 1: confirm, 2: confirm})
	require.True(t, settled())
}

func TestWhatNoJobWasSeenOfEndsWithItsDAG(t *testing.T) {
	l, _ := openTemp(t)
	insertDAG(t, l, "u1", 5)
	// Sequence 0 has succeeded, 1 has failed, of 2 the first job was seen, nothing of 3 and 4.
	done := func(n *Node) { n.Cluster, n.Status = 100+n.Number, StatusSucceeded }
	set(
		t,
		l,
		map[int]func(*Node){
			0: done,
			1: done,
			2: done,
			3: func(n *Node) { n.Cluster, n.Status = 103, StatusFailed },
			6: done,
		},
	)
	lost := Verdict{Status: StatusFailed, Reason: "Lost", Message: "why", Source: "crosscheck", At: noon}
	futile := Verdict{Status: StatusFutile, Reason: "Futile", Source: "crosscheck", At: noon}
	var counts []int
	mustWrite(t, l, func(tx *Tx) error {
		for n := 1; n > 0; counts = append(counts, n) {
			var err error
			if n, err = tx.EndFirstWaiting("u1", 1, lost, 2); err != nil {
				return err
			}
		}
		for n := 1; n > 0; counts = append(counts, n) {
			var err error
			if n, err = tx.EndWaiting("u1", 1, futile, 4); err != nil {
				return err
			}
		}
		return nil
	})
	require.Equal(t, []int{2, 1, 0, 4, 4, 0}, counts)
	mustRead(t, l, func(tx *Tx) error {
		failed, err := tx.Nodes("u1", 1, NodeFilter{State: NodeFailed})
		require.NoError(t, err)
		require.Equal(t, []int{3, 7, 9, 12}, numbersOf(failed))
		require.Equal(t, "why", failed[1].Message)
		rest, err := tx.Nodes("u1", 1, NodeFilter{State: NodeFutile})
		require.NoError(t, err)
		require.Equal(t, []int{4, 5, 8, 10, 11, 13, 14, 15}, numbersOf(rest), "the job for all sequences, too")
		sequences, err := tx.SequenceCounts("u1", 1)
		require.Equal(t, SequenceCounts{Succeeded: 1, Failed: 4}, sequences)
		return err
	})
}

func TestAJobForAllSequencesCanBeTheOneThatIsLost(t *testing.T) {
	l, _ := openTemp(t)
	insertDAG(t, l, "u1", 1)
	done := func(n *Node) { n.Cluster, n.Status = 100+n.Number, StatusSucceeded }
	set(t, l, map[int]func(*Node){0: done, 1: done, 2: done})
	mustWrite(t, l, func(tx *Tx) error {
		n, err := tx.EndFirstWaiting("u1", 1, Verdict{Status: StatusFailed, At: noon}, 10)
		require.Equal(t, 1, n)
		return err
	})
}

func TestWaitingNodesAreASet(t *testing.T) {
	l, _ := openTemp(t)
	insertDAG(t, l, "u1", 7000) // 21,001 nodes, three pages
	gone := map[int]func(*Node){}
	for _, number := range []int{0, 31, 32, 10_239, 10_240, 20_999} {
		gone[number] = func(n *Node) { n.Cluster = 1 }
	}
	set(t, l, gone)
	var waiting NodeSet
	require.True(t, waiting.Empty())
	for from, more := 0, true; more; more = from > 0 {
		mustRead(t, l, func(tx *Tx) (err error) {
			from, err = tx.WaitingNodes("u1", 1, &waiting, from)
			return err
		})
	}
	require.False(t, waiting.Empty())
	for number := -1; number < 21_100; number++ {
		_, seen := gone[number]
		require.Equal(t, number >= 0 && number <= 21_000 && !seen, waiting.Has(number), number)
	}
}

func TestAFileWithoutNodesGetsThem(t *testing.T) {
	l, path := openTemp(t)
	job := testRun("job")
	insert(t, l, job)
	require.NoError(t, l.Close())
	_, err := shell(
		t,
		path,
	).Exec(
		`DROP TRIGGER runs_deleted; DROP VIEW attempts; DROP TABLE tolerated; DROP TABLE sequenceTallies; DROP TABLE sequences; DROP TABLE nodeTallies; DROP TABLE nodes; DROP TABLE steps;
		DROP INDEX runs_kind; ALTER TABLE runs DROP COLUMN kind;
		ALTER TABLE runs DROP COLUMN account; ALTER TABLE runs DROP COLUMN started; ALTER TABLE runs DROP COLUMN finished;
		ALTER TABLE runs DROP COLUMN sent; ALTER TABLE runs DROP COLUMN jobs; ALTER TABLE runs DROP COLUMN keptFailed; ALTER TABLE runs DROP COLUMN usage; ALTER TABLE runs DROP COLUMN earlier; DROP INDEX runs_factories; ALTER TABLE runs DROP COLUMN factory; ALTER TABLE runs DROP COLUMN factoryIdle; ALTER TABLE runs DROP COLUMN unmade; ALTER TABLE runs DROP COLUMN unsent; ALTER TABLE htcjobs DROP COLUMN usage; DROP TABLE rules; PRAGMA user_version = 16`,
	)
	require.NoError(t, err)
	l, err = Open(context.Background(), path)
	require.NoError(t, err)
	defer l.Close()
	insertDAG(t, l, "u1", 1)
	mustRead(t, l, func(tx *Tx) error {
		runs, err := tx.Runs(RunFilter{})
		require.Equal(t, []Run{job}, runs, "what was there is of HTCJobs")
		return err
	})
}
