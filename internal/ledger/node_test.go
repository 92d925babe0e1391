package ledger

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// testDAG is a run of a workflow of sequences of two steps, the second of which has two jobs, and one job for all of
// them.
func testDAG(uid string, sequences int) (Run, []Step, []Place) {
	r := testRun(uid)
	r.Kind, r.Procs, r.Cluster = Workflows, 1, 91
	var nodes []Place
	for s := range sequences {
		nodes = append(nodes, Place{Sequence: s}, Place{Step: 1, Sequence: s}, Place{Step: 1, Sequence: s, Item: 1})
	}
	return r, []Step{
			{Number: 0, Name: "generate"},
			{Number: 1, Name: "simulate", Deferred: true},
			{Number: 2, Name: "plot"},
		},
		append(
			nodes,
			Place{Step: 2, Sequence: AllSequences},
		)
}

func insertDAG(tb testing.TB, l *Ledger, uid string, sequences int) Run {
	tb.Helper()
	r, steps, nodes := testDAG(uid, sequences)
	insert(tb, l, r)
	mustWrite(tb, l, func(tx *Tx) error { return tx.InsertNodes(r, steps, nodes) })
	return r
}

// set changes nodes of the DAG u1.
func set(tb testing.TB, l *Ledger, changes map[int]func(*Node)) {
	tb.Helper()
	mustWrite(tb, l, func(tx *Tx) error {
		for number, change := range changes {
			n, err := tx.Node("u1", 1, number)
			if err != nil {
				return err
			}
			change(&n)
			if err := tx.UpdateNode(n); err != nil {
				return err
			}
		}
		return nil
	})
}

func numbersOf(nodes []Node) (numbers []int) {
	for _, n := range nodes {
		numbers = append(numbers, n.Number)
	}
	return numbers
}

func TestANodeComesBackAsItWent(t *testing.T) {
	l, _ := openTemp(t)
	r := insertDAG(t, l, "u1", 2)
	want := Node{
		Proc:  Proc{UID: "u1", Attempt: 1, Namespace: "physics", Name: "zero", Status: StatusOpen, Changed: r.Created},
		Place: Place{Step: 1, Sequence: 1, Item: 1}, Number: 5, StepName: "simulate", Deferred: true,
	}
	mustRead(t, l, func(tx *Tx) error {
		got, err := tx.Node("u1", 1, 5)
		require.Equal(t, want, got)
		require.True(t, got.Waiting())
		steps, _ := tx.Steps("u1", 1)
		require.Equal(
			t,
			[]Step{{0, "generate", false, "", 0}, {1, "simulate", true, "", 0}, {2, "plot", false, "", 0}},
			steps,
		)
		return err
	})
	exit, signal := 3, 9
	want.Cluster, want.Claimed, want.Status, want.JobStatus, want.ExitCode, want.Signal =
		95, true, StatusFailed, 4, &exit, &signal
	want.Reason, want.Message, want.Source, want.Absent, want.Stderr = "ExitCode", "exit code 3", "callback", 2, "oops"
	want.Changed, want.Checked = noon.Add(time.Hour), noon.Add(2*time.Hour)
	mustWrite(t, l, func(tx *Tx) error {
		require.NoError(t, tx.UpdateNode(want))
		unknown := want
		unknown.Number = 7
		require.ErrorIs(t, tx.UpdateNode(unknown), ErrNotFound)
		return nil
	})
	mustRead(t, l, func(tx *Tx) error {
		got, err := tx.Node("u1", 1, 5)
		require.Equal(t, want, got)
		require.Equal(t, "95.0", got.JobID())
		_, missing := tx.Node("u1", 1, 7)
		require.ErrorIs(t, missing, ErrNotFound)
		among, _ := tx.NodesAmong("u1", 1, []int{6, 5, 99})
		require.Equal(t, []int{5, 6}, numbersOf(among))
		kept, _ := tx.KeptStderrs("u1", 1)
		require.Equal(t, 1, kept)
		return err
	})
}

func TestNodesAreInsertedOnceAndWithTheirSteps(t *testing.T) {
	l, _ := openTemp(t)
	r, steps, nodes := testDAG("u1", 1)
	job := testRun("job")
	insert(t, l, job)
	insert(t, l, r)
	for name, tt := range map[string]struct {
		run   Run
		steps []Step
		nodes []Place
		want  string
	}{
		"an HTCJob has none":           {job, steps, nodes, ErrNotFound.Error()},
		"a DAG has at least one":       {r, steps, nil, "cannot be"},
		"a node has a step of the DAG": {r, steps[:2], nodes, "node 3 is of step 2"},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(
				t,
				l.Write(t.Context(), func(tx *Tx) error { return tx.InsertNodes(tt.run, tt.steps, tt.nodes) }),
				tt.want,
			)
		})
	}
	mustWrite(t, l, func(tx *Tx) error { return tx.InsertNodes(r, steps, nodes) })
	require.ErrorIs(t, l.Write(t.Context(), func(tx *Tx) error { return tx.InsertNodes(r, steps, nodes) }), ErrExists)
}

func TestNodesAreFiltered(t *testing.T) {
	l, _ := openTemp(t)
	insertDAG(t, l, "u1", 3)
	code, step, sequence := 0, 1, 1
	set(t, l, map[int]func(*Node){
		1: func(n *Node) { n.Cluster, n.JobStatus, n.Source = 92, jobIdle, "crosscheck" },
		2: func(n *Node) { n.Cluster, n.JobStatus, n.Source = 93, jobTransferring, "crosscheck" },
		3: func(n *Node) { n.Cluster, n.JobStatus, n.Source, n.Reason = 94, jobHeld, "crosscheck", "Held" },
		4: func(n *Node) { n.Cluster, n.Status, n.Source, n.ExitCode = 95, StatusSucceeded, "callback", &code },
		5: func(n *Node) {
			n.Cluster, n.Status, n.JobStatus, n.Source, n.ExitCode = 96, StatusFailed, 4, "crosscheck", &code
		},
		6: func(n *Node) { n.Status, n.Source = StatusFutile, "crosscheck" },
	})
	for name, tt := range map[string]struct {
		filter NodeFilter
		want   []int
	}{
		"all, in order":               {NodeFilter{}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
		"a page":                      {NodeFilter{From: 4, Limit: 2}, []int{4, 5}},
		"waiting":                     {NodeFilter{State: NodeWaiting}, []int{0, 7, 8, 9}},
		"idle":                        {NodeFilter{State: NodeIdle}, []int{1}},
		"running":                     {NodeFilter{State: NodeRunning}, []int{2}},
		"held":                        {NodeFilter{State: NodeHeld}, []int{3}},
		"done":                        {NodeFilter{State: NodeDone}, []int{4}},
		"failed":                      {NodeFilter{State: NodeFailed}, []int{5}},
		"futile":                      {NodeFilter{State: NodeFutile}, []int{6}},
		"of a step":                   {NodeFilter{Step: &step}, []int{1, 2, 4, 5, 7, 8}},
		"of a sequence":               {NodeFilter{Sequence: &sequence}, []int{3, 4, 5}},
		"seen, and not confirmed":     {NodeFilter{Unconfirmed: true}, []int{1, 2, 3, 4}},
		"those but the unchanged":     {NodeFilter{Unconfirmed: true, Changed: true}, []int{3, 4}},
		"failed ones of another step": {NodeFilter{State: NodeIdle, Sequence: &sequence}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			mustRead(t, l, func(tx *Tx) error {
				nodes, err := tx.Nodes("u1", 1, tt.filter)
				require.Equal(t, tt.want, numbersOf(nodes))
				for _, n := range nodes {
					if tt.filter.State != "" {
						require.Equal(t, tt.filter.State, n.State())
					}
				}
				return err
			})
		})
	}
	mustRead(t, l, func(tx *Tx) error {
		unchanged := map[int][2]int{}
		err := tx.UnchangedNodes(
			"u1",
			1,
			0,
			9,
			func(number, cluster, jobStatus int) { unchanged[number] = [2]int{cluster, jobStatus} },
		)
		require.Equal(t, map[int][2]int{1: {92, jobIdle}, 2: {93, jobTransferring}}, unchanged)
		return err
	})
}

func TestNodesAreCountedByStepAndSequence(t *testing.T) {
	l, _ := openTemp(t)
	insertDAG(t, l, "u1", 4)
	insertDAG(t, l, "u2", 1)
	set(t, l, map[int]func(*Node){
		0: func(n *Node) { n.Status = StatusSucceeded },
		1: func(n *Node) { n.Status = StatusSucceeded },
		2: func(n *Node) { n.Status = StatusSucceeded },
		3: func(n *Node) { n.Status = StatusFailed },
		4: func(n *Node) { n.Status = StatusFutile },
		6: func(n *Node) { n.JobStatus = jobRunning },
		7: func(n *Node) { n.JobStatus = jobIdle },
		9: func(n *Node) { n.Status = StatusSucceeded },
	})
	mustRead(t, l, func(tx *Tx) error {
		steps, err := tx.NodeCounts("u1", 1)
		require.NoError(t, err)
		require.Equal(t, []StepCounts{
			{
				Step{0, "generate", false, "", 0},
				NodeCounts{Counts: Counts{Active: 1, Succeeded: 2, Failed: 1, Running: 1}},
			},
			{Step{1, "simulate", true, "", 0}, NodeCounts{Counts: Counts{Active: 5, Succeeded: 2, Idle: 1}, Futile: 1}},
			{Step{2, "plot", false, "", 0}, NodeCounts{Counts: Counts{Active: 1}}},
		}, steps)
		require.Equal(t, 8, steps[1].Total())
		sequences, err := tx.SequenceCounts("u1", 1)
		require.NoError(t, err)
		require.Equal(t, SequenceCounts{Active: 2, Succeeded: 1, Failed: 1}, sequences)
		for status, want := range map[Status][]int{StatusSucceeded: {0}, StatusFailed: {1}, StatusOpen: {2, 3}} {
			all, err := tx.Sequences("u1", 1, status, 0, 10)
			require.NoError(t, err)
			require.Equal(t, want, all)
		}
		page, err := tx.Sequences("u1", 1, StatusOpen, 3, 1)
		require.Equal(t, []int{3}, page)
		return err
	})
	for source, want := range map[string]int{"crosscheck": 0, "callback": 1} {
		from := func(n *Node) { n.Source = source }
		set(t, l, map[int]func(*Node){1: from, 2: from, 9: from})
		mustRead(t, l, func(tx *Tx) error {
			unconfirmed, err := tx.UnconfirmedSequences("u1", 1)
			require.Equal(t, want, unconfirmed, "of those that have succeeded")
			return err
		})
	}
	set(
		t,
		l,
		map[int]func(*Node){
			3: func(n *Node) { n.Status = StatusSucceeded },
			4: func(n *Node) { n.Status = StatusOpen },
		},
	)
	mustRead(t, l, func(tx *Tx) error {
		sequences, err := tx.SequenceCounts("u1", 1)
		require.Equal(t, SequenceCounts{Active: 3, Succeeded: 1}, sequences, "what has failed may begin again")
		return err
	})
}

func TestTriggersCountNodesAsACountOfAllDoes(t *testing.T) {
	l, path := openTemp(t)
	insertDAG(t, l, "u1", 20)
	random := rand.New(rand.NewPCG(17, 17))
	for range 20 {
		changes := map[int]func(*Node){}
		for range 30 {
			changes[random.IntN(61)] = func(n *Node) {
				n.Status = []Status{StatusOpen, StatusSucceeded, StatusFailed, StatusFutile}[random.IntN(4)]
				n.JobStatus = random.IntN(8)
			}
		}
		set(t, l, changes)
	}
	db := shell(t, path)
	for kept, counted := range map[string]string{
		`SELECT step, status, jobStatus, n FROM nodeTallies WHERE n <> 0`: `SELECT step, status, jobStatus, count(*) FROM nodes GROUP BY 1, 2, 3`,
		`SELECT sequence, open, failed, 0 FROM sequences`:                 `SELECT sequence, sum(status = 1), sum(status > 4), 0 FROM nodes WHERE sequence >= 0 GROUP BY 1`,
		`SELECT status, n, 0, 0 FROM sequenceTallies WHERE n <> 0`:        `SELECT status, count(*), 0, 0 FROM sequences GROUP BY 1`,
	} {
		var diff int
		require.NoError(
			t,
			db.QueryRow(`SELECT count(*) FROM (SELECT * FROM (`+kept+`) EXCEPT SELECT * FROM (`+counted+`))`).
				Scan(&diff),
		)
		require.Zero(t, diff, kept)
		require.NoError(
			t,
			db.QueryRow(`SELECT count(*) FROM (SELECT * FROM (`+counted+`) EXCEPT SELECT * FROM (`+kept+`))`).
				Scan(&diff),
		)
		require.Zero(t, diff, counted)
	}
}

func TestNodesGoWithTheirRun(t *testing.T) {
	l, path := openTemp(t)
	insertDAG(t, l, "u1", 2)
	mustWrite(t, l, func(tx *Tx) error { return tx.DeleteRuns("u1") })
	db := shell(t, path)
	for _, table := range []string{"nodes", "steps", "nodeTallies", "sequences", "sequenceTallies"} {
		var n int
		require.NoError(t, db.QueryRow(`SELECT count(*) FROM `+table).Scan(&n))
		require.Zero(t, n, table)
	}
}

// BenchmarkInsertNodes is one DAG of 100,000 nodes, as one durable write.
func BenchmarkInsertNodes(b *testing.B) {
	l, _ := openTemp(b)
	n := 0
	for b.Loop() {
		insertDAG(b, l, fmt.Sprintf("u%d", n), 33_333)
		n++
	}
}

// BenchmarkNodesOfALargeDAG are the questions of a pass over a DAG of 100,000 nodes of which 1,000 are in the queue.
func BenchmarkNodesOfALargeDAG(b *testing.B) {
	l, _ := openTemp(b)
	insertDAG(b, l, "u1", 33_333)
	changes := map[int]func(*Node){}
	for i := range 1000 {
		changes[50_000+i] = func(n *Node) { n.Cluster, n.JobStatus, n.Source = 100+i, jobIdle, "crosscheck" }
	}
	set(b, l, changes)
	read := func(fn func(*Tx) error) func(*testing.B) {
		return func(b *testing.B) {
			for b.Loop() {
				mustRead(b, l, fn)
			}
		}
	}
	b.Run("waiting", read(func(tx *Tx) error {
		var set NodeSet
		from, err := 0, error(nil)
		for next := true; next && err == nil; next = from > 0 {
			from, err = tx.WaitingNodes("u1", 1, &set, from)
		}
		return err
	}))
	b.Run("unchanged", read(func(tx *Tx) error { return tx.UnchangedNodes("u1", 1, 0, 1000, func(int, int, int) {}) }))
	b.Run("counts", read(func(tx *Tx) error { _, err := tx.NodeCounts("u1", 1); return err }))
	b.Run("open", read(func(tx *Tx) error { _, err := tx.OpenDAGs(); return err }))
	b.Run(
		"failures",
		read(func(tx *Tx) error { _, err := tx.Nodes("u1", 1, NodeFilter{State: NodeFailed, Limit: 10}); return err }),
	)
	b.Run(
		"page",
		read(func(tx *Tx) error { _, err := tx.Nodes("u1", 1, NodeFilter{From: 60_000, Limit: 1000}); return err }),
	)
	b.Run("update", func(b *testing.B) {
		i := 0
		for b.Loop() {
			set(b, l, map[int]func(*Node){i % 100_000: func(n *Node) { n.Status, n.JobStatus = StatusSucceeded, i%8 }})
			i++
		}
	})
}

func TestSomeNodesOfAStepMayFailInASequence(t *testing.T) {
	l, _ := openTemp(t)
	r, steps, nodes := testDAG(
		"u1",
		2,
	) // nodes 1 and 2 are of the step that allows a failure, in sequence 0; 4 and 5 in sequence 1
	steps[1].MayFail = 1
	insert(t, l, r)
	mustWrite(t, l, func(tx *Tx) error { return tx.InsertNodes(r, steps, nodes) })
	failed, done := func(n *Node) { n.Status = StatusFailed }, func(n *Node) { n.Status = StatusSucceeded }
	counts := func() (c SequenceCounts) {
		require.NoError(t, l.Read(t.Context(), func(tx *Tx) (err error) {
			c, err = tx.SequenceCounts("u1", 1)
			return err
		}))
		return c
	}
	set(t, l, map[int]func(*Node){0: done, 1: failed, 3: done, 4: failed, 5: done})
	require.Equal(t, SequenceCounts{Active: 1, Succeeded: 1}, counts())
	set(t, l, map[int]func(*Node){2: failed})
	require.Equal(t, SequenceCounts{Succeeded: 1, Failed: 1}, counts(), "one more than may")
	set(t, l, map[int]func(*Node){2: func(n *Node) { n.Status = StatusOpen }})
	require.Equal(t, SequenceCounts{Active: 1, Succeeded: 1}, counts())
	set(t, l, map[int]func(*Node){2: func(n *Node) { n.Status = StatusFutile }})
	require.Equal(t, SequenceCounts{Succeeded: 1, Failed: 1}, counts(), "what could not run is no failure that may be")
	set(t, l, map[int]func(*Node){2: failed})
	set(t, l, map[int]func(*Node){2: done, 3: failed})
	require.Equal(t, SequenceCounts{Succeeded: 1, Failed: 1}, counts(), "the other step allows none")
}
