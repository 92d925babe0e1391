package follow

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

func TestWhere(t *testing.T) {
	held := &v1alpha1.HTCJob{
		ObjectMeta: metav1.ObjectMeta{Name: "zero"},
		Status: v1alpha1.HTCJobStatus{Phase: v1alpha1.PhaseHeld,
			Conditions: []metav1.Condition{
				{Type: v1alpha1.ConditionHeld, Status: metav1.ConditionTrue, Message: "no such image"},
			}},
	}
	refused := &v1alpha1.HTCJob{
		ObjectMeta: metav1.ObjectMeta{Name: "zero"},
		Status: v1alpha1.HTCJobStatus{Phase: v1alpha1.PhaseFailed,
			Conditions: []metav1.Condition{
				{Type: v1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Message: "line 1: no"},
			}},
	}
	run := &ledger.Run{State: ledger.Submitted, OutputDir: "/out"}
	proc := func(status ledger.Status, job condor.JobStatus, change ...func(*ledger.Proc)) *ledger.Proc {
		p := &ledger.Proc{Cluster: 7, Status: status, JobStatus: int(job)}
		for _, f := range change {
			f(p)
		}
		return p
	}
	for name, c := range map[string]struct {
		job  *v1alpha1.HTCJob
		run  *ledger.Run
		proc *ledger.Proc
		want place
		why  string
	}{
		"what was not sent yet waits":             {&v1alpha1.HTCJob{}, nil, nil, waiting, ""},
		"what was refused never comes":            {refused, nil, nil, never, "line 1: no"},
		"what HTCondor refused never comes":       {refused, &ledger.Run{State: ledger.Refused, Message: "no project"}, nil, never, "no project"},
		"an idle job waits":                       {held, run, proc(ledger.StatusOpen, condor.Idle), waiting, "waits in HTCondor for a slot"},
		"a job on hold says why":                  {held, run, proc(ledger.StatusOpen, condor.Held), waiting, "on hold in HTCondor: no such image"},
		"a job that runs is asked":                {held, run, proc(ledger.StatusOpen, condor.Running), running, ""},
		"a job of an older htcd, too":             {held, &ledger.Run{State: ledger.Submitted}, proc(ledger.StatusOpen, condor.Running), running, ""},
		"what sends its output is on its way":     {held, run, proc(ledger.StatusOpen, condor.TransferringOutput), ending, "has ended"},
		"what the schedd says to have ended, too": {held, run, proc(ledger.StatusOpen, condor.Completed), ending, "has ended"},
		"what has ended is on its way":            {held, run, proc(ledger.StatusFailed, condor.Completed), ending, "is being fetched"},
		"what a callback ended, too":              {held, run, proc(ledger.StatusSucceeded, condor.Running), ending, ""},
		"what an older htcd sent is not fetched":  {held, &ledger.Run{State: ledger.Submitted}, proc(ledger.StatusFailed, condor.Completed), never, "older htcd"},
		"what is fetched is kept":                 {held, run, proc(ledger.StatusFailed, condor.Completed, func(p *ledger.Proc) { p.Fetched = ledger.IsFetched }), kept, ""},
		"what could not be fetched never comes":   {held, run, proc(ledger.StatusFailed, condor.Completed, func(p *ledger.Proc) { p.Fetched = ledger.GivenUp }), never, "could not be fetched"},
		"a removed job leaves nothing":            {held, run, proc(ledger.StatusFailed, condor.Removed, func(p *ledger.Proc) { p.Message = "via condor_rm" }), never, "via condor_rm"},
		"a job that was lost leaves nothing":      {held, run, proc(ledger.StatusFailed, 0, func(p *ledger.Proc) { p.Reason = "Lost" }), never, "without a trace"},
		"a run that is being removed leaves none": {held, &ledger.Run{State: ledger.Removed, OutputDir: "/out"}, proc(ledger.StatusFailed, condor.Running), never, "removed"},
	} {
		t.Run(name, func(t *testing.T) {
			got := where(objectOf(c.job), c.run, c.proc)
			require.Equal(t, c.want, got.place, got.why)
			require.Contains(t, got.why, c.why)
		})
	}
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	w := newWorld(t)
	for name, q := range map[string]func(*aggregate.Query){
		"another HTCJob":    func(q *aggregate.Query) { q.Name = "none" },
		"another namespace": func(q *aggregate.Query) { q.Namespace = "other" },
		"another attempt":   func(q *aggregate.Query) { q.Attempt = 3 },
		"another job":       func(q *aggregate.Query) { q.Proc = 1 },
	} {
		_, err := w.reads(q)
		require.True(t, apierrors.IsNotFound(err), "%s: %v", name, err)
	}
	_, err := w.reads()
	require.True(t, apierrors.IsConflict(err), "%v", err)
	_, err = w.Archive(t.Context(), asks(func(q *aggregate.Query) { q.AllProcs = true }))
	require.True(t, apierrors.IsConflict(err), "%v", err)
	w.sent(1)
	_, err = w.Archive(t.Context(), asks())
	require.True(t, apierrors.IsConflict(err), "%v", err)
	_, err = w.Files(t.Context(), asks())
	require.True(t, apierrors.IsConflict(err), "%v", err)
}

func TestAnArchiveHasOneFileAloneWhereOneIsAskedFor(t *testing.T) {
	w := newWorld(t)
	w.sent(1)
	w.written = "printed"
	w.ends()
	for file, named := range map[string]bool{"": true, output.Stdout: true, "other": false} {
		answer, err := w.Archive(t.Context(), asks(func(q *aggregate.Query) { q.File = file }))
		require.NoError(t, err)
		var b bytes.Buffer
		require.NoError(t, answer.Write(t.Context(), &b))
		require.Equal(t, named, strings.Contains(b.String(), "printed"), file)
		require.Equal(t, file == "", strings.HasPrefix(b.String(), "0/\x00"), "the directory itself")
	}
}

func TestFrom(t *testing.T) {
	long := strings.Repeat("x", 100_000) + "\n"
	for name, c := range map[string]struct {
		text  string
		lines int
		want  string
	}{
		"all":                          {"a\nb\n", -1, "a\nb\n"},
		"none":                         {"a\nb\n", 0, ""},
		"none of a line without end":   {"a\nb", 0, ""},
		"one":                          {"a\nb\n", 1, "b\n"},
		"one without an end":           {"a\nb", 1, "b"},
		"as many as there are":         {"a\nb\n", 2, "a\nb\n"},
		"more than there are":          {"a\nb\n", 5, "a\nb\n"},
		"of nothing":                   {"", 3, ""},
		"an empty line is a line":      {"a\n\n\n", 2, "\n\n"},
		"lines longer than the buffer": {"a\n" + long + long, 2, long + long},
	} {
		t.Run(name, func(t *testing.T) {
			at, err := from(strings.NewReader(c.text), int64(len(c.text)), c.lines)
			require.NoError(t, err)
			require.Equal(t, c.want, c.text[at:])
		})
	}
}

func TestTheBacklog(t *testing.T) {
	room := &room{dir: t.TempDir(), bytes: newShares(100)}
	b, err := newBacklog(room, requester{}, 10)
	require.NoError(t, err)
	part := make([]byte, 4)
	write := func(text string) {
		t.Helper()
		n, err := io.WriteString(b, text)
		require.NoError(t, err)
		require.Len(t, text, n)
	}
	read := func(text string) {
		t.Helper()
		_, err := io.ReadFull(b, part[:len(text)])
		require.NoError(t, err)
		require.Equal(t, text, string(part[:len(text)]))
	}
	size := func() int64 {
		info, err := b.file.Stat()
		require.NoError(t, err)
		return info.Size()
	}
	write("0123456789")
	read("0123")
	write("abcd")
	for _, text := range []string{"45", "67", "89", "ab", "cd", "ef", "ef"} { // round and round in the same file
		read(text)
		write("ef")
	}
	require.EqualValues(t, 10, size())
	require.EqualValues(t, 10, room.bytes.held)
	read("efef")
	read("efef")
	read("ef")
	require.Zero(t, size(), "what is read is not kept")
	require.Zero(t, room.bytes.held)

	write("0123456789")
	_, err = b.Write([]byte("x"))
	require.ErrorIs(t, err, errTooSlow)
	read("0123")
	_, err = b.Write([]byte("y"))
	require.ErrorIs(t, err, errTooSlow, "there would be a gap")
	b.end()
	rest, err := io.ReadAll(b)
	require.ErrorIs(t, err, errTooSlow)
	require.Equal(t, "456789", string(rest))
	require.NoError(t, b.Close())
	require.Zero(t, room.bytes.held)
}

func TestNobodyHasMoreThanIsLeftForTheOthers(t *testing.T) {
	s := newShares(32)
	takes := func(user, namespace string) (n int64) {
		for s.take(requester{user, namespace}, 1) {
			n++
		}
		return n
	}
	require.EqualValues(t, 16, takes("anna", "a"))
	require.EqualValues(t, 0, takes("anna", "b"), "a user is the same in each namespace")
	require.EqualValues(t, 8, takes("bert", "a"))
	require.EqualValues(t, 0, takes("carl", "a"), "whose namespace has three quarters")
	require.EqualValues(t, 4, takes("carl", "b"))
	require.EqualValues(t, 2, takes("dora", "b"))
	require.EqualValues(t, 1, takes("emil", "c"))
	require.EqualValues(t, 1, takes("fred", "c"), "the last one")
	require.EqualValues(t, 0, takes("gina", "d"))
	s.give(requester{"anna", "a"}, 16)
	s.give(requester{"bert", "a"}, 8)
	require.EqualValues(t, 12, takes("gina", "d"))
	for of, n := range map[requester]int64{{"gina", "d"}: 12, {"carl", "b"}: 4, {"dora", "b"}: 2, {"emil", "c"}: 1, {"fred", "c"}: 1} {
		s.give(of, n)
	}
	require.Zero(t, s.held)
	require.Empty(t, s.by)
}

func TestAReaderOfManyLeavesPlacesToOthers(t *testing.T) {
	w := newWorld(t)
	w.sent(1)
	w.runs()
	w.set(func() { w.written = "text\n" })
	anna, bert := func(q *aggregate.Query) { q.User = "anna" }, func(q *aggregate.Query) { q.User = "bert" }
	readers := []*reader{w.follows(anna), w.follows(anna)}
	_, err := w.reads(anna)
	require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
	text, err := w.reads(bert)
	require.NoError(t, err)
	require.Equal(t, "text\n", text)
	w.ends()
	for _, r := range readers {
		require.NoError(t, <-r.done)
	}
	require.Zero(t, w.places.held)
}

func TestSlowReadersLeavePlacesToOthers(t *testing.T) {
	r := New(Options{})
	anna := aggregate.Query{User: "anna", Namespace: "a"}
	var given []func()
	for {
		give, err := r.Place(anna)
		if err != nil {
			require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
			break
		}
		given = append(given, give)
	}
	require.Len(t, given, mostReaders/2)
	follows := anna
	follows.Follow = true
	_, err := r.Place(follows)
	require.NoError(t, err, "it has a place of its own")
	_, err = r.Place(aggregate.Query{User: "bert", Namespace: "b"})
	require.NoError(t, err)
	for _, give := range given {
		give()
	}
	require.EqualValues(t, 1, r.readers.held)
}

func TestCopiesLeaveTheVolumeItsRoom(t *testing.T) {
	for name, full := range map[string]func(*world){
		"keep-free":  func(w *world) { w.room.keepFree = 1 << 62 },
		"your share": func(w *world) { w.room.bytes.most = 1 << 10 },
		"meanwhile":  nil,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sent(1)
			w.runs()
			w.set(func() { w.written = "text\n" })
			if full == nil {
				r := w.follows()
				r.sees("text\n")
				w.tailed(2)
				full = func(w *world) {
					w.room.bytes.mu.Lock()
					defer w.room.bytes.mu.Unlock()
					w.room.bytes.most = 0
				}
				full(w)
				w.set(func() { w.written += "more\n" })
				var none *noRoomError
				require.ErrorAs(t, <-r.done, &none, "who comes again is told")
			}
			full(w)
			_, err := w.reads()
			require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
			require.ErrorContains(t, err, "it can be read when the job has ended")
			w.ends()
			text, err := w.reads()
			require.NoError(t, err)
			require.Equal(t, w.written, text)
			require.Zero(t, w.room.bytes.held)
			require.Zero(t, w.places.held)
		})
	}
}
