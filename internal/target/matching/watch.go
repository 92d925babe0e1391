package matching

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
)

// Condor is the part of HTCondor that is asked.
type Condor interface {
	Requests(
		ctx context.Context,
		id schedd.Identity,
		jobIDs []string,
		idle time.Duration,
		fn func(schedd.Request),
	) error
	Slots(ctx context.Context, id schedd.Identity, fn func(schedd.Slot)) error
	Analyse(ctx context.Context, id schedd.Identity, jobID string, machines []string) (schedd.Analysis, error)
}

// Ledger has the runs.
type Ledger = ledger.Readable

const (
	betweenPasses = time.Minute
	idleFor       = time.Minute // before a job counts as waiting

	// asked about in one pass, at each schedd; those that wait for an answer longest come first
	maxRuns     = 1000
	maxMachines = 200              // that an analysis looks at
	analysisAge = 10 * time.Minute // before a kind of jobs is analysed again
	// before a Verdict is replaced that is good, too, but has other numbers: each is a write of a status
	goodNewsAge = 5 * time.Minute
	inVainAge   = 5 * time.Minute // how long a job that is started in vain may be seen running at each look
)

// Watch finds out why jobs wait. Set its fields before its first use.
type Watch struct {
	Ledger      Ledger
	Condor      Condor
	Credentials backend.Credentials
	Now         func() time.Time

	mu       sync.Mutex
	verdicts map[runKey]judged
	analyses map[likeness]analysed
}

// runKey is a run; its jobs are taken to be alike.
type runKey struct {
	uid     string
	attempt int
}

type judged struct {
	*Verdict // nil: its job has not been idle for long
	at, said time.Time
}

// likeness is what jobs have in common that match the same slots.
type likeness struct {
	endpoint     schedd.Endpoint
	size         schedd.Size
	requirements [32]byte
}

type analysed struct {
	*schedd.Analysis // nil: the tool said nothing
	at               time.Time
}

// Of returns why the jobs of a run wait; nil: it is not known, or they do not.
func (w *Watch) Of(uid string, attempt int) *Verdict {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.verdicts[runKey{uid, attempt}].Verdict
}

// Run looks until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	wait.NonSlidingUntilWithContext(ctx, w.Look, betweenPasses)
}

// waiting is a run with the first of its jobs that is idle.
type waiting struct {
	ledger.Run
	jobID string
}

// Look looks once. Schedds are asked at once, so that none waits for another.
func (w *Watch) Look(ctx context.Context) {
	runs, err := w.idle(ctx)
	if err != nil {
		return // the ledger's trouble is reported elsewhere
	}
	w.forget(runs)
	pools := &collectors{condor: w.Condor, known: map[string]func() (Slots, error){}}
	at := map[schedd.Endpoint][]backend.Group{}
	for _, g := range backend.Groups(runs) {
		at[g.Endpoint] = append(at[g.Endpoint], g)
	}
	var asking errgroup.Group
	for _, groups := range at {
		asking.Go(func() error {
			analyses := 1
			for _, g := range groups {
				w.ask(ctx, g, pools, &analyses)
			}
			return nil
		})
	}
	_ = asking.Wait() // what cannot be answered is a verdict
}

// idle lists the runs that have idle jobs and were sent some time ago.
func (w *Watch) idle(ctx context.Context) (runs []ledger.Run, err error) {
	err = w.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		runs, err = tx.RunsIdle()
		return err
	})
	return slices.DeleteFunc(runs, func(run ledger.Run) bool { return w.Now().Sub(run.Submitted) < idleFor }), err
}

// forget drops what is known of other runs, and old analyses.
func (w *Watch) forget(but []ledger.Run) {
	kept := map[runKey]judged{}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, run := range but {
		key := runKey{run.UID, run.Attempt}
		if j, known := w.verdicts[key]; known {
			kept[key] = j
		}
	}
	for key, j := range w.verdicts {
		if j.Verdict != nil && j.Reason == ReasonInVain && w.Now().Sub(j.at) < inVainAge {
			kept[key] = j
		}
	}
	w.verdicts = kept
	for like, a := range w.analyses {
		if w.Now().Sub(a.at) > 2*analysisAge {
			delete(w.analyses, like)
		}
	}
}

// ask judges the runs of a group.
func (w *Watch) ask(ctx context.Context, g backend.Group, pools *collectors, analyses *int) {
	runs := w.oldest(g.Runs)
	named, err := w.first(ctx, runs)
	if err != nil {
		return
	}
	id, err := backend.Questioner(ctx, w.Credentials, g.Target)
	if err != nil {
		return // the condition Credentials has it
	}
	id = id.At(g.Endpoint)
	requests, err := w.requests(ctx, id, named)
	var slots Slots
	if err == nil && len(requests) > 0 {
		slots, err = pools.slots(ctx, id)
	}
	verdicts := map[likeness]Verdict{}
	for _, one := range named {
		r, idle := requests[one.jobID]
		v := (*Verdict)(nil)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			v = &Verdict{
				metav1.ConditionUnknown,
				ReasonUnknown,
				fmt.Sprintf("whether there are slots for the jobs that wait is not known: %v", err),
			}
		case idle && r.InVain >= schedd.ManyInVain:
			is := inVain(r.InVain)
			v = &is
		case idle:
			like := likeness{g.Endpoint, r.Size, r.Requirements}
			is, known := verdicts[like]
			if !known {
				is = Judge(r.Size, slots, w.analysis(ctx, id, one.jobID, like, slots, analyses))
				verdicts[like] = is
			}
			v = &is
			if one.Kind == ledger.Workflows {
				v.Message = fmt.Sprintf("job %s: %s", one.jobID, v.Message)
			}
		}
		w.judge(runKey{one.UID, one.Attempt}, v)
	}
}

func (w *Watch) judge(run runKey, v *Verdict) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.Now()
	was := w.verdicts[run]
	good := func(v *Verdict) bool { return v != nil && v.Is == metav1.ConditionTrue }
	if good(v) && good(was.Verdict) && now.Sub(was.said) < goodNewsAge {
		v = was.Verdict
	} else {
		was.said = now
	}
	w.verdicts[run] = judged{v, now, was.said}
}

// oldest returns the runs whose verdicts are oldest, those without one first.
func (w *Watch) oldest(runs []ledger.Run) []ledger.Run {
	w.mu.Lock()
	defer w.mu.Unlock()
	runs = slices.Clone(runs)
	at := func(run ledger.Run) time.Time { return w.verdicts[runKey{run.UID, run.Attempt}].at }
	slices.SortStableFunc(runs, func(a, b ledger.Run) int { return at(a).Compare(at(b)) })
	return runs[:min(len(runs), maxRuns)]
}

// first names the first idle job of each run that still has one.
func (w *Watch) first(ctx context.Context, runs []ledger.Run) (named []waiting, err error) {
	err = w.Ledger.Read(ctx, func(tx *ledger.Tx) error {
		named = nil
		for _, run := range runs {
			jobID, err := tx.FirstIdle(run)
			if err != nil {
				return err
			}
			if jobID != "" {
				named = append(named, waiting{run, jobID})
			}
		}
		return nil
	})
	return named, err
}

// requests returns what those jobs ask for that have been idle for long, by their ids.
func (w *Watch) requests(ctx context.Context, id schedd.Identity, named []waiting) (map[string]schedd.Request, error) {
	if len(named) == 0 {
		return nil, nil
	}
	var ids []string
	for _, one := range named {
		ids = append(ids, one.jobID)
	}
	requests := map[string]schedd.Request{}
	err := w.Condor.Requests(
		ctx,
		id,
		ids,
		idleFor,
		func(r schedd.Request) { requests[fmt.Sprintf("%d.%d", r.Cluster, r.Proc)] = r },
	)
	return requests, err
}

// analysis returns what is known of the requirements of such jobs, and has one of them analysed if that is due and
// allowed now.
func (w *Watch) analysis(
	ctx context.Context,
	id schedd.Identity,
	jobID string,
	like likeness,
	slots Slots,
	allowed *int,
) *schedd.Analysis {
	w.mu.Lock()
	known, is := w.analyses[like]
	w.mu.Unlock()
	if *allowed == 0 || is && w.Now().Sub(known.at) < analysisAge {
		return known.Analysis
	}
	machines := slots.sample(like.size, maxMachines)
	if len(machines) == 0 {
		return known.Analysis
	}
	*allowed--
	now := analysed{at: w.Now()}
	if a, err := w.Condor.Analyse(ctx, id, jobID, machines); err == nil {
		now.Analysis = &a
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.analyses == nil {
		w.analyses = map[likeness]analysed{}
	}
	w.analyses[like] = now
	return now.Analysis
}

// collectors asks each collector once.
type collectors struct {
	condor Condor
	mu     sync.Mutex
	known  map[string]func() (Slots, error)
}

func (c *collectors) slots(ctx context.Context, id schedd.Identity) (Slots, error) {
	c.mu.Lock()
	ask, known := c.known[id.Endpoint.Collector]
	if !known {
		ask = sync.OnceValues(func() (Slots, error) { return slotsOf(ctx, c.condor, id) })
		c.known[id.Endpoint.Collector] = ask
	}
	c.mu.Unlock()
	return ask()
}

// Slots asks for the slots of the usual pool.
func (w *Watch) Slots(ctx context.Context) (Slots, error) {
	id, err := w.Credentials.Any(ctx, schedd.Endpoint{})
	if err != nil {
		return nil, err
	}
	return slotsOf(ctx, w.Condor, id)
}

func slotsOf(ctx context.Context, condor Condor, id schedd.Identity) (all Slots, err error) {
	err = condor.Slots(ctx, id, func(s schedd.Slot) { all = append(all, s) })
	return all, err
}
