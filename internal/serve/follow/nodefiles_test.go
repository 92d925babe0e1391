package follow

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

func TestFilesOfNodesAreNumberedAcrossTheirDAGs(t *testing.T) {
	w := newWorkflow(t)
	all := func(q *aggregate.Query) { q.AllProcs, q.AnySequence = true, true }
	_, err := w.NodeArchive(t.Context(), ofNodes("", 0, 0, all))
	require.ErrorContains(t, err, "there is no output yet")
	w.sentFirst()
	w.sentDAG(2, []ledger.Step{{Number: 1, Name: "plot"}}, ledger.Place{Step: 1, Sequence: ledger.AllSequences})
	dir, err := w.o.Nodes.AttemptDir(output.Attempt{Namespace: "ns", Name: "scan", Number: 1})
	require.NoError(t, err)
	for _, file := range []string{"fit/job_0/1/x", "fit/job_1/0/x", "plot/all/x"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte("12345"), 0o600))
	}
	archived := func(jobs int, change ...func(*aggregate.Query)) map[string]string {
		answer, err := w.NodeArchive(
			t.Context(),
			ofNodes("", 0, 0, append([]func(*aggregate.Query){all}, change...)...),
		)
		require.NoError(t, err)
		require.Equal(t, []int{1, jobs}, []int{answer.Attempt, answer.Jobs})
		var b bytes.Buffer
		require.NoError(t, answer.Write(t.Context(), &b))
		names := map[string]string{}
		for archive := tar.NewReader(&b); ; {
			header, err := archive.Next()
			if errors.Is(err, io.EOF) {
				return names
			}
			require.NoError(t, err)
			names[header.Name] = header.PAXRecords["comment"]
		}
	}
	both := map[string]string{
		"1/":       "fit/job_0/1",
		"1/x":      "",
		"2/":       "fit/job_1/0",
		"2/x":      "",
		"100000/":  "plot/all",
		"100000/x": "",
	}
	require.Equal(t, both, archived(5))
	delete(both, "1/")
	delete(both, "1/x")
	require.Equal(t, both, archived(5, func(q *aggregate.Query) { q.Proc = 2 }), "from one on")
	require.Equal(
		t,
		map[string]string{"100000/": "plot/all", "100000/x": ""},
		archived(1, func(q *aggregate.Query) { q.Node.Step = "plot" }),
	)
	require.Equal(
		t,
		map[string]string{"2/": "fit/job_1/0", "2/x": ""},
		archived(2, func(q *aggregate.Query) { q.AnySequence, q.Node.Sequence = false, 1 }),
	)
	w.changed(1, 3, func(n *ledger.Node) { n.Status = ledger.StatusFutile })
	archived(4)

	answer, err := w.NodeFiles(t.Context(), ofNodes("plot", 0, 0, all))
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, answer.Write(t.Context(), &b))
	var f aggregate.File
	require.NoError(t, json.Unmarshal(b.Bytes(), &f))
	require.Equal(t, aggregate.File{Job: 100_000, Node: "plot/all", Path: "x", Size: 5}, f)
	_, err = w.NodeFiles(t.Context(), ofNodes("none", 0, 0, all))
	require.ErrorContains(t, err, `has no step "none"`)
}

func TestNodesThatAreRepeatedShareNoNumbersWithOthers(t *testing.T) {
	w := newWorkflow(t)
	all := func(q *aggregate.Query) { q.AllProcs, q.AnySequence = true, true }
	w.sentFirst()
	w.sentDAG(2, []ledger.Step{{Number: 0, Name: "fit"}}, ledger.Place{Item: 0}, ledger.Place{Item: 1})
	w.write(func(tx *ledger.Tx) error {
		return tx.Repeat(ledger.Run{UID: "f", Attempt: 2}, 1, []ledger.Occasion{{Sequence: 0}})
	})
	dir, err := w.o.Nodes.AttemptDir(output.Attempt{Namespace: "ns", Name: "scan", Number: 1})
	require.NoError(t, err)
	for _, node := range []string{"fit/job_0/0", "fit/job_0/1", "fit/job_1/0", "fit/job_1/1"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, node), 0o700))
	}
	for from, want := range map[int][]string{
		0: {"2/ fit/job_1/0", "3/ fit/job_1/1", "100000/ fit/job_0/0", "100001/ fit/job_0/1"},
		4: {"100000/ fit/job_0/0", "100001/ fit/job_0/1"},
	} {
		answer, err := w.NodeArchive(t.Context(), ofNodes("", 0, 0, all, func(q *aggregate.Query) { q.Proc = from }))
		require.NoError(t, err)
		var b bytes.Buffer
		require.NoError(t, answer.Write(t.Context(), &b))
		var names []string
		for archive := tar.NewReader(&b); ; {
			header, err := archive.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			names = append(names, header.Name+" "+header.PAXRecords["comment"])
		}
		require.Equal(t, want, names)
	}
}

func TestAnArchiveHasTheVariablesOfNodesWhoseStepsSayWhereTheirFilesLand(t *testing.T) {
	w := newWorkflow(t)
	flow, _, err := w.o.Workflows(t.Context(), "ns", "scan")
	require.NoError(t, err)
	flow.Spec.Steps[0].Job.Landing = &v1alpha1.Landing{Directory: "{{item.A}}"}
	w.sentFirst()
	w.write(func(tx *ledger.Tx) error {
		return errors.Join(
			tx.SetItems("f", 1, ledger.PackItems([]string{"A=1\nB=2\n", "A=3\n"})),
			tx.SetTables("f", 1, map[string]ledger.Items{"fit": ledger.PackItems([]string{"C=4\n", "B=5\n"})}),
		)
	})
	w.changed(1, 1, func(n *ledger.Node) { n.Cluster = 70 })
	w.sentDAG(2, []ledger.Step{{Number: 1, Name: "plot"}}, ledger.Place{Step: 1, Sequence: ledger.AllSequences})
	dir, err := w.o.Nodes.AttemptDir(output.Attempt{Namespace: "ns", Name: "scan", Number: 1})
	require.NoError(t, err)
	for _, node := range []string{"fit/job_0/1", "fit/job_1/0", "plot/all"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, node), 0o700))
	}
	answer, err := w.NodeArchive(
		t.Context(),
		ofNodes("", 0, 0, func(q *aggregate.Query) { q.AllProcs, q.AnySequence = true, true }),
	)
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, answer.Write(t.Context(), &b))
	archive := tar.NewReader(&b)
	for _, want := range []map[string]string{
		{"comment": "fit/job_0/1", "HTCD.variables": "A=1\nB=5\njobid=job_0\n", "HTCD.number": "1", "HTCD.cluster": "70"},
		{"comment": "fit/job_1/0", "HTCD.variables": "A=3\nC=4\njobid=job_1\n", "HTCD.number": "0", "HTCD.cluster": "0"},
		{"comment": "plot/all"},
	} {
		header, err := archive.Next()
		require.NoError(t, err)
		require.Equal(t, want, header.PAXRecords)
	}
}
