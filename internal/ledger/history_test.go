package ledger

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func past(t *testing.T, l *Ledger, f PastFilter) (all []Past) {
	t.Helper()
	mustRead(t, l, func(tx *Tx) (err error) {
		all, err = tx.History(f)
		return err
	})
	return all
}

func namesOfPast(all []Past) (names []string) {
	for _, p := range all {
		names = append(names, fmt.Sprint(p.Name, "/", p.Attempt))
	}
	return names
}

func TestWhatIsSaidOfAnAttemptOutlivesItsRows(t *testing.T) {
	l, _ := openTemp(t)
	run := testRun("u1")
	run.Account, run.Pool, run.Started, run.Finished, run.Ended, run.Usage = "alice", "big", noon.Add(
		time.Minute,
	), noon.Add(
		time.Hour,
	), noon.Add(
		2*time.Hour,
	), "{}"
	insert(t, l, run)
	mustWrite(t, l, func(tx *Tx) error {
		for proc, status := range []Status{StatusSucceeded, StatusFailed} {
			p, err := tx.Proc("u1", 1, proc)
			require.NoError(t, err)
			p.Status = status
			require.NoError(t, tx.UpdateProc(p))
		}
		return nil
	})
	want := Past{
		Namespace: "physics",
		Name:      "zero",
		UID:       "u1",
		Attempt:   1,
		Account:   "alice",
		Pool:      "big",
		Schedd:    "schedd.example",
		Cluster:   100,
		State:     Submitted,
		Reason:    "Sent",
		Created:   noon,
		Submitted: noon.Add(time.Second),
		Started:   run.Started,
		Finished:  run.Finished,
		Ended:     run.Ended,
		Usage:     "{}",
		Jobs:      3,
		Succeeded: 1,
		Failed:    1,
	}
	require.Equal(t, []Past{want}, past(t, l, PastFilter{}))
	mustWrite(t, l, func(tx *Tx) error { return tx.DeleteRuns("u1") })
	after := past(t, l, PastFilter{})
	require.Len(t, after, 1)
	require.WithinDuration(t, time.Now(), after[0].Gone, time.Minute)
	after[0].Gone = time.Time{}
	require.Equal(t, want, after[0])
	mustRead(t, l, func(tx *Tx) error {
		counts, err := tx.Counts("u1", 1)
		require.Equal(t, Counts{}, counts)
		return err
	})
}

func TestTheHistoryIsReadInPagesTheNewestFirst(t *testing.T) {
	l, _ := openTemp(t)
	for i := range 10 {
		r := testRun(fmt.Sprint("u", i))
		r.Name, r.Created = fmt.Sprint("job", i), noon.Add(time.Duration(i/2)*time.Hour) // two at a time
		if i%3 == 0 {
			r.Namespace = "other"
		}
		insert(t, l, r)
		if i%2 == 0 {
			mustWrite(t, l, func(tx *Tx) error { return tx.DeleteRuns(r.UID) })
		}
	}
	all := past(t, l, PastFilter{})
	require.Equal(
		t,
		"job9/1 job8/1 job7/1 job6/1 job5/1 job4/1 job3/1 job2/1 job1/1 job0/1",
		strings.Join(namesOfPast(all), " "),
	)
	var paged []string
	for f := (PastFilter{Limit: 3}); ; {
		page := past(t, l, f)
		if len(page) == 0 {
			break
		}
		paged = append(paged, namesOfPast(page)...)
		key := page[len(page)-1].Key()
		f.Before = &key
	}
	require.Equal(t, namesOfPast(all), paged)
	require.Equal(
		t,
		[]string{"job9/1", "job6/1"},
		namesOfPast(past(t, l, PastFilter{Namespace: "other", Since: noon.Add(2 * time.Hour)})),
	)
	require.Equal(
		t,
		[]string{"job9/1", "job6/1", "job3/1", "job0/1"},
		namesOfPast(past(t, l, PastFilter{Namespace: "other"})),
	)
}

func TestThePagesOfTheHistoryAreReadByIndexes(t *testing.T) {
	_, path := openTemp(t)
	rows, err := shell(
		t,
		path,
	).Query(
		`EXPLAIN QUERY PLAN SELECT name, created, uid, attempt, failed FROM attempts WHERE created >= 5
		UNION ALL SELECT name, created, uid, attempt, failed FROM history WHERE created >= 5
		ORDER BY created DESC, uid DESC, attempt DESC LIMIT 10`,
	)
	require.NoError(t, err)
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var a, b, c int
		var detail string
		require.NoError(t, rows.Scan(&a, &b, &c, &detail))
		plan.WriteString(detail + "\n")
	}
	require.NoError(t, rows.Err())
	require.Contains(t, plan.String(), "runs_created")
	require.Contains(t, plan.String(), "history_created")
	require.NotContains(t, plan.String(), "TEMP B-TREE")
}

func TestTheHistoryIsBoundedByTimeAndNumber(t *testing.T) {
	l, _ := openTemp(t)
	for i := range 7 {
		insert(t, l, testRun(fmt.Sprint("u", i)))
		mustWrite(t, l, func(tx *Tx) error { return tx.DeleteRuns(fmt.Sprint("u", i)) })
	}
	forget := func(before time.Time, most int) {
		mustWrite(t, l, func(tx *Tx) error {
			more, err := tx.ForgetHistory(before, most)
			require.False(t, more)
			return err
		})
	}
	forget(time.Now().Add(-time.Hour), 7)
	require.Len(t, past(t, l, PastFilter{}), 7)
	forget(time.Now().Add(-time.Hour), 4)
	left := past(t, l, PastFilter{})
	require.Len(t, left, 4)
	require.Equal(t, "u3", left[3].UID, "the oldest went")
	forget(time.Now().Add(time.Hour), 4)
	require.Empty(t, past(t, l, PastFilter{}))
}

func TestWhetherAnObjectThatIsGoneWasSentIsKnown(t *testing.T) {
	l, _ := openTemp(t)
	insert(t, l, testRun("there"))
	insert(t, l, testRun("gone"))
	mustWrite(t, l, func(tx *Tx) error { return tx.DeleteRuns("gone") })
	for _, c := range []struct {
		namespace, uid string
		since          time.Time
		want           bool
	}{
		{"physics", "gone", noon, true},
		{"physics", "gone", noon.Add(time.Second), false},
		{"other", "gone", noon, false},
		{"physics", "there", noon, false},
	} {
		mustRead(t, l, func(tx *Tx) error {
			was, err := tx.WasSent(c.namespace, c.uid, c.since)
			require.Equal(t, c.want, was, c)
			return err
		})
	}
}
