package orphans

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/ledger"
)

// Up to Few are removed however few objects there are; so is up to one in share, however many there are.
const (
	Few   = 5
	share = 100
)

// asOneLook is how long objects found to be few are not checked again.
const asOneLook = 3 * time.Second

// Kept is the error that says that nothing is removed even though the object is gone.
type Kept struct{}

func (*Kept) Error() string {
	return "an earlier object of this name is in the ledger and vanished without having been deleted, like many others, as when an older state of etcd " +
		"is put back: its jobs and its output are kept, and nothing is sent under its name, until an administrator puts the newer state back, " +
		"or has them removed (htcd reconcile --once --remove-orphans)"
}

// IsKept reports whether an error is a *Kept.
func IsKept(err error) bool {
	_, is := errors.AsType[*Kept](err)
	return is
}

// Ledger records runs, and which of them are kept.
type Ledger = ledger.Store

// Guard protects what must not be removed. Set its fields before its first use.
type Guard struct {
	Ledger    Ledger
	Kind      ledger.Kind // of its objects: HTCJobs, or HTCWorkflows
	Namespace string      // the one whose objects are checked; empty: all
	// There lists the UIDs of those that the apiserver has.
	There func(context.Context) (map[string]bool, error)
	Now   func() time.Time
	// Many receives the number of objects kept, and one of them, when some of them were not kept before.
	Many func(n int, such ledger.Run)
	// Few receives a run of an object that vanished without having been deleted, and whose jobs and output are removed.
	Few func(gone ledger.Run)
	// Deletions holds those that were observed.
	Deletions Deletions

	looking sync.Mutex
	looked  time.Time
	few     map[string]bool // those found to be few then
}

// MayRemove returns nil if the ledger's records of an object that is gone may be removed, a *Kept if not.
func (g *Guard) MayRemove(ctx context.Context, key, uid string) error {
	if g.Deletions.seen(key, uid) {
		return nil
	}
	orphans, err := g.noted(ctx)
	if err != nil {
		return err
	}
	remove, known := orphans[uid]
	if !known {
		return g.judge(ctx, uid)
	}
	if !remove {
		return &Kept{}
	}
	return nil
}

// judge checks all of them at once, not once for each.
func (g *Guard) judge(ctx context.Context, uid string) error {
	g.looking.Lock()
	defer g.looking.Unlock()
	if g.few[uid] && g.Now().Sub(g.looked) < asOneLook {
		return nil
	}
	kept, few, err := g.look(ctx, true)
	if err != nil {
		return err
	}
	g.looked, g.few = g.Now(), few
	if slices.ContainsFunc(kept, func(run ledger.Run) bool { return run.UID == uid }) {
		return &Kept{}
	}
	return nil
}

// Watch checks again while some are kept: their objects may have been restored.
func (g *Guard) Watch(ctx context.Context) error {
	orphans, err := g.noted(ctx)
	if err != nil || len(orphans) == 0 {
		return err
	}
	_, _, err = g.look(ctx, true)
	return err
}

// Find returns a run of each object that is kept, and records them if write is set.
func (g *Guard) Find(ctx context.Context, write bool) (kept []ledger.Run, err error) {
	kept, _, err = g.look(ctx, write)
	return kept, err
}

// Release lets what was sent by these runs, and for the same objects, be removed.
func (g *Guard) Release(ctx context.Context, runs []ledger.Run) error {
	return g.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		for _, run := range runs {
			if err := tx.RemoveOrphan(run.UID); err != nil {
				return err
			}
		}
		return nil
	})
}

// look compares the ledger with the apiserver and returns a run of each object that is kept, and the others that are
// gone. If write is set it records what is kept, so that later objects do not make that a small share.
func (g *Guard) look(ctx context.Context, write bool) (kept []ledger.Run, few map[string]bool, err error) {
	// The ledger is read before, as runs sent later have an object, and after, as what was deleted meanwhile is in
	// neither.
	began, _, err := g.read(ctx)
	if err != nil {
		return nil, nil, err
	}
	there, err := g.There(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("look which objects there are: %w", err)
	}
	runs, before, err := g.read(ctx)
	if err != nil {
		return nil, nil, err
	}
	known := map[string]bool{}
	for _, run := range began {
		known[run.UID] = true
	}
	runs = slices.DeleteFunc(runs, func(run ledger.Run) bool { return !known[run.UID] })
	kept, few = sort(runs, there, before, g.Deletions.seen)
	if write {
		if err := g.write(ctx, kept, there, before); err != nil {
			return nil, nil, fmt.Errorf("record orphans: %w", err)
		}
	}
	return kept, few, nil
}

func (g *Guard) read(ctx context.Context) (runs []ledger.Run, orphans map[string]bool, err error) {
	err = g.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
		if runs, err = tx.Runs(ledger.RunFilter{Kind: g.Kind, Namespace: g.Namespace}); err == nil {
			orphans, err = tx.Orphans()
		}
		return err
	})
	return runs, orphans, err
}

func (g *Guard) noted(ctx context.Context) (orphans map[string]bool, err error) {
	return ledger.Get(ctx, g.Ledger, (*ledger.Tx).Orphans)
}

// sort separates the objects that are gone and must be kept, by their newest run, from those that are few.
func sort(
	runs []ledger.Run,
	there, before map[string]bool,
	deleted func(key, uid string) bool,
) (kept []ledger.Run, few map[string]bool) {
	newest := map[string]int{}
	for i, run := range runs {
		if run.State != ledger.Refused {
			newest[run.UID] = i
		}
	}
	var gone []ledger.Run
	for i, run := range runs {
		remove, known := before[run.UID]
		switch {
		case newest[run.UID] != i || run.State == ledger.Refused || there[run.UID] || remove || deleted(run.Namespace+"/"+run.Name, run.UID):
		case known:
			kept = append(kept, run)
		default:
			gone = append(gone, run)
		}
	}
	if n := len(gone) + len(kept); n > Few && n > len(newest)/share {
		return append(kept, gone...), nil
	}
	few = map[string]bool{}
	for _, run := range gone {
		few[run.UID] = true
	}
	return kept, few
}

// write records those that are kept, and that others are back.
func (g *Guard) write(ctx context.Context, kept []ledger.Run, there, before map[string]bool) error {
	var fresh, back []string
	for _, run := range kept {
		if _, known := before[run.UID]; !known {
			fresh = append(fresh, run.UID)
		}
	}
	for uid := range before {
		if there[uid] {
			back = append(back, uid)
		}
	}
	if len(fresh)+len(back) == 0 {
		return nil
	}
	if len(fresh) > 0 {
		g.Many(len(kept), kept[0])
	}
	return g.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		for _, uid := range fresh {
			if _, err := tx.LatestRun(uid); errors.Is(err, ledger.ErrNotFound) {
				continue
			} else if err != nil {
				return err
			}
			if err := tx.KeepOrphan(uid); err != nil {
				return err
			}
		}
		for _, uid := range back {
			if err := tx.ForgetOrphan(uid); err != nil {
				return err
			}
		}
		return nil
	})
}
