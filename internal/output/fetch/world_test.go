package fetch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/workqueue"

	"htc.cern.ch/htcd/internal/admission/fairqueue"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/ledger/ledgertest"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
	"htc.cern.ch/htcd/internal/target/backend"
)

// world is a Fetcher with a real ledger and store, a schedd in memory, and a clock of its own.
type world struct {
	*Fetcher
	t        *testing.T
	schedd   *scheddtest.Schedd
	book     *ledger.Ledger
	clock    time.Time
	inTheWay error    // from the last try
	told     []string // why output was given up
	clusters int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	book := ledgertest.Open(t)
	w := &world{t: t, schedd: scheddtest.New(), book: book, clock: time.Now()}
	store := output.Store{Root: t.TempDir()}
	w.Fetcher = New(Options{
		Store:       store,
		Shares:      store.NewShares(0, func() time.Time { return w.clock }),
		Workers:     1,
		Queue:       fairqueue.New(workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Minute, time.Hour)),
		Endpoint:    func(context.Context, string) schedd.Endpoint { return schedd.Endpoint{} },
		Ledger:      book,
		Schedd:      w.schedd,
		Credentials: robot{},
		Observer:    w,
		Log:         zerolog.Nop(),
		Now:         func() time.Time { return w.clock },
	})
	t.Cleanup(w.Queue.ShutDown)
	return w
}

// robot is everybody's account. The credentials of the namespace "broken" cannot be used.
type robot struct{}

func (robot) Identity(_ context.Context, t backend.Target) (schedd.Identity, error) {
	if t.Namespace == "broken" {
		return schedd.Identity{}, &backend.CredentialError{Reason: "WrongPassword", Message: "wrong password"}
	}
	return schedd.Identity{}, nil
}

func (robot) Common(context.Context, schedd.Endpoint) (schedd.Identity, error) {
	return schedd.Identity{}, nil
}

func (robot) Any(context.Context, schedd.Endpoint) (schedd.Identity, error) {
	return schedd.Identity{}, nil
}

// completed adds an HTCJob with this many jobs, all of which HTCondor has reported as having run to their end.
func (w *world) completed(name string, jobs int) ledger.Run {
	w.t.Helper()
	return w.completedIn("default", name, jobs)
}

func (w *world) completedIn(namespace, name string, jobs int) ledger.Run {
	w.t.Helper()
	w.clusters++
	run := ledger.Run{
		UID: "uid-" + name, Attempt: 1, Namespace: namespace, Name: name, State: ledger.Submitted, Cluster: w.clusters,
		Procs: jobs, Created: w.clock, Submitted: w.clock, Ended: w.clock, Confirmed: true, OutputDir: "/out",
	}
	require.NoError(w.t, w.book.Write(w.t.Context(), func(tx *ledger.Tx) error { return tx.InsertRun(run) }))
	w.completes(run)
	return run
}

// completes has all jobs of a run run to their end.
func (w *world) completes(run ledger.Run) {
	w.t.Helper()
	for proc := range run.Procs {
		tag := condor.Tag{UID: run.UID, Attempt: run.Attempt, Namespace: run.Namespace, Name: run.Name}
		w.schedd.Put(condor.Job{Cluster: run.Cluster, Proc: proc, Tag: tag})
	}
	w.schedd.Complete(run.Cluster, -1, 0)
	require.NoError(w.t, w.book.Write(w.t.Context(), func(tx *ledger.Tx) error {
		if err := tx.InsertProcs(run, run.Procs); err != nil {
			return err
		}
		for proc := range run.Procs {
			err := tx.UpdateProc(ledger.Proc{
				UID:       run.UID,
				Attempt:   run.Attempt,
				Proc:      proc,
				Status:    ledger.StatusSucceeded,
				JobStatus: int(condor.Completed),
				Changed:   w.clock,
			})
			if err != nil {
				return err
			}
		}
		return nil
	}))
}

// fetch fetches the output of an HTCJob as far as it is available now.
func (w *world) fetch(name string) { w.fetchIn("default", name) }

func (w *world) fetchIn(namespace, name string) {
	w.Retry(namespace + "/" + name)
	for w.Queue.Len() > 0 {
		key, _ := w.Queue.Get()
		w.Fetch(w.t.Context(), key)
		w.Queue.Done(key)
	}
}

// counts returns what became of a run's output.
func (w *world) counts(run ledger.Run) (counts ledger.OutputCounts) {
	w.t.Helper()
	require.NoError(w.t, w.book.Read(w.t.Context(), func(tx *ledger.Tx) (err error) {
		counts, err = tx.Output(run.UID, run.Attempt)
		return err
	}))
	return counts
}

// kept returns the contents of a proc's standard output, "absent" if there is none.
func (w *world) kept(run ledger.Run, proc int) string {
	w.t.Helper()
	text, err := os.ReadFile(
		filepath.Join(
			w.Store.Root,
			run.Namespace,
			run.Name,
			strconv.Itoa(run.Attempt),
			strconv.Itoa(proc),
			output.Stdout,
		),
	)
	if errors.Is(err, fs.ErrNotExist) {
		return "absent"
	}
	require.NoError(w.t, err)
	return string(text)
}

func (w *world) Tried(_ string, err error) { w.inTheWay = err }

func (w *world) Fetched(ledger.Run, int, int64) {}

func (w *world) Incomplete(_ ledger.Run, lack string) { w.told = append(w.told, lack) }

func (w *world) GaveUp(_ ledger.Run, _ int, why string) { w.told = append(w.told, why) }

func (w *world) Requeued(ledger.Run) {}

func (w *world) Ended(context.Context, ledger.Run, []condor.Job) error { return nil }
