package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
)

// arrival is what has arrived of a batch.
type arrival struct {
	dir   string // of the fetch; empty: the output is already in place
	procs []int
	lacks []string // files that HTCondor did not keep; there is only one proc then
}

// take keeps what a fetch has put into its directory.
func (f *Fetcher) take(ctx context.Context, b batch, a arrival) error {
	if len(a.procs) == 0 {
		return nil
	}
	if err := f.noteSent(ctx, b, a); err != nil {
		return err
	}
	for _, proc := range a.procs {
		if err := errors.Join(output.RestoreNames(a.dir, proc), output.Unpack(a.dir, proc)); err != nil {
			return volumeError(err)
		}
		// The wrapper removes them, but it may have been killed.
		if err := output.Discard(a.dir, proc, strings.Fields(b.run.SecretInputs)...); err != nil {
			return volumeError(err)
		}
	}
	if err := output.Sync(a.dir); err != nil {
		return err
	}
	return f.commit(ctx, b, a)
}

// commit moves what has arrived into place and records it, in one transaction, then lets the jobs leave the queue.
func (f *Fetcher) commit(ctx context.Context, b batch, a arrival) error {
	from, bytes := a.dir, int64(0)
	if a.dir != "" {
		bytes = output.Size(a.dir)
	} else {
		var err error
		if from, err = f.Store.AttemptDir(b.attempt()); err != nil {
			return err
		}
	}
	ends := stderrEnds(b, from)
	as, lack := ledger.IsFetched, ""
	if len(a.lacks) > 0 {
		proc := a.procs[0]
		as, lack = ledger.Incomplete, lackMessage(
			b.procs[slices.IndexFunc(b.procs, func(p ledger.Proc) bool { return p.Proc == proc })].JobID(),
			a.lacks,
		)
		ends[proc] = strings.TrimPrefix(ends[proc]+"\n("+lack+")", "\n")
	}
	wanted := false
	err := f.Ledger.Write(ctx, func(tx *ledger.Tx) (err error) {
		if wanted, err = stillWanted(tx, b.run); err != nil || !wanted {
			return err
		}
		if a.procs, err = stillEnded(tx, b.run, a.procs); err != nil {
			return err
		}
		if a.dir != "" {
			if err := f.Store.Keep(a.dir, b.attempt(), a.procs...); err != nil {
				return volumeError(err)
			}
		}
		return mark(tx, b.run, a.procs, as, func(proc int) string { return ends[proc] })
	})
	if err != nil {
		return fmt.Errorf("keep output: %w", err)
	}
	if !wanted || len(a.procs) == 0 {
		return nil
	}
	if lack != "" {
		f.Log.Warn().Str("job", keyOf(b.run)).Msg(lack)
		f.Observer.Incomplete(b.run, lack)
	}
	f.Log.Debug().
		Str("job", keyOf(b.run)).
		Int("cluster", b.run.Cluster).
		Int("procs", len(a.procs)).
		Msg("output fetched")
	f.Observer.Fetched(b.run, len(a.procs), bytes)
	f.pauses.done(b.run, a.procs)
	return f.release(ctx, b.run, a.procs)
}

// stillWanted reports whether a run belongs to the HTCJob that now has the name. A later one of the same name puts its
// first attempt where the older one had its own.
func stillWanted(tx *ledger.Tx, run ledger.Run) (bool, error) {
	runs, err := tx.Runs(ledger.RunFilter{Namespace: run.Namespace, Name: run.Name})
	if err != nil {
		return false, err
	}
	there := slices.ContainsFunc(runs, func(r ledger.Run) bool { return r.UID == run.UID && r.Attempt == run.Attempt })
	return there && runs[len(runs)-1].UID == run.UID, nil
}

// stillEnded returns those of some procs that have not been started again meanwhile.
func stillEnded(tx *ledger.Tx, run ledger.Run, procs []int) (ended []int, err error) {
	for _, proc := range procs {
		p, err := tx.Proc(run.UID, run.Attempt, proc)
		if err != nil {
			return nil, err
		}
		if p.Status != ledger.StatusOpen {
			ended = append(ended, proc)
		}
	}
	return ended, nil
}

// mark records what became of the output of some procs.
func mark(tx *ledger.Tx, run ledger.Run, procs []int, as ledger.Fetched, end func(proc int) string) error {
	for _, proc := range procs {
		p, err := tx.Proc(run.UID, run.Attempt, proc)
		if err != nil {
			return err
		}
		p.Fetched = as
		// HTCondor may have brought nothing of what a job that has failed told itself.
		if text := end(proc); text != "" || p.Status != ledger.StatusFailed {
			p.Stderr = text
		}
		if err := tx.UpdateProc(p); err != nil {
			return err
		}
		if p.Status != ledger.StatusSucceeded {
			continue // nothing was written elsewhere
		}
		if err := tx.ExpectWritten(run.UID, run.Attempt, proc, notHere[as]); err != nil {
			return err
		}
	}
	return nil
}

// notHere says why nothing of a proc's output is pushed.
var notHere = map[ledger.Fetched]string{
	ledger.GivenUp:    "the output of a job could not be fetched",
	ledger.Incomplete: "HTCondor did not keep all files of a job",
}

// maxLacks is how many missing files a message names.
const maxLacks = 5

// lackMessage names the files of one job that HTCondor did not keep.
func lackMessage(job string, lacks []string) string {
	var names []string
	for _, name := range lacks[:min(len(lacks), maxLacks)] {
		names = append(names, fmt.Sprintf("%.100q", name))
	}
	if more := len(lacks) - maxLacks; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("of the output of job %s HTCondor did not keep %s", job, strings.Join(names, ", "))
}

const (
	// The end of a failed job's standard error that its status shows.
	stderrLines = 20
	stderrBytes = 2048
)

// stderrEnds reads the end of the standard error of each failed job in a batch, below dir.
func stderrEnds(b batch, dir string) map[int]string {
	ends := map[int]string{}
	for _, p := range b.procs {
		if p.Status == ledger.StatusFailed {
			ends[p.Proc] = stderrEnd(filepath.Join(dir, strconv.Itoa(p.Proc)))
		}
	}
	return ends
}

// StderrEnd is what a status shows of a standard error, or of its end.
func StderrEnd(text string) string { return output.End(text, stderrLines, stderrBytes) }

// stderrEnd reads the end of a standard error. If it cannot be read, none is shown.
func stderrEnd(dir string) string {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return ""
	}
	defer root.Close()
	f, err := output.Regular(root, output.Stderr)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := output.Tail(f, stderrLines, stderrBytes)
	if err != nil {
		return ""
	}
	return text
}
