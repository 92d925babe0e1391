package ledger

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRunsWithIdleJobsAreFound(t *testing.T) {
	l, _ := openTemp(t)
	waits, runs, stops, dag := testRun("waits"), testRun("runs"), testRun("stops"), testRun("dag")
	waits.Procs, stops.Stop = 3, "Suspended"
	dag.Kind, dag.Procs = Workflows, 1
	steps, places := []Step{{Name: "one"}}, []Place{{}, {Sequence: 1}}
	mustWrite(t, l, func(tx *Tx) error {
		for _, r := range []Run{waits, runs, stops, dag} {
			r.State = Submitted
			require.NoError(t, tx.InsertRun(r))
			require.NoError(t, tx.InsertProcs(r, r.Procs))
			for proc := range r.Procs {
				p, err := tx.Proc(r.UID, r.Attempt, proc)
				require.NoError(t, err)
				if p.JobStatus = jobIdle; r.UID == "runs" || proc == 0 && r.UID == "waits" {
					p.JobStatus = jobRunning
				}
				require.NoError(t, tx.UpdateProc(p))
			}
		}
		require.NoError(t, tx.InsertNodes(dag, steps, places))
		return nil
	})
	look := func(want map[string]string) {
		t.Helper()
		mustRead(t, l, func(tx *Tx) error {
			found, err := tx.RunsIdle()
			require.NoError(t, err)
			jobs := map[string]string{}
			for _, r := range found {
				jobs[r.UID], err = tx.FirstIdle(r)
				require.NoError(t, err)
			}
			require.Equal(t, want, jobs)
			return nil
		})
	}
	second := Proc{Cluster: waits.Cluster, Proc: 1}.JobID()
	look(map[string]string{"waits": second})
	mustWrite(t, l, func(tx *Tx) error {
		n, err := tx.Node("dag", 1, 1)
		require.NoError(t, err)
		n.Cluster, n.JobStatus = 77, jobIdle
		return tx.UpdateNode(n)
	})
	look(map[string]string{"waits": second, "dag": "77.0"})
	dag.State, dag.Factory = Submitted, 2
	mustWrite(t, l, func(tx *Tx) error { return tx.UpdateRun(dag) })
	look(map[string]string{"waits": second, "dag": "77.1"})
}

func TestTheFirstIdleJobOfAnAttemptThatSendsSomeIsNamedAsInItsCluster(t *testing.T) {
	l, _ := openTemp(t)
	some := testRun("some")
	some.State, some.Sent, some.Procs, some.Jobs = Submitted, "3,7-9", 4, 10
	mustWrite(t, l, func(tx *Tx) error {
		err := errors.Join(tx.InsertRun(some), tx.InsertProcs(some, some.Procs))
		if err != nil {
			return err
		}
		return tx.UpdateProc(Proc{UID: some.UID, Attempt: 1, Proc: 8, Status: StatusOpen, JobStatus: jobIdle})
	})
	mustRead(t, l, func(tx *Tx) error {
		jobID, err := tx.FirstIdle(some)
		require.Equal(t, "100.2", jobID)
		return err
	})
}
