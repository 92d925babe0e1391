package ledger

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkCallback is a callback as the receiver records it: find the job and its run, write its end, durably. With 64
// writers a commit carries many.
func BenchmarkCallback(b *testing.B) {
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			l, _ := openTemp(b)
			r := testRun("u1")
			r.Procs = 100_000
			insert(b, l, r)
			var next atomic.Int64
			b.ResetTimer()
			parallel(b, writers, func() error {
				jobID := fmt.Sprintf("100.%d", int(next.Add(1))%r.Procs)
				return l.Write(context.Background(), func(tx *Tx) error {
					p, err := tx.ProcByJobID("physics", "zero", jobID, nil)
					if err != nil {
						return err
					}
					if _, err := tx.Run(p.UID, p.Attempt); err != nil {
						return err
					}
					code := 0
					p.Status, p.ExitCode, p.Source, p.Changed = StatusSucceeded, &code, "callback", noon
					return tx.UpdateProc(p)
				})
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "callbacks/s")
		})
	}
}

// parallel calls fn b.N times from n goroutines.
func parallel(b *testing.B, goroutines int, fn func() error) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(b.N))
	errs := make(chan error, goroutines)
	for range goroutines {
		go func() {
			for left.Add(-1) >= 0 {
				if err := fn(); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range goroutines {
		require.NoError(b, <-errs)
	}
}

// BenchmarkFloor is the time of the disk and SQLite for one durable row, by hand and one by one: the price that sharing
// a commit divides.
func BenchmarkFloor(b *testing.B) {
	l, _ := openTemp(b)
	insert(b, l, testRun("u1"))
	for b.Loop() {
		require.NoError(b, l.Write(context.Background(), func(tx *Tx) error {
			_, err := tx.exec(`UPDATE runs SET checked = checked + 1 WHERE id = 1`)
			return err
		}))
	}
}

// BenchmarkInsertProcs is one run of 100,000 procs, as one durable write.
func BenchmarkInsertProcs(b *testing.B) {
	l, _ := openTemp(b)
	n := 0
	for b.Loop() {
		r := testRun(fmt.Sprintf("u%d", n))
		r.Procs = 100_000
		insert(b, l, r)
		n++
	}
}

// BenchmarkMillion measures frequent questions while a million procs are known: 10,000 runs of 100.
func BenchmarkMillion(b *testing.B) {
	l, path := openTemp(b)
	const runs, procs = 10_000, 100
	mustWrite(b, l, func(tx *Tx) error {
		for i := range runs {
			r := testRun(fmt.Sprintf("0f8fad5b-d9cb-469f-a165-%012d", i))
			r.Name, r.Cluster, r.Procs = fmt.Sprintf("analysis-%d", i), i+1, procs
			if err := tx.InsertRun(r); err != nil {
				return err
			}
			if err := tx.InsertProcs(r, procs); err != nil {
				return err
			}
		}
		return nil
	})
	info, err := os.Stat(path)
	require.NoError(b, err)
	uid := fmt.Sprintf("0f8fad5b-d9cb-469f-a165-%012d", runs/2)
	for name, fn := range map[string]func(*Tx) error{
		"Counts":      func(tx *Tx) error { _, err := tx.Counts(uid, 1); return err },
		"LatestRun":   func(tx *Tx) error { _, err := tx.LatestRun(uid); return err },
		"ProcByJobID": func(tx *Tx) error { _, err := tx.ProcByJobID("physics", "analysis-77", "78.50", nil); return err },
		"OpenProcs":   func(tx *Tx) error { _, err := tx.Procs(uid, 1, ProcFilter{Status: StatusOpen}); return err },
		"AllRuns":     func(tx *Tx) error { _, err := tx.Runs(RunFilter{Unconfirmed: true}); return err },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				mustRead(b, l, fn)
			}
			b.ReportMetric(float64(info.Size())/(runs*procs), "file-bytes/proc")
		})
	}
	b.Run("QuickCheck", func(b *testing.B) {
		for b.Loop() {
			mustRead(b, l, func(tx *Tx) error {
				var answer string
				return tx.queryRow(`PRAGMA quick_check(1)`).Scan(&answer)
			})
		}
	})
	b.Run("Open", func(b *testing.B) {
		for b.Loop() {
			again, err := Open(context.Background(), path)
			require.NoError(b, err)
			require.NoError(b, again.Close())
		}
	})
	b.Run("DeleteRuns", func(b *testing.B) {
		i := 0
		for b.Loop() {
			mustWrite(
				b,
				l,
				func(tx *Tx) error { return tx.DeleteRuns(fmt.Sprintf("0f8fad5b-d9cb-469f-a165-%012d", i)) },
			)
			i++
		}
	})
}
