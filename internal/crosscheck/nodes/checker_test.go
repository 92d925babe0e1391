package nodes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/ledger/ledgertest"
	"htc.cern.ch/htcd/internal/ledger/procset"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
	"htc.cern.ch/htcd/internal/target/backend"
)

// world is a Checker with a schedd in memory and a ledger of its own.
type world struct {
	*Checker
	t        *testing.T
	book     *ledger.Ledger
	schedd   *scheddtest.Schedd
	clock    time.Time
	changed  int
	unread   []string
	repaired []crosscheck.Alike
	missing  crosscheck.Missing
	daemon   schedd.Daemon
}

func newWorld(t *testing.T) *world {
	t.Helper()
	book := ledgertest.Open(t)
	w := &world{t: t, book: book, schedd: scheddtest.New(), clock: start}
	w.schedd.Clock(func() time.Time { return w.clock })
	w.Checker = &Checker{
		Driver: crosscheck.Driver[crosscheck.Observer]{
			Ledger: book, Schedd: w.schedd, Now: func() time.Time { return w.clock }, Observer: w,
			As: func(context.Context, backend.Target) (schedd.Identity, error) { return schedd.Identity{}, nil },
		},
		Accounts: func(context.Context, backend.Target) ([]string, error) { return []string{scheddtest.Robot}, nil },
		Started:  func(backend.Target) int64 { return 1 },
		Daemon:   func(backend.Target) schedd.Daemon { return w.daemon },
	}
	return w
}

func (w *world) Passed(_ string, _ schedd.Endpoint, _ time.Duration, err error) {
	require.NoError(w.t, err)
}
func (w *world) Changed(ledger.Run)     { w.changed++ }
func (w *world) Used(ledger.Run, int64) {}

func (w *world) Missing(_ backend.Target, m crosscheck.Missing) { w.missing = m }
func (w *world) Unread(_ ledger.Run, jobs []string)             { w.unread = append(w.unread, jobs...) }
func (w *world) Repaired(_ ledger.Run, repaired crosscheck.Alike) {
	w.repaired = append(w.repaired, repaired)
}

// repairs returns the repairs in words.
func (w *world) repairs() (words []string) {
	for _, alike := range w.repaired {
		words = append(words, fmt.Sprintf("%s %s", alike.Kind, procset.Of(alike.Numbers)))
	}
	return words
}

// send records a DAG of sequences of two steps, whose own job is cluster 91.
func (w *world) send(uid string, sequences int) ledger.Run {
	w.t.Helper()
	run := ledger.Run{
		Kind:      ledger.Workflows,
		UID:       uid,
		Attempt:   1,
		Namespace: "physics",
		Name:      uid,
		State:     ledger.Submitted,
		Cluster:   91,
		Procs:     1,
		TokenHash: notify.Hash("the token of " + uid),
		Created:   w.clock,
		Submitted: w.clock,
	}
	var nodes []ledger.Place
	for s := range sequences {
		nodes = append(nodes, ledger.Place{Sequence: s}, ledger.Place{Step: 1, Sequence: s})
	}
	w.write(func(tx *ledger.Tx) error {
		if err := tx.InsertRun(run); err != nil {
			return err
		}
		if err := tx.InsertProcs(run, 1); err != nil {
			return err
		}
		return tx.InsertNodes(run, []ledger.Step{{Name: "first"}, {Number: 1, Name: "second", Deferred: true}}, nodes)
	})
	return run
}

func (w *world) write(fn func(*ledger.Tx) error) {
	w.t.Helper()
	require.NoError(w.t, w.book.Write(w.t.Context(), fn))
}

// node puts the job of a node into the queue.
func (w *world) node(uid string, number, cluster int) {
	w.schedd.Put(
		condor.Job{
			Cluster:       cluster,
			Owner:         scheddtest.Robot,
			Status:        condor.Idle,
			StageInFinish: 1,
			Node:          condor.NodeTag{UID: uid, DAG: 1, Number: number},
		},
	)
}

// leaves lets a job end with a code, and leave the queue as DAGMan's nodes do.
func (w *world) leaves(cluster, code int) {
	w.schedd.Complete(cluster, 0, code)
	w.schedd.Leave(cluster, 0)
}

// ends records that HTCondor has confirmed the end of DAGMan's own job; code < 0: it was removed.
func (w *world) ends(uid string, code int) {
	w.t.Helper()
	w.write(func(tx *ledger.Tx) error {
		run, err := tx.Run(uid, 1)
		require.NoError(w.t, err)
		p, err := tx.Proc(uid, 1, 0)
		require.NoError(w.t, err)
		run.Confirmed, run.Ended = true, w.clock
		p.Status, p.Source, p.Reason = ledger.StatusFailed, crosscheck.FromHTCondor, crosscheck.ReasonRemoved
		if code >= 0 {
			p.ExitCode, p.Reason = &code, "ExitCode"
		}
		if code == 0 {
			p.Status = ledger.StatusSucceeded
		}
		require.NoError(w.t, tx.UpdateProc(p))
		return tx.UpdateRun(run)
	})
}

func (w *world) later(d time.Duration) { w.clock = w.clock.Add(d) }

func (w *world) crosscheck() {
	w.t.Helper()
	w.later(time.Minute)
	require.NoError(w.t, w.Crosscheck(w.t.Context()))
}

// states returns what the nodes of a DAG do, one word each.
func (w *world) states(uid string) (states []ledger.NodeState) {
	w.t.Helper()
	for _, n := range w.nodes(uid) {
		states = append(states, n.State())
	}
	return states
}

func (w *world) nodes(uid string) (nodes []ledger.Node) {
	w.t.Helper()
	require.NoError(w.t, w.book.Read(w.t.Context(), func(tx *ledger.Tx) (err error) {
		nodes, err = tx.Nodes(uid, 1, ledger.NodeFilter{})
		return err
	}))
	return nodes
}

func (w *world) settled(uid string) (is bool) {
	w.t.Helper()
	require.NoError(w.t, w.book.Read(w.t.Context(), func(tx *ledger.Tx) (err error) {
		is, err = tx.Settled(uid, 1)
		return err
	}))
	return is
}

const (
	waits   = ledger.NodeWaiting
	isIdle  = ledger.NodeIdle
	isRun   = ledger.NodeRunning
	isHeld  = ledger.NodeHeld
	isDone  = ledger.NodeDone
	hasFail = ledger.NodeFailed
	isVain  = ledger.NodeFutile
)

func TestAPassFollowsTheNodesOfSeveralDAGs(t *testing.T) {
	w := newWorld(t)
	w.send("u1", 2)
	w.send("u2", 1)
	w.crosscheck()
	require.Equal(t, []ledger.NodeState{waits, waits, waits, waits}, w.states("u1"))
	require.Zero(t, w.changed)

	w.node("u1", 0, 92)
	w.node("u1", 2, 93)
	w.node("u2", 0, 94)
	w.schedd.Run(93, 0)
	w.schedd.Hold(94, 0, 12, "no such file")
	require.NoError(t, w.Refresh(t.Context()))
	require.Equal(t, []ledger.NodeState{isIdle, waits, isRun, waits}, w.states("u1"))
	require.Equal(t, []ledger.NodeState{isHeld, waits}, w.states("u2"))
	require.Equal(t, "no such file (hold code 12/0)", w.nodes("u2")[0].Message)
	require.Equal(t, 2, w.changed, "once for each DAG")
	w.crosscheck()
	require.Equal(t, 2, w.changed, "nothing new")

	w.leaves(92, 0)
	w.leaves(93, 3)
	w.node("u1", 1, 95)
	w.leaves(95, 0) // it was never in the queue when HTCondor was asked
	w.crosscheck()
	require.Equal(t, []ledger.NodeState{isDone, isDone, hasFail, waits}, w.states("u1"))
	require.Equal(t, []string{"lost_callback 0", "silent_end 1", "lost_callback 2"}, w.repairs())
	require.Equal(t, "93.0", w.nodes("u1")[2].JobID())
	for range 3 {
		w.crosscheck()
	}
	require.Equal(t, waits, w.states("u1")[3], "as long as the DAG goes on it waits")
	require.Equal(t, isHeld, w.states("u2")[0])
}

func TestTheHistoryIsReadBackToTheLastPassOnly(t *testing.T) {
	w := newWorld(t)
	w.send("u1", 1)
	var bounds []string
	w.Checker.Schedd = listening{w.schedd, func(q schedd.Query) {
		if b := q.Left; b != nil && b.Limit == 0 {
			bounds = append(bounds, b.Since)
		}
	}}
	w.node("u1", 0, 92)
	w.leaves(92, 0)
	w.crosscheck()
	w.crosscheck()
	require.Equal(t, []string{"", "92.0"}, bounds)
	w.later(time.Second)
	w.write(func(tx *ledger.Tx) error { return tx.DeleteRuns("u2") })
	w.send("u2", 1)
	w.crosscheck()
	require.Equal(t, "92.0", bounds[2], "what was sent since is not in what was read before")
}

func TestTheHistoryOfADAGThatHasEndedIsReadBackToWhenItWasSent(t *testing.T) {
	w := newWorld(t)
	w.send("u1", 1)
	w.node("u1", 0, 92)
	w.leaves(92, 0)
	w.crosscheck()
	w.later(time.Second)
	run := w.send("u2", 1)
	w.node("u2", 0, 93)
	w.node("u2", 1, 94)
	w.crosscheck()
	w.leaves(93, 0)
	w.crosscheck() // from here on its newest entry is another one
	var bounds []string
	w.Checker.Schedd = listening{w.schedd, func(q schedd.Query) {
		if b := q.Left; b != nil && b.Limit == 0 {
			bounds = append(bounds, b.Since)
		}
	}}
	check := func() {
		w.later(time.Minute)
		require.NoError(t, w.Check(t.Context(), backend.Groups([]ledger.Run{run})[0]))
	}
	w.schedd.Lose(94, 0)
	w.ends("u2", 1)
	check()
	require.Equal(t, []string{"92.0"}, bounds)
	require.Equal(t, []ledger.NodeState{isDone, isIdle}, w.states("u2"))
	check()
	require.Equal(t, []string{"92.0", ""}, bounds, "before a job is called lost, all of it is read")
	require.Equal(t, []ledger.NodeState{isDone, hasFail}, w.states("u2"))
	w.crosscheck()
	require.NotContains(t, w.before, key{"u2", 1})
}

// listening tells of questions before they are asked.
type listening struct {
	*scheddtest.Schedd
	asked func(schedd.Query)
}

func (l listening) Query(ctx context.Context, id schedd.Identity, q schedd.Query, fn condor.JobFunc) error {
	l.asked(q)
	return l.Schedd.Query(ctx, id, q, fn)
}

func TestNobodyElsesJobIsANode(t *testing.T) {
	w := newWorld(t)
	w.send("u1", 1)
	w.schedd.Put(
		condor.Job{
			Cluster:       500,
			Owner:         "mallory",
			Status:        condor.Idle,
			StageInFinish: 1,
			Node:          condor.NodeTag{UID: "u1", DAG: 1, Number: 0},
		},
	)
	w.crosscheck()
	require.Equal(t, []ledger.NodeState{waits, waits}, w.states("u1"))
	w.node("u1", 0, 92)
	w.crosscheck()
	require.Equal(t, 92, w.nodes("u1")[0].Cluster)
	w.leaves(500, 0)
	w.schedd.Run(92, 0)
	w.crosscheck()
	require.Equal(t, []ledger.NodeState{isRun, waits}, w.states("u1"))
	w.leaves(92, 0)
	w.crosscheck()
	require.Equal(t, []ledger.NodeState{isDone, waits}, w.states("u1"))
	require.Equal(t, "92.0", w.nodes("u1")[0].JobID())
}

func TestTheNodesOfADAGAreJobsOfTheAccountThatItsOwnJobHas(t *testing.T) {
	w := newWorld(t)
	run := w.send("u1", 1)
	run.Account = "alice"
	w.write(func(tx *ledger.Tx) error { return tx.UpdateRun(run) })
	w.Accounts = nil // nobody needs them
	w.node("u1", 0, 92)
	w.crosscheck()
	require.Equal(t, []ledger.NodeState{waits, waits}, w.states("u1"), "it is robot's")
	w.schedd.Edit(92, 0, func(j *condor.Job) { j.Owner = "alice" })
	w.crosscheck()
	require.Equal(t, []ledger.NodeState{isIdle, waits}, w.states("u1"))
}

// As where the ledger is lost, and the Secret has another account by then.
func TestWhatHasLeftBeforeTheAccountOfADAGIsKnownIsRead(t *testing.T) {
	w := newWorld(t)
	w.Whole = time.Hour
	run := w.send("u1", 1)
	w.node("u1", 0, 92)
	w.schedd.Edit(92, 0, func(j *condor.Job) { j.Owner = "alice" })
	w.leaves(92, 3)
	w.crosscheck()
	require.Equal(t, []ledger.NodeState{waits, waits}, w.states("u1"), "the target's account is robot")
	w.node("u2", 0, 93) // the newest entry of the history
	w.leaves(93, 0)
	w.crosscheck()
	run.Account = "alice"
	w.write(func(tx *ledger.Tx) error { return tx.UpdateRun(run) })
	w.crosscheck()
	require.Equal(t, ledger.NodeFailed, w.states("u1")[0])
}

func TestADAGWhoseAccountCannotBeKnownWaitsAlone(t *testing.T) {
	w := newWorld(t)
	w.Whole = time.Hour
	broken := errors.New("secret physics/kinit-secret: expected a keytab")
	w.Accounts = func(_ context.Context, t backend.Target) ([]string, error) {
		if t.Namespace == "physics" {
			return nil, broken
		}
		return []string{scheddtest.Robot}, nil
	}
	w.send("u1", 1)
	other := w.send("u2", 1)
	w.write(func(tx *ledger.Tx) error {
		other.Account = scheddtest.Robot
		return tx.UpdateRun(other)
	})
	w.node("u1", 0, 92)
	w.node("u2", 0, 93)
	w.crosscheck()
	require.Equal(t, []ledger.NodeState{waits, waits}, w.states("u1"))
	require.Equal(t, []ledger.NodeState{isIdle, waits}, w.states("u2"))
	require.ErrorIs(t, w.Check(t.Context(), backend.Groups([]ledger.Run{{UID: "u1", Attempt: 1}})[0]), broken)

	w.leaves(92, 0)
	w.leaves(93, 0)
	w.ends("u1", 0)
	for range 3 {
		w.crosscheck()
	}
	require.Equal(t, []ledger.NodeState{waits, waits}, w.states("u1"), "nothing is concluded")
	require.Equal(t, isDone, w.states("u2")[0])

	w.Accounts = func(context.Context, backend.Target) ([]string, error) { return []string{scheddtest.Robot}, nil }
	w.crosscheck()
	require.Equal(t, []ledger.NodeState{isDone, isDone}, w.states("u1"))
	require.Equal(t, "92.0", w.nodes("u1")[0].JobID())
}

func TestSomebodyElsesJobHoldsUpNoEnd(t *testing.T) {
	for name, forged := range map[string]condor.Job{
		"its ad cannot be read":                  {Unread: true, Node: condor.NodeTag{UID: "u1", DAG: 1}},
		"neither its ad nor its tag can be read": {Unread: true, Node: condor.NodeTag{UID: "u1", DAG: 7}},
		"a callback has claimed its cluster":     {Node: condor.NodeTag{UID: "u1", DAG: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.send("u1", 1)
			w.write(func(tx *ledger.Tx) error {
				n, err := tx.Node("u1", 1, 0)
				require.NoError(t, err)
				n, _ = callback(n, 500, notify.Callback{Node: &notify.Node{}}, w.clock)
				return tx.UpdateNode(n)
			})
			forged.Cluster, forged.Owner, forged.Status, forged.StageInFinish = 500, "mallory", condor.Running, 1
			w.schedd.Put(forged)
			w.ends("u1", 1)
			for range 4 {
				w.crosscheck()
			}
			require.True(t, w.settled("u1"))
			require.Empty(t, w.unread)
		})
	}
}

func TestANodeThatDAGManSentTwiceFollowsItsSecondJob(t *testing.T) {
	w := newWorld(t)
	w.send("u1", 1)
	w.node("u1", 0, 92)
	w.leaves(92, 3)
	w.crosscheck()
	require.Equal(t, hasFail, w.states("u1")[0])
	w.node("u1", 0, 93)
	w.crosscheck()
	require.Equal(t, isIdle, w.states("u1")[0])
	w.leaves(93, 0)
	w.crosscheck()
	require.Equal(t, isDone, w.states("u1")[0])
	require.Equal(t, "93.0", w.nodes("u1")[0].JobID())
}

func TestWhatNeverRanWhenTheDAGHasEnded(t *testing.T) {
	for name, tt := range map[string]struct {
		code   int
		stop   string
		passes int // until it is settled
		want   []ledger.NodeState
		reason string // of the last
	}{
		"DAGMan reports failures":      {1, "", 1, []ledger.NodeState{hasFail, isVain, isDone, isDone, hasFail, isVain}, ReasonFutile},
		"DAGMan reports success":       {0, "", 1, []ledger.NodeState{hasFail, isDone, isDone, isDone, isDone, isDone}, reasonDone},
		"somebody removed it":          {-1, "", 2, []ledger.NodeState{hasFail, isVain, isDone, isDone, isVain, isVain}, crosscheck.ReasonRemoved},
		"htcd removed it":              {-1, crosscheck.StopSuspended, 2, []ledger.NodeState{hasFail, isVain, isDone, isDone, isVain, isVain}, crosscheck.StopSuspended},
		"htcd removed it, it ran well": {0, crosscheck.StopSuspended, 1, []ledger.NodeState{hasFail, isDone, isDone, isDone, isDone, isDone}, reasonDone},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			run := w.send("u1", 3)
			run.Stop = tt.stop
			w.write(func(tx *ledger.Tx) error { return tx.UpdateRun(run) })
			w.node("u1", 0, 92)
			w.node("u1", 2, 93)
			w.node("u1", 3, 94)
			w.leaves(92, 3)
			w.leaves(93, 0)
			w.crosscheck()
			w.leaves(94, 0)
			w.ends("u1", tt.code)
			require.NoError(t, w.Refresh(t.Context()))
			require.Equal(t, waits, w.states("u1")[1], "the queue alone proves nothing")
			for range tt.passes {
				require.False(t, w.settled("u1"))
				w.crosscheck()
			}
			require.Equal(t, tt.want, w.states("u1"))
			require.Equal(t, tt.reason, w.nodes("u1")[5].Reason)
			require.True(t, w.settled("u1"))
		})
	}
}

func TestNodesThatHTCondorRemovedForHtcdSaySo(t *testing.T) {
	stop := func(t *testing.T, w *world, run ledger.Run) {
		run.Stop = crosscheck.StopDeadline
		w.write(func(tx *ledger.Tx) error { return tx.UpdateRun(run) })
		for cluster, reason := range map[int]string{
			92: "removed because <OtherJobRemoveRequirements = DAGManJobId =?= 91> fired when job (91.0) was removed",
			93: "via condor_rm (by user robot)", // by the launcher of a factory
		} {
			remove := schedd.Remove{Where: condor.Constraint(fmt.Sprintf("ClusterId == %d", cluster)), Reason: reason}
			require.NoError(t, scheddtest.Err(w.schedd.Change(t.Context(), schedd.Identity{}, remove)))
		}
	}
	for name, when := range map[string]func(t *testing.T, w *world, run ledger.Run){
		"before": stop,
		"after the DAG was read, and before HTCondor answers": func(t *testing.T, w *world, run ledger.Run) {
			begins := sync.OnceFunc(func() { stop(t, w, run) })
			w.Schedd = listening{w.schedd, func(schedd.Query) { begins() }}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			run := w.send("u1", 1)
			w.node("u1", 0, 92)
			w.node("u1", 1, 93)
			w.crosscheck()
			when(t, w, run)
			for range 3 { // what has left before its DAG is read again later, to its end
				w.crosscheck()
			}
			for _, n := range w.nodes("u1") {
				require.Equal(t, ledger.StatusFutile, n.Status, "%+v", n)
				require.Equal(t, crosscheck.StopDeadline, n.Reason)
			}
		})
	}
}

// The schedd was killed before it had noted the end of the job, which DAGMan had read from its log.
func TestANodeWhoseEndTheScheddForgotEndedAsDAGManSays(t *testing.T) {
	const why = "removed because <OtherJobRemoveRequirements = DAGManJobId =?= 91> fired when job (91.0) was removed"
	for name, tt := range map[string]struct {
		code     int // of DAGMan
		exit     *int
		callback *int
		want     ledger.NodeState
	}{
		"DAGMan has succeeded":                    {0, new(0), nil, isDone},
		"it was killed in another run":            {0, new(143), nil, isDone},
		"its ad does not say":                     {0, nil, nil, isDone},
		"DAGMan has failed, the node has not":     {1, new(0), nil, isDone},
		"DAGMan has failed, and so has the node":  {1, new(3), nil, hasFail},
		"the callback knows better than its kill": {1, new(143), new(0), isDone},
		"somebody has removed the DAG":            {-1, new(0), nil, hasFail},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.send("u1", 1)
			w.node("u1", 0, 92)
			w.crosscheck()
			if tt.callback != nil {
				w.write(func(tx *ledger.Tx) error {
					n, err := tx.Node("u1", 1, 0)
					require.NoError(t, err)
					n, _ = callback(
						n,
						92,
						notify.Callback{Retcode: *tt.callback, Node: &notify.Node{Exit: *tt.callback}},
						w.clock,
					)
					return tx.UpdateNode(n)
				})
			}
			before := w.states("u1")
			w.schedd.Edit(92, 0, func(j *condor.Job) { j.ExitBySignal, j.ExitCode = new(false), tt.exit })
			require.NoError(
				t,
				scheddtest.Err(
					w.schedd.Change(
						t.Context(),
						schedd.Identity{},
						schedd.Remove{Where: "ClusterId == 92", Reason: why},
					),
				),
			)
			w.crosscheck()
			require.Equal(t, before, w.states("u1"), "as long as the end of DAGMan is not known")
			w.ends("u1", tt.code)
			w.crosscheck()
			require.Equal(t, tt.want, w.states("u1")[0])
			w.crosscheck()
			require.Equal(t, tt.want, w.states("u1")[0])
		})
	}
}

func TestAJobWhoseAdCannotBeReadIsNeitherLostNorFutile(t *testing.T) {
	w := newWorld(t)
	w.send("u1", 1)
	w.node("u1", 0, 92)
	w.crosscheck()
	w.schedd.Edit(92, 0, func(j *condor.Job) { j.Unread = true })
	w.ends("u1", 1)
	for range 3 {
		w.crosscheck()
	}
	require.Equal(t, []ledger.NodeState{isIdle, waits}, w.states("u1"))
	require.Equal(t, []string{"92.0", "92.0", "92.0"}, w.unread)
	w.schedd.Edit(92, 0, func(j *condor.Job) { j.Unread = false })
	w.leaves(92, 3)
	w.crosscheck()
	require.Equal(t, []ledger.NodeState{hasFail, isVain}, w.states("u1"))
	require.Equal(t, []string{"lost_callback 0"}, w.repairs(), "the other never had a job")
}

func TestAnErrorOfACommandChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.send("u1", 1)
	w.node("u1", 0, 92)
	w.crosscheck()
	w.schedd.Lose(92, 0)
	w.ends("u1", 1)
	g := backend.Groups([]ledger.Run{{UID: "u1", Attempt: 1}})[0]
	for range 3 {
		w.schedd.Fail(scheddtest.History, scheddtest.Fault{Err: context.DeadlineExceeded})
		w.later(time.Minute)
		require.Error(t, w.Check(t.Context(), g))
	}
	require.Equal(t, []ledger.NodeState{isIdle, waits}, w.states("u1"))
	w.crosscheck()
	w.crosscheck()
	require.Equal(t, []ledger.NodeState{hasFail, isVain}, w.states("u1"))
}
