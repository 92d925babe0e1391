package crosscheck

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/ledger/ledgertest"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
	"htc.cern.ch/htcd/internal/target/backend"
)

// A pair is two htcds that follow the same jobs: ours asks for what has changed, the reference for everything.
type pair struct {
	t               *testing.T
	rand            *rand.Rand
	schedd          *scheddtest.Schedd
	clock           time.Time
	skew            time.Duration // of the schedd's clock
	ours, reference *side
	clusters        int
	procs           []int // of each cluster
	ended           map[string]bool
}

type side struct {
	*Checker
	book   *ledger.Ledger
	unread map[runKey][]string
}

func (*side) Passed(string, schedd.Endpoint, time.Duration, error) {}
func (*side) Changed(ledger.Run)                                   {}
func (*side) Checked(ledger.Run)                                   {}
func (*side) Unchanged(ledger.Run)                                 {}
func (*side) Repaired(ledger.Run, Alike)                           {}
func (*side) Stuck(context.Context, ledger.Run) error              { return nil }
func (w *side) Used(ledger.Run, int64)                             {}

func (w *side) Missing(backend.Target, Missing) {}

func (w *side) Unread(run ledger.Run, jobs []string) {
	if len(jobs) == 0 {
		delete(w.unread, keyOf(run))
	} else {
		w.unread[keyOf(run)] = jobs
	}
}

func newPair(t *testing.T, seed uint64) *pair {
	w := &pair{
		t:      t,
		rand:   rand.New(rand.NewPCG(seed, 0)),
		schedd: scheddtest.New(),
		clock:  time.Unix(1_800_000_000, 0),
		ended:  map[string]bool{},
	}
	w.schedd.Clock(func() time.Time { return w.clock.Add(w.skew) })
	w.skew = time.Duration(w.rand.IntN(601)-300) * time.Second
	w.schedd.Restart()
	w.ours, w.reference = w.side(10*time.Minute), w.side(0)
	return w
}

func (w *pair) side(whole time.Duration) *side {
	book := ledgertest.Open(w.t)
	one := &side{book: book, unread: map[runKey][]string{}}
	one.Checker = &Checker{Driver: Driver[RunObserver]{
		Ledger: book, Schedd: w.schedd, Now: func() time.Time { return w.clock }, Observer: one, Whole: whole,
		As: func(context.Context, backend.Target) (schedd.Identity, error) { return schedd.Identity{}, nil },
	}}
	return one
}

func (w *pair) both(fn func(*side) error) {
	w.t.Helper()
	require.NoError(w.t, fn(w.ours))
	require.NoError(w.t, fn(w.reference))
}

// submit adds a run of some procs to the schedd and both ledgers. QDate and EnteredCurrentStatus are by another clock
// than the schedd's.
func (w *pair) submit() {
	w.clusters++
	n := 1 + w.rand.IntN(4)
	w.procs = append(w.procs, n)
	run := ledger.Run{
		UID: fmt.Sprint(
			"u",
			w.clusters,
		), Attempt: 1, Namespace: "n", Name: fmt.Sprint("j", w.clusters), State: ledger.Submitted, Schedd: "s",
		Cluster: w.clusters, Procs: n, TempDir: "/t", Created: w.clock, Submitted: w.clock,
	}
	for proc := range n {
		w.schedd.Put(condor.Job{
			Cluster:              run.Cluster,
			Proc:                 proc,
			Tag:                  condor.Tag{UID: run.UID, Attempt: 1},
			Owner:                "robot",
			Status:               condor.Idle,
			LastStatus:           condor.Held,
			QDate:                w.clock.Unix(),
			StageInFinish:        w.clock.Unix(),
			EnteredCurrentStatus: w.clock.Add(-time.Hour).Unix(),
		})
	}
	w.both(func(one *side) error {
		return one.book.Write(w.t.Context(), func(tx *ledger.Tx) error {
			if err := tx.InsertRun(run); err != nil {
				return err
			}
			return tx.InsertProcs(run, n)
		})
	})
}

// callback delivers that of a job, perhaps late or for a job that runs again.
func (w *pair) callback(cluster, proc, code int) {
	w.observe(cluster, proc, Callback(code, w.clock))
}

func (w *pair) observe(cluster, proc int, o Observation) {
	w.both(func(one *side) error {
		return one.book.Write(w.t.Context(), func(tx *ledger.Tx) error {
			uid := fmt.Sprint("u", cluster)
			p, err := tx.Proc(uid, 1, proc)
			if err != nil {
				return err
			}
			run, err := tx.Run(uid, 1)
			if err != nil {
				return err
			}
			_, err = ObserveRow(tx, run, p, o)
			return err
		})
	})
}

// start starts a job as HTCondor does.
func (w *pair) start(cluster, proc int) {
	w.schedd.Edit(cluster, proc, func(j *condor.Job) {
		j.LastStatus, j.Status, j.HoldReasonCode, j.HoldReason = j.Status, condor.Running, 0, ""
		j.NumJobStarts++
		if j.JobStartDate == 0 {
			j.JobStartDate = j.EnteredCurrentStatus
		}
	})
}

func (w *pair) requeue(cluster, proc int) {
	w.schedd.Edit(cluster, proc, func(j *condor.Job) {
		j.LastStatus, j.Status, j.HoldReasonCode, j.HoldReason = j.Status, condor.Idle, 0, ""
	})
}

func (w *pair) tick(most int) {
	w.clock = w.clock.Add(time.Duration(1+w.rand.IntN(most)) * time.Second)
}

// event is something that happens in HTCondor between two passes.
func (w *pair) event() {
	if w.clusters == 0 || w.rand.IntN(8) == 0 {
		w.submit()
		return
	}
	cluster := 1 + w.rand.IntN(w.clusters)
	proc := w.rand.IntN(w.procs[cluster-1])
	live := slices.ContainsFunc(w.schedd.Jobs(), func(j condor.Job) bool {
		return j.Cluster == cluster && j.Proc == proc && j.Status != condor.Completed
	})
	code := w.rand.IntN(2)
	switch e := w.rand.IntN(18); {
	case !live && e < 8:
		w.schedd.Leave(cluster, proc) // its output was fetched
	case !live:
		w.callback(cluster, proc, code)
	case e < 4:
		w.start(cluster, proc)
	case e == 4: // evicted, perhaps within one period
		w.start(cluster, proc)
		w.tick(20)
		w.requeue(cluster, proc)
		w.observe(cluster, proc, Start(w.clock)) // late
	case e == 5:
		w.schedd.Hold(cluster, proc, 1, "held once")
	case e == 6: // held and released within one period
		w.schedd.Hold(cluster, proc, 1, "held shortly")
		w.tick(5)
		w.requeue(cluster, proc)
	case e == 7: // held for one reason, then for another
		w.schedd.Hold(cluster, proc, 12, "first")
		w.requeue(cluster, proc)
		w.schedd.Hold(cluster, proc, 13, "second")
	case e == 8:
		w.requeue(cluster, proc)
	case e < 12:
		w.start(cluster, proc)
		w.tick(10)
		w.schedd.Complete(cluster, proc, code)
		if w.rand.IntN(2) == 0 {
			w.callback(cluster, proc, code)
		}
	case e == 12: // its callback comes while it runs, perhaps again
		w.callback(cluster, proc, code)
	case e == 13: // removed
		w.schedd.Edit(cluster, proc, func(j *condor.Job) {
			j.LastStatus, j.Status, j.RemoveReason = j.Status, condor.Removed, "via condor_rm (by user alice)"
		})
		w.schedd.Leave(cluster, proc)
	case e == 14:
		w.start(cluster, proc)
		w.schedd.Quietly(cluster, proc, func(j *condor.Job) { j.Status = condor.Suspended })
	case e == 15:
		w.schedd.Quietly(cluster, proc, func(j *condor.Job) {
			if j.Status == condor.Suspended {
				j.Status = condor.Running
			}
		})
	case e == 16:
		w.schedd.Edit(cluster, proc, func(j *condor.Job) { j.Unread = true })
	case e == 17:
		w.schedd.Quietly(cluster, proc, func(j *condor.Job) { j.Unread = false })
	}
}

// rows returns what a ledger says, and whether of everything.
func (w *pair) rows(one *side) (rows []string) {
	require.NoError(w.t, one.book.Read(w.t.Context(), func(tx *ledger.Tx) error {
		for cluster := 1; cluster <= w.clusters; cluster++ {
			uid := fmt.Sprint("u", cluster)
			run, err := tx.Run(uid, 1)
			if err != nil {
				return err
			}
			procs, err := tx.Procs(uid, 1, ledger.ProcFilter{})
			if err != nil {
				return err
			}
			rows = append(
				rows,
				fmt.Sprint(
					cluster,
					" confirmed ",
					run.Confirmed,
					" over ",
					!run.Ended.IsZero(),
					" first ",
					run.Started.Unix(),
					" unread ",
					one.unread[keyOf(run)],
				),
			)
			for _, p := range procs {
				code := -1
				if p.ExitCode != nil {
					code = *p.ExitCode
				}
				rows = append(
					rows,
					fmt.Sprintf(
						"%s status %d state %d code %d %s %q by %s, absent %d",
						p.JobID(),
						p.Status,
						p.JobStatus,
						code,
						p.Reason,
						p.Message,
						p.Source,
						p.Absent,
					),
				)
			}
		}
		return nil
	}))
	return rows
}

// pass has both make a cross-check, between which nothing happens.
func (w *pair) pass() {
	w.t.Helper()
	w.both(func(one *side) error { return one.Crosscheck(w.t.Context()) })
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
				Events:  6,
				Apart:   20,
				Event:   w.event,
				Tick:    w.tick,
				Pass:    w.pass,
				Restore: w.schedd.Restore,
				Refresh: func() { w.both(func(one *side) error { return one.Refresh(t.Context()) }) },
			}.Run(passes)
			require.Greater(
				t,
				w.schedd.Calls(scheddtest.Changed),
				passes/3,
				"many passes ask only for what has changed",
			)
		})
	}
}
