package nodes

import (
	"context"
	"time"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
)

// doubt sets that of each DAG that goes on and has missing nodes: see crosscheck/vanishing.go. Once a DAG has ended,
// its nodes are where it was.
func (c *Checker) doubt(ctx context.Context, all comparisons, l *look, at time.Time) error {
	missing, runs := 0, []ledger.Run(nil)
	for _, k := range all {
		if n := k.gone(); n > 0 {
			missing += n
			runs = append(runs, k.run)
		}
	}
	if missing == 0 {
		return nil
	}
	sizes, err := c.sizes(ctx, runs)
	if err != nil {
		return err
	}
	open := 0
	for _, run := range runs {
		open += sizes[keyOf(run)].shown
	}
	daemon := l.Daemon(c.Daemon(l.target))
	for _, run := range runs {
		k := all[keyOf(run)]
		if k.doubtful = crosscheck.DoubtOf(run, daemon, open, missing, at); k.doubtful != "" {
			l.missing = crosscheck.Missing{Jobs: l.missing.Jobs + k.gone(), Doubt: k.doubtful}
		}
	}
	if l.missing.Jobs > 0 {
		c.Observer.Missing(l.target, l.missing)
	}
	return nil
}

// gone returns how many open nodes of a DAG that goes on neither queue nor history showed.
func (k *comparison) gone() int {
	if k.ended() || k.run.Stop != "" {
		return 0
	}
	n := len(k.unchanged)
	for _, p := range k.rows {
		if p.Status == ledger.StatusOpen {
			n++
		}
	}
	return n
}
