package nodes

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
	"htc.cern.ch/htcd/internal/target/backend"
)

// A pair is two htcds that follow the same nodes: ours asks for what has changed, the reference for everything.
type pair struct {
	t               *testing.T
	rand            *rand.Rand
	schedd          *scheddtest.Schedd
	skew            time.Duration // of the schedd's clock
	ours, reference *world        // ours has the clock
	dags            []string
	ended           map[string]bool
	next            int
	job             map[string]map[int]int // by DAG and node: its cluster
}

const sequences = 3

func newPair(t *testing.T, seed uint64) *pair {
	w := &pair{
		t:         t,
		rand:      rand.New(rand.NewPCG(seed, 0)),
		ours:      newWorld(t),
		reference: newWorld(t),
		next:      92,
		ended:     map[string]bool{},
		job:       map[string]map[int]int{},
	}
	w.schedd = w.ours.schedd
	w.skew = time.Duration(w.rand.IntN(601)-300) * time.Second
	w.schedd.Clock(func() time.Time { return w.ours.clock.Add(w.skew) })
	w.schedd.Restart()
	for _, one := range []*world{w.ours, w.reference} {
		one.Schedd, one.Now = w.schedd, func() time.Time { return w.ours.clock }
		one.Started = func(backend.Target) int64 {
			d, err := w.schedd.Daemon(t.Context(), schedd.Identity{})
			require.NoError(t, err)
			return d.Started
		}
	}
	w.ours.Whole = 10 * time.Minute
	return w
}

func (w *pair) tick(most int) { w.ours.later(time.Duration(1+w.rand.IntN(most)) * time.Second) }

// both changes the ledgers of both.
func (w *pair) both(fn func(*world)) {
	fn(w.ours)
	fn(w.reference)
}

func (w *pair) send() {
	uid := fmt.Sprint("u", len(w.dags))
	w.dags = append(w.dags, uid)
	w.job[uid] = map[int]int{}
	w.both(func(one *world) {
		one.clock = w.ours.clock
		one.send(uid, sequences)
	})
}

// put has DAGMan send a node, perhaps again, or somebody else a job that claims to be it.
func (w *pair) put(uid string, number int) {
	owner := scheddtest.Robot
	if w.rand.IntN(10) == 0 {
		owner = "mallory"
	} else {
		w.job[uid][number] = w.next
	}
	w.schedd.Put(condor.Job{
		Cluster:              w.next,
		Owner:                owner,
		Status:               condor.Idle,
		StageInFinish:        1,
		Node:                 condor.NodeTag{UID: uid, DAG: 1, Number: number},
		EnteredCurrentStatus: w.ours.clock.Add(w.skew).Unix(),
	})
	w.next++
}

func (w *pair) callback(uid string, number, code int) {
	cluster := w.job[uid][number]
	if w.rand.IntN(8) == 0 {
		cluster = w.next - 1
	}
	if cluster == 0 {
		return
	}
	w.both(func(one *world) {
		one.write(func(tx *ledger.Tx) error {
			n, err := tx.Node(uid, 1, number)
			require.NoError(w.t, err)
			n, changed := callback(
				n,
				cluster,
				notify.Callback{Retcode: code, Node: &notify.Node{Exit: code}},
				w.ours.clock,
			)
			if !changed {
				return nil
			}
			return tx.UpdateNode(n)
		})
	})
}

// tells delivers the report of a start, late.
func (w *pair) tells(uid string, number int) {
	w.both(func(one *world) {
		one.write(func(tx *ledger.Tx) error {
			n, err := tx.Node(uid, 1, number)
			require.NoError(w.t, err)
			n, changed := started(n, w.job[uid][number], w.ours.clock)
			if !changed {
				return nil
			}
			return tx.UpdateNode(n)
		})
	})
}

func (w *pair) state(cluster int, to condor.JobStatus) {
	w.schedd.Edit(cluster, 0, func(j *condor.Job) {
		j.LastStatus, j.Status, j.HoldReasonCode, j.HoldReason = j.Status, to, 0, ""
		if to == condor.Running {
			j.NumJobStarts++
			j.JobStartDate = j.EnteredCurrentStatus
		}
	})
}

// event is something that happens between two passes.
func (w *pair) event() {
	if len(w.dags) == 0 || w.rand.IntN(15) == 0 {
		w.send()
		return
	}
	uid := w.dags[w.rand.IntN(len(w.dags))]
	number := w.rand.IntN(2 * sequences)
	cluster, code := w.job[uid][number], w.rand.IntN(2)
	if w.ended[uid] {
		w.callback(uid, number, code)
		return
	}
	if cluster == 0 {
		w.put(uid, number)
		return
	}
	switch w.rand.IntN(20) {
	case 0, 1, 2:
		w.state(cluster, condor.Running)
	case 3: // evicted, perhaps within one period
		w.state(cluster, condor.Running)
		w.tick(20)
		w.state(cluster, condor.Idle)
		w.tells(uid, number)
	case 4:
		w.schedd.Hold(cluster, 0, 12, "held once")
	case 5: // held for one reason, then for another
		w.schedd.Hold(cluster, 0, 12, "first")
		w.state(cluster, condor.Idle)
		w.schedd.Hold(cluster, 0, 13, "second")
	case 6:
		w.state(cluster, condor.Idle)
	case 7, 8, 9, 10: // it ends, and its callback comes before, after, or never
		w.state(cluster, condor.Running)
		w.tick(10)
		if code == 0 {
			w.callback(uid, number, code)
			w.tick(3)
		}
		w.ours.leaves(cluster, code)
		if w.rand.IntN(2) == 0 {
			w.callback(uid, number, code)
		}
	case 11: // its callback comes while it runs
		w.callback(uid, number, code)
	case 12: // somebody removes it
		require.NoError(
			w.t,
			scheddtest.Err(
				w.schedd.Change(
					w.t.Context(),
					schedd.Identity{},
					schedd.Remove{Where: condor.OneJob(cluster, 0), Reason: "via condor_rm"},
				),
			),
		)
	case 13:
		w.state(cluster, condor.Running)
		w.schedd.Quietly(cluster, 0, func(j *condor.Job) { j.Status = condor.Suspended })
	case 14:
		w.schedd.Quietly(cluster, 0, func(j *condor.Job) {
			if j.Status == condor.Suspended {
				j.Status = condor.Running
			}
		})
	case 15:
		w.schedd.Edit(cluster, 0, func(j *condor.Job) { j.Unread = true })
	case 16:
		w.schedd.Quietly(cluster, 0, func(j *condor.Job) { j.Unread = false })
	// DAGMan was killed before it had noted what it sent; if this job ended before any pass, the reference would see
	// the first one alone
	case 17:
		w.put(uid, number)
		w.pass()
	case 18: // the DAG is being stopped
		w.both(func(one *world) {
			one.write(func(tx *ledger.Tx) error {
				run, err := tx.Run(uid, 1)
				require.NoError(w.t, err)
				run.Stop = crosscheck.StopDeadline
				return tx.UpdateRun(run)
			})
		})
	case 19: // DAGMan ends: what it had in the queue is removed
		require.NoError(
			w.t,
			scheddtest.Err(
				w.schedd.Change(
					w.t.Context(),
					schedd.Identity{},
					schedd.Remove{
						Where:  condor.NodesConstraint(uid),
						Reason: "removed because <OtherJobRemoveRequirements = DAGManJobId =?= 91> fired when job (91.0) was removed",
					},
				),
			),
		)
		w.ended[uid] = true
		end := w.rand.IntN(3) - 1
		w.both(func(one *world) { one.ends(uid, end) })
	}
}

// rows returns what a ledger says of all nodes.
func (w *pair) rows(one *world) (rows []string) {
	for _, uid := range w.dags {
		for _, n := range one.nodes(uid) {
			exit := -1
			if n.ExitCode != nil {
				exit = *n.ExitCode
			}
			rows = append(
				rows,
				fmt.Sprintf(
					"%s node %d job %s claimed %t status %d state %d code %d %s %q by %q, absent %d",
					uid,
					n.Number,
					n.JobID(),
					n.Claimed,
					n.Status,
					n.JobStatus,
					exit,
					n.Reason,
					n.Message,
					n.Source,
					n.Absent,
				),
			)
		}
	}
	return rows
}

// hasLeft reports whether the history has a job. If it left once more, the history would be read only back to its
// second entry.
func (w *pair) hasLeft(j condor.Job) bool {
	return slices.ContainsFunc(w.schedd.Gone(), func(left condor.Job) bool { return left.Cluster == j.Cluster })
}

// pass has both make a cross-check, between which nothing happens.
func (w *pair) pass() {
	w.t.Helper()
	w.both(func(one *world) { require.NoError(w.t, one.Crosscheck(w.t.Context())) })
	require.Equal(w.t, w.rows(w.reference), w.rows(w.ours))
}

func TestWhatHasChangedIsAllThatAWholeCrossCheckFinds(t *testing.T) {
	const passes = 30
	seeds := uint64(2)
	if os.Getenv("TEST_ALL") != "" {
		seeds = 4
	}
	if many, err := strconv.ParseUint(os.Getenv("SEEDS"), 10, 64); err == nil {
		seeds = many
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newPair(t, seed)
			scheddtest.Course{
				Schedd:  w.schedd,
				Rand:    w.rand,
				Skew:    &w.skew,
				Events:  12,
				Apart:   10,
				Event:   w.event,
				Tick:    w.tick,
				Pass:    w.pass,
				Refresh: func() { w.both(func(one *world) { require.NoError(t, one.Refresh(t.Context())) }) },
				Restore: func(old []condor.Job) { w.schedd.Restore(slices.DeleteFunc(old, w.hasLeft)) },
			}.Run(passes)
			require.Greater(
				t,
				w.schedd.Calls(scheddtest.Changed),
				passes/6,
				"many passes ask only for what has changed",
			)
		})
	}
}

func TestOfTooManyChangesEverythingIsAsked(t *testing.T) {
	const nodes = 12_000
	w := newWorld(t)
	w.Whole = time.Hour
	w.send("u1", nodes/2)
	for n := range nodes {
		w.node("u1", n, 92+n)
	}
	w.crosscheck()
	changed := w.schedd.Calls(scheddtest.Changed)
	w.later(time.Hour / 2)
	jobs := w.schedd.Jobs()
	for n := range jobs {
		jobs[n].Status, jobs[n].EnteredCurrentStatus = condor.Running, w.clock.Unix()
	}
	w.schedd.Restore(jobs)
	w.crosscheck()
	require.Equal(t, changed+1, w.schedd.Calls(scheddtest.Changed))
	for _, state := range w.states("u1") {
		require.Equal(t, isRun, state)
	}
}

func TestAJobWhoseEntryInTheHistoryCannotBeReadIsNotLost(t *testing.T) {
	w := newWorld(t)
	w.Whole = 10 * time.Minute
	w.send("u1", 1)
	w.node("u1", 0, 92)
	w.crosscheck()
	w.schedd.Edit(92, 0, func(j *condor.Job) { j.Unread = true })
	w.leaves(92, 0)
	for range 4 {
		w.crosscheck()
	}
	require.Equal(t, []ledger.NodeState{isIdle, waits}, w.states("u1"))
}
