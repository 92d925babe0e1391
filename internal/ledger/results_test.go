package ledger

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func resultsOf(t *testing.T, l *Ledger, uid string) map[string][]float64 {
	all := map[string][]float64{}
	mustRead(t, l, func(tx *Tx) error {
		metrics, err := tx.Metrics(uid, 1)
		for _, m := range metrics {
			values, wrong := tx.Results(uid, 1, m.Number)
			all[m.Step.Name+"."+m.Name] = values
			err = errors.Join(err, wrong)
		}
		return err
	})
	return all
}

func TestResultsOfNodes(t *testing.T) {
	l, _ := openTemp(t)
	r := insertDAG(t, l, "u1", 2)
	insertDAG(t, l, "u2", 1)
	keep := func(node int, replace bool, all ...Result) (left []string) {
		mustWrite(t, l, func(tx *Tx) error {
			n, err := tx.Node("u1", 1, node)
			if err != nil {
				return err
			}
			left, err = tx.SetResults(n, all, replace)
			return err
		})
		return left
	}
	require.Empty(t, keep(0, true, Result{"chi2", 2}, Result{"n", 1}))
	require.Empty(t, keep(0, true, Result{"chi2", 3}), "a later try")
	require.Empty(t, keep(0, false, Result{"chi2", 4}, Result{"m", 5}), "its callback has come")
	require.Empty(t, keep(3, true, Result{"chi2", 7}))
	require.Empty(t, keep(1, true, Result{"chi2", 9}), "of another step")
	require.Equal(
		t,
		map[string][]float64{"generate.chi2": {3, 7}, "generate.n": {1}, "generate.m": {5}, "simulate.chi2": {9}},
		resultsOf(t, l, "u1"),
	)
	require.Empty(t, resultsOf(t, l, "u2"))

	for i := range MaxMetrics - 4 {
		require.Empty(t, keep(0, true, Result{fmt.Sprint("x", i), 1}))
	}
	require.Equal(t, []string{"one-more"}, keep(0, true, Result{"one-more", 1}, Result{"chi2", 8}))
	require.Equal(t, []float64{8, 7}, resultsOf(t, l, "u1")["generate.chi2"], "known ones are still taken")

	is := RuleState{
		Rule:          1,
		Action:        "Grow",
		Holds:         true,
		Acts:          2,
		Acted:         r.Created,
		DAG:           1,
		MaxConcurrent: 5,
		Message:       "grown",
	}
	mustWrite(t, l, func(tx *Tx) error { return tx.SetRuleState("u1", 1, is) })
	before := is
	before.Acts = 1
	mustWrite(t, l, func(tx *Tx) error { return errors.Join(tx.TellRule("u1", 1, is), tx.ApplyRule("u1", 1, before)) })
	is.Told = true
	var rules []RuleState
	mustRead(t, l, func(tx *Tx) (err error) { rules, err = tx.RuleStates("u1", 1); return err })
	require.Equal(t, []RuleState{is}, rules, "it has acted again since it was applied")
	require.ErrorIs(
		t,
		l.Write(t.Context(), func(tx *Tx) error { return tx.SetRuleState("nobody", 1, is) }),
		ErrNotFound,
	)

	mustWrite(t, l, func(tx *Tx) error { return tx.DeleteRuns("u1") })
	for _, table := range []string{"metrics", "results", "rules"} {
		var n int
		mustRead(t, l, func(tx *Tx) error { return tx.queryRow(`SELECT count(*) FROM ` + table).Scan(&n) })
		require.Zero(t, n, table)
	}
}

// BenchmarkResults is what a DAG of 100,000 nodes with the most results costs.
func BenchmarkResults(b *testing.B) {
	l, _ := openTemp(b)
	r, steps, _ := testDAG("u1", 1)
	nodes := make([]Place, 100_000)
	insert(b, l, r)
	mustWrite(b, l, func(tx *Tx) error { return tx.InsertNodes(r, steps, nodes) })
	began := time.Now()
	for from := 0; from < len(nodes); from += 100 {
		mustWrite(b, l, func(tx *Tx) error {
			for i := from; i < from+100; i++ {
				n := Node{Proc: Proc{UID: "u1", Attempt: 1}, Number: i}
				var all []Result
				for k := range 16 {
					all = append(all, Result{fmt.Sprint("x", k), float64(i*k) / 7})
				}
				if _, err := tx.SetResults(n, all, true); err != nil {
					return err
				}
			}
			return nil
		})
	}
	b.ReportMetric(float64(time.Since(began).Microseconds())/100_000, "µs/store")
	began = time.Now()
	mustRead(b, l, func(tx *Tx) error { _, err := tx.Results("u1", 1, 3); return err })
	b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms/metric")
	var pages, size int
	mustRead(b, l, func(tx *Tx) error {
		return errors.Join(tx.queryRow(`PRAGMA page_count`).Scan(&pages), tx.queryRow(`PRAGMA page_size`).Scan(&size))
	})
	b.ReportMetric(float64(pages*size>>20), "MB")
	began = time.Now()
	for n := 1; n > 0; {
		mustWrite(b, l, func(tx *Tx) (err error) { n, err = tx.DropResults("u1", 10_000); return err })
	}
	mustWrite(b, l, func(tx *Tx) error { return tx.DeleteRuns("u1") })
	b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms/delete")
}
