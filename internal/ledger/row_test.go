package ledger

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestARunComesBackAsItWent(t *testing.T) {
	l, _ := openTemp(t)
	first, second := testRun("u1"), testRun("u1")
	second.Attempt, second.State, second.Cluster, second.Submitted = 2, Intent, 0, time.Time{}
	mustWrite(t, l, func(tx *Tx) error {
		require.NoError(t, tx.InsertRun(first))
		require.NoError(t, tx.InsertRun(second))
		require.ErrorIs(t, tx.InsertRun(second), ErrExists)
		return nil
	})
	mustRead(t, l, func(tx *Tx) error {
		got, err := tx.Run("u1", 1)
		require.NoError(t, err)
		require.Equal(t, first, got)
		got, err = tx.LatestRun("u1")
		require.NoError(t, err)
		require.Equal(t, second, got)
		_, err = tx.Run("u1", 3)
		require.ErrorIs(t, err, ErrNotFound)
		_, err = tx.LatestRun("u2")
		require.ErrorIs(t, err, ErrNotFound)
		return nil
	})

	second.Generation, second.State, second.Reason, second.Message = 9, Refused, "BadOptions", "no"
	second.Schedd, second.Cluster, second.Procs, second.TokenHash, second.TempDir = "s", 7, 8, []byte{9}, "/x"
	second.Submitted, second.Ended, second.Checked = noon, noon.Add(time.Hour), noon.Add(time.Minute)
	second.Deferred, second.Confirmed, second.Restored = true, true, true
	second.InputsDigest, second.SecretInputs = "sha256:1", "a b"
	mustWrite(t, l, func(tx *Tx) error { return tx.UpdateRun(second) })
	mustRead(t, l, func(tx *Tx) error {
		got, err := tx.Run("u1", 2)
		require.Equal(t, second, got)
		return err
	})
	mustWrite(t, l, func(tx *Tx) error {
		second.Attempt = 3
		require.ErrorIs(t, tx.UpdateRun(second), ErrNotFound)
		return nil
	})
}

func TestRunsAreFiltered(t *testing.T) {
	l, _ := openTemp(t)
	a, b, c := testRun("a"), testRun("b"), testRun("c")
	b.Namespace, b.State = "chemistry", Intent
	c.Name, c.Ended = "one", noon
	a.Confirmed = true
	mustWrite(t, l, func(tx *Tx) error {
		for _, r := range []Run{a, b, c} {
			require.NoError(t, tx.InsertRun(r))
		}
		return nil
	})
	for name, tt := range map[string]struct {
		filter RunFilter
		want   []Run
	}{
		"no filter gives all, oldest first": {RunFilter{}, []Run{a, b, c}},
		"by namespace":                      {RunFilter{Namespace: "physics"}, []Run{a, c}},
		"by namespace and name":             {RunFilter{Namespace: "physics", Name: "zero"}, []Run{a}},
		"by state":                          {RunFilter{State: Intent}, []Run{b}},
		"only unconfirmed ones":             {RunFilter{Unconfirmed: true}, []Run{b, c}},
		"nothing matches":                   {RunFilter{Name: "other"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			mustRead(t, l, func(tx *Tx) error {
				got, err := tx.Runs(tt.filter)
				require.Equal(t, tt.want, got)
				return err
			})
		})
	}
}

func TestAProcComesBackAsItWent(t *testing.T) {
	l, _ := openTemp(t)
	r := testRun("u1")
	insert(t, l, r)
	want := Proc{
		UID: "u1", Attempt: 1, Namespace: "physics", Name: "zero", Cluster: 100, Proc: 1,
		Status: StatusOpen, Changed: r.Submitted,
	}
	mustRead(t, l, func(tx *Tx) error {
		got, err := tx.Proc("u1", 1, 1)
		require.Equal(t, want, got)
		require.Equal(t, "100.1", got.JobID())
		return err
	})

	exit, signal := 3, 9
	want.Status, want.JobStatus, want.ExitCode, want.Signal = StatusFailed, 4, &exit, &signal
	want.Reason, want.Message, want.Source, want.Absent = "Exit", "exit code 3", "callback", 2
	want.Changed, want.Checked = noon.Add(time.Hour), noon.Add(2*time.Hour)
	mustWrite(t, l, func(tx *Tx) error { return tx.UpdateProc(want) })
	mustRead(t, l, func(tx *Tx) error {
		got, err := tx.ProcByJobID("physics", "zero", "100.1", nil)
		require.Equal(t, want, got)
		return err
	})
	mustWrite(t, l, func(tx *Tx) error {
		want.Proc = 3
		require.ErrorIs(t, tx.UpdateProc(want), ErrNotFound)
		_, err := tx.Proc("u1", 1, 3)
		require.ErrorIs(t, err, ErrNotFound)
		require.ErrorIs(t, tx.InsertProcs(r, 3), ErrExists)
		require.ErrorIs(t, tx.InsertProcs(testRun("other"), 3), ErrNotFound)
		require.Error(t, tx.InsertProcs(r, 0))
		r.Cluster = 0
		require.Error(t, tx.InsertProcs(r, 3))
		return nil
	})
}

func TestProcByJobIDTakesOneSpellingOnly(t *testing.T) {
	l, _ := openTemp(t)
	older, newer := testRun("u1"), testRun("u2") // the same name and cluster id, from another schedd
	older.TokenHash, newer.TokenHash = []byte("of the older"), []byte("of the newer")
	newer.Schedd = "other.example"
	insert(t, l, older)
	insert(t, l, newer)
	mustRead(t, l, func(tx *Tx) error {
		p, err := tx.ProcByJobID("physics", "zero", "100.2", []byte("nobody's"))
		require.Equal(t, "u2", p.UID)
		for uid, token := range map[string]string{"u1": "of the older", "u2": "of the newer"} {
			p, err = tx.ProcByJobID("physics", "zero", "100.2", []byte(token))
			require.Equal(t, uid, p.UID)
		}
		for _, id := range []string{
			"", "100", "100.", ".0", "100.3", "101.0", "0100.0", "100.00", "+100.0", "100.-1", " 100.0", "100.0 ", "100.0.0",
			"1e2.0", "99999999999999999999.0", "ERROR", "100.%",
		} {
			_, err := tx.ProcByJobID("physics", "zero", id, nil)
			require.ErrorIs(t, err, ErrNotFound, id)
		}
		_, other := tx.ProcByJobID("chemistry", "zero", "100.0", nil)
		require.ErrorIs(t, other, ErrNotFound)
		return err
	})
}

func TestProcsAreFilteredAndPaged(t *testing.T) {
	l, _ := openTemp(t)
	r := testRun("u1")
	r.Procs = 6
	insert(t, l, r)
	insert(t, l, testRun("u2"))
	mustWrite(t, l, func(tx *Tx) error {
		for _, p := range []Proc{
			{Proc: 1, Status: StatusFailed, Source: "callback"}, {Proc: 2, Status: StatusOpen, JobStatus: 5},
			{Proc: 4, Status: StatusFailed, Source: "crosscheck"}, {Proc: 5, Status: StatusSucceeded, Source: "callback"},
		} {
			p.UID, p.Attempt = "u1", 1
			require.NoError(t, tx.UpdateProc(p))
		}
		return nil
	})
	for name, tt := range map[string]struct {
		filter ProcFilter
		want   []int
	}{
		"no filter gives all in order":  {ProcFilter{}, []int{0, 1, 2, 3, 4, 5}},
		"only open":                     {ProcFilter{Status: StatusOpen}, []int{0, 2, 3}},
		"only failed":                   {ProcFilter{Status: StatusFailed}, []int{1, 4}},
		"only succeeded":                {ProcFilter{Status: StatusSucceeded}, []int{5}},
		"only held":                     {ProcFilter{Status: StatusOpen, JobStatus: 5}, []int{2}},
		"only unconfirmed":              {ProcFilter{Unconfirmed: true}, []int{0, 1, 2, 3, 5}},
		"a page":                        {ProcFilter{From: 2, Limit: 2}, []int{2, 3}},
		"the next page of a status":     {ProcFilter{Status: StatusFailed, From: 2, Limit: 2}, []int{4}},
		"a page beyond the end is none": {ProcFilter{From: 6}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			mustRead(t, l, func(tx *Tx) error {
				procs, err := tx.Procs("u1", 1, tt.filter)
				var got []int
				for _, p := range procs {
					got = append(got, p.Proc)
				}
				require.Equal(t, tt.want, got)
				return err
			})
		})
	}
}

func TestCountsFollowEveryChange(t *testing.T) {
	l, path := openTemp(t)
	r := testRun("u1")
	r.Procs = 8
	insert(t, l, r)
	insert(t, l, testRun("u2"))
	counts := func() (c Counts) {
		mustRead(t, l, func(tx *Tx) (err error) { c, err = tx.Counts("u1", 1); return err })
		return c
	}
	set := func(proc int, status Status, jobStatus int) {
		mustWrite(t, l, func(tx *Tx) error {
			return tx.UpdateProc(Proc{UID: "u1", Attempt: 1, Proc: proc, Status: status, JobStatus: jobStatus})
		})
	}
	require.Equal(t, Counts{Active: 8}, counts())
	set(0, StatusOpen, 1)
	set(1, StatusOpen, 2)
	set(2, StatusOpen, 5)
	set(3, StatusOpen, 6)
	set(4, StatusOpen, 7)
	set(5, StatusSucceeded, 4)
	set(6, StatusFailed, 0)
	require.Equal(t, Counts{Active: 6, Succeeded: 1, Failed: 1, Idle: 1, Running: 3, Held: 1}, counts())
	set(6, StatusFailed, 0) // the same again
	set(2, StatusSucceeded, 4)
	require.Equal(t, Counts{Active: 5, Succeeded: 2, Failed: 1, Idle: 1, Running: 3}, counts())

	_, err := shell(
		t,
		path,
	).Exec(
		`DELETE FROM htcjobs WHERE jobId = '100.7' AND run = 1; UPDATE htcjobs SET status = 4 WHERE jobId = '100.0' AND run = 1`,
	)
	require.NoError(t, err)
	require.Equal(t, Counts{Active: 3, Succeeded: 3, Failed: 1, Running: 3}, counts(), "changes by hand count too")

	mustWrite(t, l, func(tx *Tx) error { return tx.DeleteRuns("u1") })
	require.Zero(t, counts())
	mustRead(t, l, func(tx *Tx) error {
		other, err := tx.Counts("u2", 1)
		require.Equal(t, Counts{Active: 3}, other)
		return err
	})
}

func TestDeleteRunsLeavesNothing(t *testing.T) {
	l, path := openTemp(t)
	insert(t, l, testRun("u1"))
	second := testRun("u1")
	second.Attempt = 2
	insert(t, l, second)
	mustWrite(t, l, func(tx *Tx) error { return tx.DeleteRuns("u1") })
	mustWrite(t, l, func(tx *Tx) error { return tx.DeleteRuns("u1") })
	for _, table := range []string{"runs", "htcjobs", "tallies"} {
		var n int
		require.NoError(t, shell(t, path).QueryRow(`SELECT count(*) FROM `+table).Scan(&n))
		require.Zero(t, n, table)
	}
}

// Without its index each of these would read all rows of a run, or all runs.
func TestWhatIsAskedOftenHasAnIndex(t *testing.T) {
	_, path := openTemp(t)
	db := shell(t, path)
	for query, index := range map[string]string{
		selectProc + `WHERE r.uid = 'u' AND r.attempt = 1 AND p.proc = 3`:                                                              "htcjobs_proc",
		selectProc + `WHERE r.uid = 'u' AND r.attempt = 1 AND p.proc >= 0 AND p.status = 1 ORDER BY p.proc`:                            "htcjobs_unconfirmed",
		selectProc + `WHERE r.uid = 'u' AND r.attempt = 1 AND p.proc >= 0 AND p.status = 7 ORDER BY p.proc`:                            "htcjobs_failed",
		selectProc + `WHERE r.namespace = 'n' AND r.name = 'x' AND r.cluster = 1 AND p.proc = 3 ORDER BY r.id DESC LIMIT 1`:            "runs_name",
		selectProc + `WHERE r.uid = 'u' AND r.attempt = 1 AND p.proc >= 0 AND (p.status = 1 OR p.source = 'callback') ORDER BY p.proc`: "htcjobs_unconfirmed",
		strings.ReplaceAll(poolUse, `?`, `'grid'`):                                                                                     "runs_pool",
		`SELECT * FROM runs WHERE confirmed = 0 ORDER BY id`:                                                                           "runs_unconfirmed",
		`DELETE FROM htcjobs WHERE run = 7`:                                                                                            "htcjobs_proc",
	} {
		rows, err := db.Query(`EXPLAIN QUERY PLAN ` + query)
		require.NoError(t, err)
		plan := ""
		require.NoError(t, eachRow(rows, func(row scanner) error {
			var ignored int
			var step string
			err := row.Scan(&ignored, &ignored, &ignored, &step)
			plan += step + "\n"
			return err
		}))
		require.Contains(t, plan, index, query)
		require.NotContains(t, plan, "SCAN p", query)
		require.NotContains(t, plan, "TEMP B-TREE FOR ORDER BY p", query)
	}
}

func TestOldAttemptsAreDroppedOnceNothingIsLeftToDo(t *testing.T) {
	l, _ := openTemp(t)
	for attempt, change := range []func(*Run){
		func(r *Run) { r.Confirmed, r.OutputDir = true, "/out" },
		func(r *Run) {}, // HTCondor has not confirmed its end
		func(r *Run) { r.Confirmed, r.OutputDir = true, "/out" },
		func(r *Run) { r.State = Refused },
		func(r *Run) { r.Confirmed = true },
	} {
		run := testRun("u")
		run.Attempt = attempt + 1
		change(&run)
		insert(t, l, run)
	}
	insert(t, l, testRun("another"))
	mustWrite(t, l, func(tx *Tx) error {
		p, err := tx.Proc("u", 3, 0) // its output is still to be fetched
		if err != nil {
			return err
		}
		p.Status, p.JobStatus = StatusSucceeded, 4
		return tx.UpdateProc(p)
	})
	mustWrite(t, l, func(tx *Tx) error { return tx.DropEnded("u", 4) })
	var left []int
	mustRead(t, l, func(tx *Tx) error {
		runs, err := tx.Runs(RunFilter{})
		for _, r := range runs {
			if r.UID == "u" {
				left = append(left, r.Attempt)
			}
		}
		require.Len(t, runs, 4)
		return err
	})
	require.Equal(t, []int{2, 3, 5}, left)
}
