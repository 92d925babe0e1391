package poolcontrol

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/admission"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/ledger/ledgertest"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
	"htc.cern.ch/htcd/internal/target/pool"
)

// world plays everything around a controller.
type world struct {
	*Controller
	t     *testing.T
	book  *ledger.Ledger
	store cache.Store
	now   time.Time

	mu    sync.Mutex
	said  []string // the commands
	asked []string // UIDs to check soon
	away  map[string]error
	sets  []v1alpha1.HTCPoolStatus
	load  admission.Load
}

func newWorld(t *testing.T) *world {
	book := ledgertest.Open(t)
	w := &world{t: t, book: book, now: noon, away: map[string]error{}}
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{}, &v1alpha1.HTCPool{}, 0, cache.Indexers{})
	w.store = informer.GetStore()
	var err error
	w.Controller, err = New(Options{
		Common: reconciler.Common{
			Pools: noDefault{}, Credentials: accounts{}, Ledger: book, Now: func() time.Time { return w.now },
		},
		Informer: informer, Objects: apiserver{w: w}, Jobs: w, Schedds: w,
		Check: func(*v1alpha1.HTCPool) error { return nil }, Log: zerolog.Nop(),
	})
	require.NoError(t, err)
	return w
}

// has makes these the pools.
func (w *world) has(pools ...*v1alpha1.HTCPool) {
	for _, p := range pools {
		require.NoError(w.t, w.store.Update(p))
	}
}

type noDefault struct{ pool.Known }

func (noDefault) Default() *v1alpha1.HTCPool { return nil }

type apiserver struct {
	reconciler.Objects[*v1alpha1.HTCPool, v1alpha1.HTCPoolStatus]
	w *world
}

func (a apiserver) SetStatus(
	_ context.Context,
	p *v1alpha1.HTCPool,
	s v1alpha1.HTCPoolStatus,
) (*v1alpha1.HTCPool, error) {
	a.w.sets = append(a.w.sets, s)
	p = p.DeepCopy()
	p.ResourceVersion, p.Status = "2", s
	return p, a.w.away["apiserver"]
}

func (w *world) PoolLoad(context.Context, string) (admission.Load, error) { return w.load, nil }

func (w *world) CheckSoon(run ledger.Run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, run.UID)
}

func (w *world) say(verb string, id schedd.Identity, constraint string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, fmt.Sprintf("%s at %s as %s: %s", verb, id.Endpoint.Schedd, id.CCache, constraint))
	return w.away[id.Endpoint.Schedd]
}

func (w *world) Change(_ context.Context, id schedd.Identity, c schedd.Change) (o schedd.Outcome, err error) {
	if hold, is := c.(schedd.HoldIdle); is {
		return o, w.say("hold", id, string(hold.Where))
	}
	return o, w.say("release", id, string(c.(schedd.ReleaseHeld).Where))
}

func (w *world) ScheddName(context.Context, schedd.Identity) (string, error) { return "usual", nil }
func (w *world) Ping(context.Context, schedd.Identity, schedd.Permission) (string, error) {
	return "", nil
}
func (w *world) Known() map[schedd.Endpoint]backend.Reachability { return nil }

// accounts has one for each namespace; that of "broken" cannot be used.
type accounts struct{}

func (accounts) Identity(_ context.Context, t backend.Target) (schedd.Identity, error) {
	if t.Namespace == "broken" {
		return schedd.Identity{}, errors.New("no ticket")
	}
	return schedd.Identity{CCache: t.Namespace, Endpoint: t.Endpoint}, nil
}

func (accounts) Common(_ context.Context, at schedd.Endpoint) (schedd.Identity, error) {
	return schedd.Identity{CCache: "a", Endpoint: at}, nil
}

func (a accounts) Any(ctx context.Context, at schedd.Endpoint) (schedd.Identity, error) {
	return a.Common(ctx, at)
}

// runs records a run with one job in that state.
func (w *world) runs(uid, namespace, at, pool string, jobStatus condor.JobStatus, reason string) {
	w.t.Helper()
	run := ledger.Run{
		UID:       uid,
		Attempt:   1,
		Namespace: namespace,
		Name:      uid,
		State:     ledger.Submitted,
		Schedd:    at,
		Cluster:   1,
		Procs:     1,
		Pool:      pool,
		Submitted: noon,
	}
	require.NoError(w.t, w.book.Write(w.t.Context(), func(tx *ledger.Tx) error {
		if err := tx.InsertRun(run); err != nil {
			return err
		}
		if err := tx.InsertProcs(run, 1); err != nil {
			return err
		}
		p, err := tx.Proc(uid, 1, 0)
		if err != nil {
			return err
		}
		p.JobStatus, p.Reason = int(jobStatus), reason
		return tx.UpdateProc(p)
	}))
}

// pass makes one pass and returns the commands.
func (w *world) pass(news bool) []string {
	w.said, w.asked = nil, nil
	w.follow(w.t.Context(), news)
	w.commands.wait()
	slices.Sort(w.said)
	slices.Sort(w.asked)
	return w.said
}

func TestWhatThePoolsAskForIsDone(t *testing.T) {
	w := newWorld(t)
	w.runs("idle", "a", "s1", "grid", condor.Idle, "")
	w.runs("unseen", "a", "s1", "grid", 0, "")
	w.runs("running", "a", "s1", "grid", condor.Running, "")
	w.runs("byhand", "a", "s1", "grid", condor.Held, "Held")
	w.runs("hers", "b", "s1", "grid", condor.Idle, "")
	w.runs("far", "a", "s2", "grid", condor.Idle, "")
	w.runs("broken", "broken", "s1", "grid", condor.Idle, "")
	w.runs("nopool", "a", "s1", "", condor.Idle, "")
	w.runs("online", "a", "s1", "on", condor.Idle, "")
	w.has(htcpool("grid"), htcpool("on"))
	require.Empty(t, w.pass(true))

	w.has(htcpool("grid", state(v1alpha1.PoolSuspended)))
	require.Equal(t, []string{
		`hold at s1 as a: HTCPool =?= "grid" && member(HTCWorkflowUID ?: HTCJobUID, {"hers"})`, // sent before the namespace had an account of its own
		`hold at s1 as a: HTCPool =?= "grid" && member(HTCWorkflowUID ?: HTCJobUID, {"idle","unseen"})`,
		`hold at s1 as b: HTCPool =?= "grid" && member(HTCWorkflowUID ?: HTCJobUID, {"hers"})`,
		`hold at s2 as a: HTCPool =?= "grid" && member(HTCWorkflowUID ?: HTCJobUID, {"far"})`,
	}, split(w.pass(true)))
	require.Equal(t, []string{"far", "hers", "hers", "idle", "unseen"}, w.asked)

	require.Empty(t, w.pass(false), "a pause")
	require.NotEmpty(t, w.pass(true), "news end it")
	w.now = w.now.Add(pause)
	require.NotEmpty(t, w.pass(false), "it is over")

	w.away["s2"] = errors.New("no answer")
	w.now = w.now.Add(pause)
	require.Len(t, w.pass(false), 3, "what fails at one schedd delays no other")
	w.now = w.now.Add(pause)
	require.NotContains(t, strings.Join(w.pass(false), "\n"), "s2")
	w.now = w.now.Add(longerPause)
	require.Contains(t, strings.Join(w.pass(false), "\n"), "s2")
}

// split sorts commands that name the HTCJobs of one account together, in the order of the ledger.
func split(said []string) []string {
	var all []string
	for _, s := range said {
		if before, ok := strings.CutSuffix(s, `{"idle","unseen","hers"})`); ok {
			all = append(all, before+`{"hers"})`, before+`{"idle","unseen"})`)
			continue
		}
		all = append(all, s)
	}
	return all
}

func TestOnlyWhatAPoolHeldIsReleased(t *testing.T) {
	w := newWorld(t)
	w.runs("ours", "a", "s1", "grid", condor.Held, "PoolSuspended")
	w.runs("byhand", "a", "s1", "grid", condor.Held, "Held")
	w.runs("orphan", "a", "s1", "deleted", condor.Held, "PoolSuspended")
	w.runs("still", "a", "s1", "other", condor.Held, "PoolSuspended")
	w.has(htcpool("grid", state(v1alpha1.PoolDraining)), htcpool("other", state(v1alpha1.PoolSuspended)))
	require.Equal(t, []string{
		`release at s1 as a: HTCPool =?= "deleted" && member(HTCWorkflowUID ?: HTCJobUID, {"orphan"})`,
		`release at s1 as a: HTCPool =?= "grid" && member(HTCWorkflowUID ?: HTCJobUID, {"ours"})`,
	}, w.pass(false))
}

func TestAStatusIsWrittenOnlyWhenItChanges(t *testing.T) {
	w := newWorld(t)
	look := func() error { return w.Sync(t.Context(), "grid") }
	w.has(htcpool("grid"))
	require.NoError(t, look())
	require.NoError(t, look())
	require.Len(t, w.sets, 1, "the informer has not seen it yet")
	seen := htcpool("grid")
	seen.ResourceVersion, seen.Status = "3", w.sets[0]
	w.has(seen)
	require.NoError(t, look())
	require.Len(t, w.sets, 1)

	w.load.Open = 7
	w.away["apiserver"] = errors.New("away")
	require.ErrorContains(t, look(), "away")
	w.away = nil
	require.NoError(t, look())
	require.Len(t, w.sets, 3, "a write that failed is repeated")
	require.EqualValues(t, 7, w.sets[2].Open)
	require.Equal(t, "grid", w.Loads()[0].Pool)
	require.Equal(t, 7, w.Loads()[0].Open)
}
