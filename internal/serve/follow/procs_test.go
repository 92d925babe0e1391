package follow

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// linesOf reads a list.
func linesOf[T any](t *testing.T, answer *aggregate.Answer, err error) (all []T) {
	require.NoError(t, err)
	defer answer.Close()
	var text strings.Builder
	require.NoError(t, answer.Write(t.Context(), &text))
	for lines := json.NewDecoder(strings.NewReader(text.String())); ; {
		var one T
		err := lines.Decode(&one)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, one)
	}
}

// many records an attempt of so many jobs, of which the fourth has failed, the fifth runs, the sixth is done and the
// rest wait for a slot.
func (w *world) many(attempt, procs int) {
	w.write(func(tx *ledger.Tx) error {
		run := ledger.Run{
			UID:       "u",
			Attempt:   attempt,
			Namespace: "ns",
			Name:      "zero",
			State:     ledger.Submitted,
			Cluster:   7,
			Procs:     procs,
			Schedd:    "s",
			OutputDir: "/out",
			Created:   time.Now(),
			Submitted: time.Now(),
		}
		return errors.Join(tx.InsertRun(run), tx.InsertProcs(run, procs))
	})
	w.write(func(tx *ledger.Tx) error {
		for i := range procs {
			p, err := tx.Proc("u", attempt, i)
			if err != nil {
				return err
			}
			p.JobStatus = int(condor.Idle)
			switch i {
			case 3:
				p.Status, p.ExitCode, p.Reason, p.Stderr, p.Fetched = ledger.StatusFailed, new(
					4,
				), "ExitCode", "<b>no</b>", ledger.IsFetched
			case 4:
				p.JobStatus = int(condor.Running)
			case 5:
				p.Status, p.ExitCode = ledger.StatusSucceeded, new(0)
			}
			if err := tx.UpdateProc(p); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestTheJobsOfAnAttemptAreListedInPages(t *testing.T) {
	w := newWorld(t)
	list := func(q aggregate.Query) []aggregate.Proc {
		q.Namespace, q.Name = "ns", "zero"
		answer, err := w.Procs(t.Context(), q)
		return linesOf[aggregate.Proc](t, answer, err)
	}
	require.Empty(t, list(aggregate.Query{}), "nothing was sent")
	w.many(1, procsAtOnce+7)
	all := list(aggregate.Query{})
	require.Len(t, all, procsAtOnce+7)
	for i, p := range all {
		require.Equal(t, i, p.Proc)
	}
	require.Equal(t, aggregate.NodeIdle, all[0].State)
	require.Equal(t, aggregate.NodeRunning, all[4].State)
	require.Equal(t, aggregate.NodeDone, all[5].State)
	require.Equal(
		t,
		aggregate.Proc{
			Proc:     3,
			State:    aggregate.NodeFailed,
			JobID:    "7.3",
			ExitCode: new(4),
			Reason:   "ExitCode",
			Stderr:   "<b>no</b>",
			Output:   true,
			Changed:  all[3].Changed,
		},
		all[3],
	)
	require.Equal(t, all[3:4], list(aggregate.Query{State: aggregate.NodeFailed}))
	require.Equal(t, all[procsAtOnce-1:procsAtOnce+2], list(aggregate.Query{Proc: procsAtOnce - 1, Limit: 3}))
	require.Equal(t, all[6:8], list(aggregate.Query{Proc: 3, Limit: 2, State: aggregate.NodeIdle}))
	require.Empty(t, list(aggregate.Query{State: aggregate.NodeFutile}), "of nodes alone")
	_, err := w.Procs(t.Context(), aggregate.Query{Namespace: "ns", Name: "zero", Attempt: 2})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	_, err = w.Procs(t.Context(), aggregate.Query{Namespace: "ns", Name: "other"})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestTheAttemptsOfAnHTCJobAreListed(t *testing.T) {
	w := newWorld(t)
	q := aggregate.Query{Namespace: "ns", Name: "zero"}
	w.many(1, 6)
	w.many(2, 2)
	w.write(func(tx *ledger.Tx) error { // an HTCJob of the same name that was deleted
		return tx.InsertRun(
			ledger.Run{UID: "other", Attempt: 1, Namespace: "ns", Name: "zero", State: ledger.Intent, Procs: 1},
		)
	})
	answer, err := w.Attempts(t.Context(), q)
	all := linesOf[aggregate.Attempt](t, answer, err)
	require.Len(t, all, 2)
	require.Equal(
		t,
		aggregate.Attempt{
			Attempt:   1,
			State:     "Submitted",
			Schedd:    "s",
			Cluster:   7,
			Created:   all[0].Created,
			Submitted: all[0].Submitted,
			Jobs:      6,
			Idle:      3,
			Running:   1,
			Done:      1,
			Failed:    1,
		},
		all[0],
	)
	require.Equal(t, 2, all[1].Idle)
}

func TestAListOfNodesEndsAtItsLimit(t *testing.T) {
	w := newWorkflow(t)
	w.sentFirst()
	list := func(q aggregate.Query) []aggregate.Node {
		q.Namespace, q.Name = "ns", "scan"
		answer, err := w.Nodes(t.Context(), q)
		return linesOf[aggregate.Node](t, answer, err)
	}
	all := list(aggregate.Query{})
	require.Len(t, all, 4)
	require.Equal(t, all[:3], list(aggregate.Query{Limit: 3}))
	require.Equal(t, all[2:3], list(aggregate.Query{Limit: 1, After: all[1].NodeKey}))
}
