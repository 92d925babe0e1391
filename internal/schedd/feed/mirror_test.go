package feed

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

const head = "107 1 CreationTimestamp 1795686445\n"

// site is the spool of a schedd, and its mirror.
type site struct {
	t *testing.T
	*Mirror
	log, history string
}

func newSite(t *testing.T, log string) *site {
	t.Helper()
	s := &site{t: t, log: filepath.Join(t.TempDir(), "job_queue.log")}
	s.history = filepath.Join(filepath.Dir(s.log), "history")
	s.write(s.log, log)
	s.Mirror = NewMirror(
		Options{
			Spool:  filepath.Dir(s.log),
			Owners: Owners{"robot": true},
			Now:    func() time.Time { return time.Unix(1000, 0) },
		},
	)
	s.poll()
	t.Cleanup(s.close)
	return s
}

func (s *site) write(path, text string) {
	s.t.Helper()
	require.NoError(s.t, os.WriteFile(path, []byte(text), 0o600))
}

func (s *site) add(path, text string) {
	s.t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(s.t, err)
	_, err = f.WriteString(text)
	require.NoError(s.t, err)
	require.NoError(s.t, f.Close())
	s.poll()
}

// replace does as a schedd that writes the file anew.
func (s *site) replace(text string) {
	s.t.Helper()
	s.write(s.log+".tmp", text)
	require.NoError(s.t, os.Rename(s.log+".tmp", s.log))
	s.poll()
}

func (s *site) ask(q Asked) (lines []string) {
	s.t.Helper()
	require.NoError(s.t, s.Answer(s.t.Context(), q, func(ad []byte) error {
		lines = append(lines, string(ad))
		return nil
	}))
	return lines
}

func (s *site) states() []string {
	s.t.Helper()
	return s.ask(Asked{Question: schedd.Question{Attributes: "ProcId,JobStatus"}})
}

// sent is what the schedd writes when htcd sends a cluster.
func sent(cluster, procs int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "105 \n101 0%d.-1 Job Machine\n", cluster)
	for p := range procs {
		fmt.Fprintf(
			&b,
			"101 %d.%d Job Machine\n103 %d.%d ProcId %d\n103 %d.%d JobStatus 1\n",
			cluster,
			p,
			cluster,
			p,
			p,
			cluster,
			p,
		)
	}
	fmt.Fprintf(
		&b,
		"103 0%d.-1 ClusterId %d\n103 0%d.-1 Owner \"robot\"\n103 0%d.-1 HTCJobUID \"u\"\n106 \n",
		cluster,
		cluster,
		cluster,
		cluster,
	)
	return b.String()
}

func TestTheLogGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		require.NoError(t, err)
		s := newSite(t, string(bytes.TrimSuffix(a.Files[0].Data, []byte("\n"))))
		require.Empty(t, s.State().Problem, file)
		got := strings.Join(s.ask(Asked{}), "\n") + "\n"
		require.Equal(t, string(a.Files[1].Data), got, file)
		require.NoError(
			t,
			classad.ReadJSON(
				strings.NewReader("["+strings.ReplaceAll(strings.TrimSpace(got), "\n", ",")+"]"),
				func(classad.Ad) error { return nil },
			),
		)
	}
}

func TestWhatIsBeingWrittenIsReadOnceItIsComplete(t *testing.T) {
	s := newSite(t, head+sent(1, 1))
	text := "105 \n103 1.0 JobStatus 2\n103 1.0 RemoteHost \"slot1\"\n106 \n103 1.0 JobStatus 5\n"
	was := s.states()
	for i := range len(text) {
		s.add(s.log, text[i:i+1])
		switch {
		case i < strings.Index(text, "106 ")+4:
			require.Equal(t, was, s.states(), "%q", text[:i+1])
		case i < len(text)-1:
			require.Equal(t, []string{`{"ProcId": 0, "JobStatus": 2}`}, s.states(), "%q", text[:i+1])
		}
	}
	require.Equal(t, []string{`{"ProcId": 0, "JobStatus": 5}`}, s.states())
}

func TestAMarkOutlivesTheFileAndTheMirror(t *testing.T) {
	s := newSite(t, head+sent(1, 2))
	_, mark, _, _ := s.Changes(Mark{})
	s.add(s.log, "103 1.1 JobStatus 2\n")
	changed, now, _, known := s.Changes(mark)
	require.True(t, known)
	require.Equal(t, []string{"1.1"}, changed)
	require.Equal(
		t,
		[]string{`{"ProcId": 1, "JobStatus": 2}`},
		s.ask(Asked{After: mark, Question: schedd.Question{Attributes: "ProcId,JobStatus"}}),
	)

	again := NewMirror(s.o)
	again.poll()
	defer again.close()
	changed, same, _, known := again.Changes(mark)
	require.True(t, known, "another mirror of the same file")
	require.Equal(t, []string{"1.1"}, changed)
	require.Equal(t, now, same)

	// The schedd adds to the old file, writes it anew, and adds to that, before the mirror looks again.
	s.write(
		s.log+".tmp",
		strings.Replace(
			head,
			"107 1",
			"107 2",
			1,
		)+strings.NewReplacer(
			"105 \n",
			"",
			"106 \n",
			"",
		).Replace(
			sent(1, 2),
		)+"103 1.1 JobStatus 5\n",
	)
	require.NoError(t, os.Rename(s.log+".tmp", s.log))
	s.poll()
	changed, newer, _, known := s.Changes(now)
	require.True(t, known)
	require.Equal(t, []string{"1.1"}, changed, "1.0 is as it was")
	require.Positive(t, newer.compare(now))

	late := NewMirror(s.o)
	late.poll()
	defer late.close()
	_, _, _, known = late.Changes(now)
	require.False(t, known, "a mirror that has not seen the file before knows nothing of it")
	require.ErrorIs(t, late.Answer(t.Context(), Asked{After: now}, nil), errTooOld)

	s.replace("107 1 CreationTimestamp 1795686446\n")
	_, _, _, known = s.Changes(newer)
	require.False(t, known, "another queue")
	require.Empty(t, s.states())
}

func TestATruncatedFileIsReadFromItsBeginning(t *testing.T) {
	s := newSite(t, head+sent(1, 3))
	_, mark, _, _ := s.Changes(Mark{})
	s.write(s.log, head+sent(2, 1))
	s.poll()
	require.Len(t, s.states(), 1)
	_, _, _, known := s.Changes(mark)
	require.False(t, known)
}

func TestAFileThatMakesNoSenseIsAProblem(t *testing.T) {
	for text, problem := range map[string]string{
		"":                                errNoHead.Error(),
		"103 1.0 A 1\n":                   errNoHead.Error(),
		head + "hello\n":                  `"hello": not a record of job_queue.log`,
		head + "105 \n105 \n106 \n":       "a transaction within another",
		head + "103 1.0 \n":               errRecord.Error(),
		head + "999 1.0 A 1\n":            errRecord.Error(),
		"107 x CreationTimestamp 1\n":     errNoHead.Error(),
		"107 1 Creation 1\n103 1.0 A 1\n": errNoHead.Error(),
	} {
		s := newSite(t, text)
		require.Contains(t, s.State().Problem, problem, "%q", text)
		require.ErrorIs(t, s.Answer(t.Context(), Asked{}, nil), errUnread)
		s.replace(head + sent(1, 1))
		require.Empty(t, s.State().Problem)
		require.Len(t, s.states(), 1)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	s := newSite(t, head+sent(1, 1))
	s.add(s.log, "103 1.0 Long \""+strings.Repeat("x", 2*maxValue)+"\"\n")
	require.Less(t, s.State().Held, 1<<10)
	require.Contains(t, s.ask(Asked{})[0], `"LeftOut": "Long"`)
	long := schedd.Question{Constraint: "(size(unparse(Long)) > 4096) =!= true"}
	require.Empty(t, s.ask(Asked{Question: long}), "as schedd.Client asks")
	s.o.Most = 100
	s.replace(strings.Replace(head, "107 1", "107 2", 1) + sent(1, 1))
	require.Contains(t, s.State().Problem, errTooMuch.Error())
	for i := range 3 * maxChanges {
		s.queue = &queue{changes: s.queueChanges()}
		s.queue.note(change{Mark{Offset: int64(i)}, number{i, 0}, true})
	}
	require.Less(t, len(s.queue.changes), 2*maxChanges)
}

func (s *site) queueChanges() []change {
	if s.queue == nil {
		return nil
	}
	return s.queue.changes
}

func leftAd(cluster int, status string) string {
	return fmt.Sprintf(
		"ClusterId = %d\nProcId = 0\nHTCJobUID = \"u\"\nOwner = \"robot\"\nClaimId = \"secret\"\nJobStatus = %s\n"+
			"*** Offset = 0 ClusterId = %d ProcId = 0 Owner = \"robot\" CompletionDate = 0\n",
		cluster,
		status,
		cluster,
	)
}

func TestTheHistoryIsFollowedThroughItsRotation(t *testing.T) {
	s := newSite(t, head)
	require.Empty(t, s.State().Problem, "a schedd of which no job has left")
	s.write(s.history+".20260101T000000", leftAd(1, "4"))
	s.add(s.history, leftAd(2, "3"))
	of := func(since string, limit int) (clusters []string) {
		return s.ask(
			Asked{
				Question: schedd.Question{
					Left:       true,
					Attributes: "ClusterId",
					Since:      since,
					Limit:      limit,
					Constraint: "JobStatus > 2",
				},
			},
		)
	}
	require.Equal(t, []string{`{"ClusterId": 2}`, `{"ClusterId": 1}`}, of("", 0))
	require.Equal(t, []string{`{"ClusterId": 2}`}, of("1.0", 0))
	s.add(s.history, leftAd(3, "3")[:20])
	require.Len(t, of("", 0), 2, "what is being written is not there yet")
	s.add(s.history, leftAd(3, "3")[20:])
	require.Equal(t, []string{`{"ClusterId": 3}`}, of("", 1))
	s.add(s.history, strings.Replace(leftAd(9, "3"), "robot", "mallory", 2))
	s.add(s.history, strings.Replace(leftAd(9, "3"), "HTCJobUID", "Other", 1))
	require.NoError(t, os.Rename(s.history, s.history+".20260102T000000"))
	s.add(s.history, leftAd(4, "4"))
	require.NoError(t, os.Rename(s.history, s.history+".20260103T000000"))
	require.NoError(t, os.Remove(s.history+".20260101T000000"))
	s.add(s.history, leftAd(5, "4"))
	require.Equal(
		t,
		[]string{`{"ClusterId": 5}`, `{"ClusterId": 4}`, `{"ClusterId": 3}`, `{"ClusterId": 2}`},
		of("", 0),
	)
	require.NotContains(t, s.ask(Asked{Question: schedd.Question{Left: true}})[0], "secret")
}

func TestAClientSeesOnlyTheJobsOfItsAccounts(t *testing.T) {
	s := newSite(t, head+sent(1, 1))
	s.add(s.history, leftAd(2, "4"))
	for _, both := range []bool{true, false} {
		q := Asked{Question: schedd.Question{Left: both}}
		require.Len(t, s.ask(q), 1)
		q.Owners = Owners{"alice": true}
		require.Empty(t, s.ask(q))
	}
}

func TestConstraintsMeanWhatHTCondorMeans(t *testing.T) {
	a := ad{}
	for _, line := range []string{"ClusterId = 7", `Owner = "Robot"`, "Real = 1.5", "No = false", "Expression = ClusterId + 1", "Nothing = undefined"} {
		at, _ := attributeOf(line, false)
		a = append(a, at)
	}
	look := func(n name) (attribute, bool) {
		if i := a.find(n); i >= 0 {
			return a[i], true
		}
		return attribute{}, false
	}
	for text, want := range map[condor.Constraint]bool{
		"": true, "clusterid == 7": true, "ClusterId =?= 7.0": false, `Owner == "robot"`: true, `Owner =?= "robot"`: false,
		"Absent =!= undefined": false, "Nothing =?= undefined": true, "Absent == 1": false, "(Absent == 1) =!= true": true,
		"Absent == 1 || ClusterId == 7": true, "Absent == 1 && ClusterId == 7": false, "No && Absent": false, "!No": true, "!Absent": false,
		"Expression == 8": false, "(Expression == 8) =!= true": true, "Expression == 8 || ClusterId == 7": false,
		"member(ClusterId, {1, 7})": true, "member(ClusterId, {1})": false, `member(Owner, {"a", "robot"})`: true, "member(Absent, {1}) =?= undefined": true,
		"size(unparse(Expression)) == 13": true, "size(unparse(Absent)) > 9": false, "time() - 10 == 990": true, "ClusterId / 0 == 1": false,
		"(ClusterId <= 3 ? ClusterId == 1 : ClusterId == 7)": true, "Real + 1 == 2.5": true, "ClusterId * 2 - 4 == 10 && ClusterId / 2 == 3": true, "Owner > 3": false,
		schedd.Period{From: 5, Age: time.Second}.Constraint(): true, condor.ClusterConstraint(7): false, condor.UIDConstraint("u"): false,
	} {
		c, err := compile(string(text), func() time.Time { return time.Unix(1000, 0) })
		require.NoError(t, err, text)
		require.Equal(t, want, c.matches(look), text)
	}
	for _, text := range []string{"(", "regexp(\"a\", Owner)", "TARGET.Memory > 1", "{1}", "a[0]", "~1", "member(Owner, Others)", "x ?: y"} {
		_, err := compile(text, time.Now)
		require.Error(t, err, text)
	}
}

func FuzzLog(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	require.NoError(f, err)
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		require.NoError(f, err)
		f.Add(a.Files[0].Data, 100)
	}
	f.Fuzz(func(t *testing.T, text []byte, cut int) {
		// Read in two parts or at once: it comes to the same.
		read := func(parts ...int) (*queue, error) {
			q := &queue{jobs: newJobs(nil, 1<<20)}
			for _, size := range parts {
				if err := q.read(bytes.NewReader(text), int64(size)); err != nil {
					return nil, err
				}
			}
			return q, nil
		}
		once, err := read(len(text))
		if err != nil {
			return
		}
		twice, err := read(max(0, min(cut, len(text))), len(text))
		require.NoError(t, err)
		require.Equal(t, once.mark, twice.mark)
		for n, a := range once.jobs.ads {
			require.GreaterOrEqual(t, len(a), 0)
			require.False(t, slices.ContainsFunc(a, func(at attribute) bool { return private(at.shown.Value()) }), n)
			require.NoError(
				t,
				classad.ReadJSON(
					bytes.NewReader(append(append([]byte("["), a.json()...), ']')),
					func(classad.Ad) error { return nil },
				),
				n,
			)
		}
	})
}
