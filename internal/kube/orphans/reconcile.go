package orphans

import (
	"context"
	"fmt"
	"slices"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
)

// Scope is what an administrator asks about.
type Scope struct {
	Namespace, Name string // empty: all
	DryRun          bool   // nothing is written
	Remove          bool   // what is kept may be removed
}

// Reconcile lists the objects that are kept, and releases them for removal if that was requested.
func (g *Guard) Reconcile(
	ctx context.Context,
	s Scope,
) (kept []ledger.Run, differences []crosscheck.Difference, err error) {
	kept, err = g.Find(ctx, !s.DryRun)
	if err != nil {
		return nil, nil, err
	}
	kept = slices.DeleteFunc(kept, func(run ledger.Run) bool {
		return s.Namespace != "" && run.Namespace != s.Namespace || s.Name != "" && run.Name != s.Name
	})
	remove := s.Remove && !s.DryRun
	if remove {
		if err := g.Release(ctx, kept); err != nil {
			return nil, nil, err
		}
	}
	for _, run := range kept {
		d := crosscheck.Difference{
			Namespace: run.Namespace,
			Name:      run.Name,
			JobID:     fmt.Sprint(run.Cluster),
			Was:       string(run.State),
			Is:        "Orphan",
			Repaired:  remove,
			Evidence:  "its object vanished together with many others and was not deleted; jobs and output are kept until --remove-orphans",
		}
		if remove {
			d.Evidence = "its object vanished together with many others; the htcd that works removes its jobs and output"
		}
		differences = append(differences, d)
	}
	return kept, differences, nil
}
