package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sentBy inserts a run of a pool whose procs are in these states.
func sentBy(t testing.TB, l *Ledger, pool, namespace, at string, cluster int, procs ...Proc) Run {
	t.Helper()
	r := testRun(fmt.Sprintf("%s-%d", at, cluster))
	r.Pool, r.Namespace, r.Schedd, r.Cluster, r.Procs = pool, namespace, at, cluster, len(procs)
	mustWrite(t, l, func(tx *Tx) error {
		if err := tx.InsertRun(r); err != nil {
			return err
		}
		if err := tx.InsertProcs(r, r.Procs); err != nil {
			return err
		}
		for i, p := range procs {
			p.UID, p.Attempt, p.Proc = r.UID, r.Attempt, i
			if err := tx.UpdateProc(p); err != nil {
				return err
			}
		}
		return nil
	})
	return r
}

func TestTheUseOfAPoolCountsWhatMayStillBeInHTCondor(t *testing.T) {
	l, _ := openTemp(t)
	unseen, idle, running, held := Proc{
		Status: StatusOpen,
	}, Proc{
		Status:    StatusOpen,
		JobStatus: jobIdle,
	}, Proc{
		Status:    StatusOpen,
		JobStatus: jobRunning,
	},
		Proc{
			Status:    StatusOpen,
			JobStatus: jobHeld,
		}
	reported, ended := Proc{Status: StatusFailed, Source: "callback"}, Proc{Status: StatusSucceeded, JobStatus: 4}
	sentBy(t, l, "grid", "atlas", "one", 1, unseen, idle, idle, running, held, reported, ended)
	sentBy(t, l, "grid", "atlas", "one", 2, unseen)
	sentBy(t, l, "grid", "atlas", "two", 1, Proc{Status: StatusOpen, JobStatus: jobTransferring})
	sentBy(t, l, "grid", "cms", "one", 3, reported)
	sentBy(t, l, "other", "cms", "one", 4, idle)
	over := sentBy(t, l, "grid", "cms", "one", 5, ended)
	intent, refused := testRun("intent"), testRun("refused")
	intent.Pool, intent.Namespace, intent.State, intent.Procs, intent.Schedd = "grid", "cms", Intent, 7, "one"
	refused.Pool, refused.Namespace, refused.State = "grid", "cms", Refused
	mustWrite(t, l, func(tx *Tx) error {
		over.Confirmed = true
		require.NoError(t, tx.UpdateRun(over))
		require.NoError(t, tx.InsertRun(intent))
		return tx.InsertRun(refused)
	})
	mustRead(t, l, func(tx *Tx) error {
		use, err := tx.PoolUse("grid")
		require.NoError(t, err)
		require.Equal(t, []PoolUse{
			{Namespace: "atlas", Schedd: "one", Unseen: 2, Idle: 2, Running: 1, Held: 1, Ending: 1},
			{Namespace: "atlas", Schedd: "two", Running: 1},
			{Namespace: "cms", Schedd: "one", Sending: 7, Ending: 1},
		}, use)
		require.Equal(t, 7, use[0].Open())
		require.Equal(t, 8, use[2].Open())
		open, err := tx.OpenProcs()
		require.NoError(t, err)
		require.Equal(t, []OpenProcs{{"", "one", 16}, {"", "two", 1}}, open)
		use, err = tx.PoolUse("")
		require.NoError(t, err)
		require.Empty(t, use)
		return nil
	})
}

func TestRecentSubmissionsAreListedOldestFirst(t *testing.T) {
	l, _ := openTemp(t)
	mustWrite(t, l, func(tx *Tx) error {
		for i, s := range []time.Duration{3, 1, 2} {
			r := testRun(fmt.Sprint(i))
			r.Pool, r.Procs, r.Submitted = "grid", i+1, noon.Add(s*time.Second)
			if err := tx.InsertRun(r); err != nil {
				return err
			}
		}
		return nil
	})
	mustRead(t, l, func(tx *Tx) error {
		sent, err := tx.SentSince(noon.Add(time.Second))
		require.Equal(t, []Sent{{"grid", 3, noon.Add(2 * time.Second)}, {"grid", 1, noon.Add(3 * time.Second)}}, sent)
		return err
	})
}

// BenchmarkPoolUse is what a submission waits for at most once in a while: 10,000 open runs of one pool.
func BenchmarkPoolUse(b *testing.B) {
	l, _ := openTemp(b)
	mustWrite(b, l, func(tx *Tx) error {
		for i := range 10_000 {
			r := testRun(fmt.Sprintf("0f8fad5b-d9cb-469f-a165-%012d", i))
			r.Cluster, r.Procs, r.Namespace, r.Pool = i+1, 10, fmt.Sprintf("ns%d", i%50), "grid"
			if err := tx.InsertRun(r); err != nil {
				return err
			}
			if err := tx.InsertProcs(r, r.Procs); err != nil {
				return err
			}
		}
		return nil
	})
	for b.Loop() {
		mustRead(b, l, func(tx *Tx) error {
			_, err := tx.PoolUse("grid")
			return err
		})
	}
}

// BenchmarkSentSince is what the first submission after a restart waits for: 100,000 runs of 1,000 pools.
func BenchmarkSentSince(b *testing.B) {
	l, _ := openTemp(b)
	mustWrite(b, l, func(tx *Tx) error {
		for i := range 100_000 {
			r := testRun(fmt.Sprintf("0f8fad5b-d9cb-469f-a165-%012d", i))
			r.Cluster, r.Procs, r.Namespace, r.Pool = i+1, 1, fmt.Sprintf("ns%d", i%50), fmt.Sprintf("pool%d", i%1000)
			r.Submitted = noon.Add(time.Duration(i-100_000) * time.Second)
			if err := tx.InsertRun(r); err != nil {
				return err
			}
		}
		return nil
	})
	for b.Loop() {
		mustRead(b, l, func(tx *Tx) error {
			sent, err := tx.SentSince(noon.Add(-time.Minute))
			require.Len(b, sent, 59)
			return err
		})
	}
}

func TestWhatIsRequestedOfAPoolIsThatOfWhatWaitsOrRuns(t *testing.T) {
	l, _ := openTemp(t)
	open := func(at int) Proc { return Proc{Status: StatusOpen, JobStatus: at} }
	sentBy(
		t,
		l,
		"grid",
		"atlas",
		"one",
		1,
		open(0),
		open(jobIdle),
		open(jobRunning),
		open(jobHeld),
		Proc{Status: StatusSucceeded, JobStatus: 4},
	)
	sentBy(t, l, "other", "cms", "one", 2, open(jobIdle))
	intent := testRun("intent")
	intent.Pool, intent.Namespace, intent.State, intent.Procs, intent.Effective = "grid", "cms", Intent, 7, "{}"
	dag, _, _ := testDAG("u1", 1)
	dag.Pool, dag.Namespace = "grid", "lhcb"
	mustWrite(t, l, func(tx *Tx) error {
		require.NoError(t, tx.InsertRun(intent))
		require.NoError(t, tx.InsertRun(dag))
		return tx.InsertNodes(
			dag,
			[]Step{{Number: 0, Name: "fit", Effective: "fits"}},
			[]Place{{}, {Sequence: 1}, {Sequence: 2}},
		)
	})
	set(
		t,
		l,
		map[int]func(*Node){0: func(n *Node) { n.JobStatus = jobRunning }, 1: func(n *Node) { n.JobStatus = jobHeld }},
	)
	mustRead(t, l, func(tx *Tx) error {
		all, err := tx.PoolRequests("grid")
		require.ElementsMatch(t, []PoolRequest{
			{
				Namespace: "atlas",
				Waiting:   1,
				InUse:     3,
			}, {Namespace: "cms", Effective: "{}", InUse: 7}, {Namespace: "lhcb", Effective: "fits", InUse: 1},
		}, all)
		return err
	})
}
