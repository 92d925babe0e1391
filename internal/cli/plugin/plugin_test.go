package plugin

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// archived makes a tar of names and texts; a name that ends in / is a directory.
func archived(t *testing.T, entries ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(entries); i += 2 {
		header := &tar.Header{Name: entries[i], Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(entries[i+1]))}
		switch {
		case strings.HasSuffix(entries[i], "/"):
			header.Typeflag, header.Size = tar.TypeDir, 0
			if name, is := strings.CutPrefix(entries[i+1], "# "); is && name != "" {
				of := strings.Split(name, "|") // with the variables, the number and the cluster
				header.PAXRecords = map[string]string{aggregate.RecordNode: of[0]}
				if len(of) == 4 {
					header.PAXRecords[aggregate.RecordVariables] = of[1]
					header.PAXRecords[aggregate.RecordNumber] = of[2]
					header.PAXRecords[aggregate.RecordCluster] = of[3]
				}
			}
		case strings.HasPrefix(entries[i+1], "-> "):
			header.Typeflag, header.Linkname, header.Size = tar.TypeSymlink, entries[i+1][3:], 0
		case strings.HasPrefix(entries[i+1], "=> "):
			header.Typeflag, header.Linkname, header.Size = tar.TypeLink, entries[i+1][3:], 0
		}
		require.NoError(t, w.WriteHeader(header))
		if header.Typeflag == tar.TypeReg {
			_, err := io.WriteString(w, entries[i+1])
			require.NoError(t, err)
		}
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// land unpacks into a directory.
func land(t *testing.T, dir string, archive []byte, change ...func(*landing)) (*landing, error) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = root.Close() })
	l := &landing{root: root, origin: origin{HTCJob: "ns/zero", UID: "u", Attempt: 1}}
	for _, f := range change {
		f(l)
	}
	if err := l.claim(); err != nil {
		return l, err
	}
	return l, l.unpack(bytes.NewReader(archive))
}

// tree lists what is in a directory, files with their text.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == originFile {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		found[name] = string(text)
		return err
	}))
	return found
}

// serving is a cluster made of a function.
func serving(t *testing.T, answer http.HandlerFunc) *cluster {
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL)
	require.NoError(t, err)
	return &cluster{namespace: "ns", base: base, http: server.Client()}
}

func TestABrokenStreamGoesOn(t *testing.T) {
	const text = "zero\none\ntwo\nthree\n"
	var asked []string
	c := serving(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RawQuery)
		switch from := r.FormValue("offset"); len(asked) {
		case 1: // the tail, broken in a line
			w.Header().Set(aggregate.HeaderOffset, "5")
			w.Header().Set(aggregate.HeaderAttempt, "3")
			w.Header().Set(aggregate.HeaderItem, "ENERGY=13000%20NAME=%C3%A4%1B[31m")
			_, _ = io.WriteString(w, text[5:11])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case 2:
			http.Error(w, "service unavailable", http.StatusServiceUnavailable)
		default:
			var at int
			_, _ = fmt.Sscan(from, &at)
			_, _ = io.WriteString(w, text[at:])
		}
	})
	var got strings.Builder
	var items []string
	require.NoError(
		t,
		c.log(
			t.Context(),
			"zero",
			url.Values{"tailLines": {"3"}, "follow": {"true"}},
			&got,
			func(item string) { items = append(items, item) },
		),
	)
	require.Equal(t, text[5:], got.String())
	require.Equal(t, []string{"ENERGY=13000 NAME=ä[31m"}, items, "once, and fit for a terminal")
	require.Equal(
		t,
		[]string{"follow=true&tailLines=3", "attempt=3&follow=true&offset=11", "attempt=3&follow=true&offset=11"},
		asked,
	)
}

func TestABrokenArchiveGoesOn(t *testing.T) {
	first := archived(t, "0/", "", "0/x", "a", "1/", "", "1/x", strings.Repeat("b", 5000))
	asked := 0
	c := serving(t, func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked == 1 {
			w.Header().Set(aggregate.HeaderAttempt, "3")
			_, _ = w.Write(first[:len(first)-4000])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		require.Equal(t, "attempt=3&from=1", r.URL.RawQuery)
		_, _ = w.Write(archived(t, "1/", "", "1/x", "b", "2/", "", "2/x", "c"))
	})
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	require.NoError(t, c.fetch(t.Context(), "zero", procOf(-1, 0), &landing{root: root, only: -1}))
	require.Equal(t, map[string]string{"0/x": "a", "1/x": "b", "2/x": "c"}, tree(t, dir))
}

func TestACommandWaitsForAnHTCdThatStarts(t *testing.T) {
	asked := 0
	c := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 1 {
			http.Error(w, "service unavailable", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "out")
	})
	var got, warnings strings.Builder
	c.starting = delay{most: time.Minute, warnings: &warnings}
	require.NoError(t, c.log(t.Context(), "zero", url.Values{}, &got, nil))
	require.Equal(t, "out", got.String())
	require.Equal(t, "no htcd answers at present: waiting up to 1m0s\n", warnings.String())
}

func TestARefusalIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		code int
		body string
		want string
	}{
		"in htcd's words":           {409, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"it waits","reason":"Conflict","code":409}`, "it waits"},
		"a cluster without htcd":    {404, "404 page not found\n", "serves no output"},
		"an apiserver without it":   {404, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"the server could not find","reason":"NotFound","details":{},"code":404}`, "serves no output"},
		"an HTCJob that is not":     {404, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"there is no HTCJob","reason":"NotFound","details":{"name":"zero","kind":"htcjobs"},"code":404}`, "there is no HTCJob"},
		"an htcd that is not there": {503, "service unavailable\n", "no htcd answers at present"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			cluster := serving(t, func(w http.ResponseWriter, _ *http.Request) {
				asked++
				w.WriteHeader(c.code)
				_, _ = io.WriteString(w, c.body)
			})
			err := cluster.log(t.Context(), "zero", url.Values{}, io.Discard, nil)
			require.ErrorContains(t, err, c.want)
			require.Equal(t, 1, asked)
		})
	}
}

const onItsWay = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"it is being fetched","reason":"Conflict","details":{"name":"zero","kind":"htcjobs","retryAfterSeconds":1},"code":409}`

func TestOutputThatIsOnItsWayIsWaitedFor(t *testing.T) {
	asked := 0
	var warnings, got strings.Builder
	c := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 1 {
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, onItsWay)
			return
		}
		_, _ = io.WriteString(w, "text")
	})
	c.coming = delay{most: time.Minute, warnings: &warnings}
	require.NoError(t, c.log(t.Context(), "zero", url.Values{}, &got, nil))
	require.Equal(t, "text", got.String())
	require.Equal(t, "a job of zero has ended and its output is being fetched: waiting up to 1m0s\n", warnings.String())
}

func TestOutputThatDoesNotComeIsNotWaitedForLonger(t *testing.T) {
	asked := 0
	c := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, onItsWay)
	})
	c.coming = delay{most: time.Nanosecond, warnings: io.Discard}
	require.ErrorContains(t, c.log(t.Context(), "zero", url.Values{}, io.Discard, nil), "it is being fetched")
	require.ErrorContains(t, c.log(t.Context(), "zero", url.Values{}, io.Discard, nil), "it is being fetched")
	require.Equal(t, 2, asked)
}

func TestWhoDoesNotReadOnEndsIt(t *testing.T) {
	asked := 0
	c := serving(t, func(w http.ResponseWriter, _ *http.Request) { asked++; _, _ = io.WriteString(w, "text") })
	require.ErrorIs(
		t,
		c.log(
			t.Context(),
			"zero",
			url.Values{},
			writerFunc(func([]byte) (int, error) { return 0, io.ErrClosedPipe }),
			nil,
		),
		io.ErrClosedPipe,
	)
	require.Equal(t, 1, asked)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, Exit{exitInterrupted}, ended(ctx, c.log(ctx, "zero", url.Values{}, io.Discard, nil)))
}

func TestLinesHaveTheirJobBeforeThem(t *testing.T) {
	var b strings.Builder
	p := &prefixed{w: &b, mu: new(sync.Mutex), prefix: "[1] "}
	for _, part := range []string{"a", "b\nc\n", "d"} {
		_, err := io.WriteString(p, part)
		require.NoError(t, err)
	}
	p.finish()
	require.Equal(t, "[1] ab\n[1] c\n[1] d\n", b.String())
}

func TestALineWithoutAnEndIsNotKept(t *testing.T) {
	var b strings.Builder
	p := &prefixed{w: &b, mu: new(sync.Mutex), prefix: "[1] "}
	piece := []byte(strings.Repeat("x", 50_000))
	for range 100 {
		_, err := p.Write(piece)
		require.NoError(t, err)
		require.LessOrEqual(t, cap(p.rest), 4*longestLine)
	}
	p.finish()
	require.Equal(t, 100*len(piece), strings.Count(b.String(), "x"))
	for line := range strings.Lines(b.String()) {
		require.Regexp(t, `^\[1\] x+\n$`, line)
	}
}

func TestAnErrorDoesNothingToATerminal(t *testing.T) {
	c := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, "it waits\x1b[2J\x1b]0;title\a \u009b31m\u202e \x9b\r\n\tfor a slot, \u00fc")
	})
	err := c.log(t.Context(), "zero", url.Values{}, io.Discard, nil)
	require.Equal(t, "it waits[2J]0;title 31m \ufffd\n\tfor a slot, ü", Plain(err.Error()))
}

func TestWhatIsMissingIsToldAndNoSuccess(t *testing.T) {
	const waits = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"job 7.2 waits\u001b[2J","reason":"Conflict","details":{"name":"zero","kind":"htcjobs"},"code":409}`
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, proc string)
		only   int
		code   int
		said   string
	}{
		"all are there": {func(w http.ResponseWriter, _ string) {
			_, _ = w.Write(archived(t, "0/", "", "1/", "", "2/", ""))
		}, -1, 0, "now: 3\n"},
		"the one that is wanted is there": {func(w http.ResponseWriter, _ string) { _, _ = w.Write(archived(t, "1/", "")) }, 1, 0, "now: 1\n"},
		"one has not ended": {func(w http.ResponseWriter, proc string) {
			if proc == "2" {
				w.WriteHeader(http.StatusConflict)
				_, _ = io.WriteString(w, waits)
				return
			}
			_, _ = w.Write(archived(t, "0/", "", "1/", ""))
		}, -1, exitIncomplete, "now: 2\njobs whose output is missing: 2\njob 7.2 waits[2J\n"},
		"one ends meanwhile": {func(w http.ResponseWriter, proc string) {
			if proc == "1" {
				_, _ = w.Write(archived(t, "1/", "", "1/x", "late"))
				return
			}
			_, _ = w.Write(archived(t, "0/", "", "2/", ""))
		}, -1, 0, "now: 3\n"},
		"none has ended": {func(w http.ResponseWriter, _ string) {
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, waits)
		}, -1, exitIncomplete, "now: 0\njobs whose output is missing: 0-2\njob 7.2 waits[2J\n"},
		"it is cut off for good": {func(w http.ResponseWriter, from string) {
			if from == "1" {
				http.Error(w, "not any more", http.StatusForbidden)
				return
			}
			_, _ = w.Write(archived(t, "0/", "", "0/x", "all", "1/", "", "1/x", strings.Repeat("b", 5000))[:3500])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, -1, exitIncomplete, "now: 1\njobs whose output is missing: 1-2\nnot any more\n"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := serving(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set(aggregate.HeaderAttempt, "1")
				w.Header().Set(aggregate.HeaderJobs, "3")
				c.answer(w, r.FormValue("proc")+r.FormValue("from"))
			})
			root, err := os.OpenRoot(t.TempDir())
			require.NoError(t, err)
			defer root.Close()
			var said strings.Builder
			into := &landing{root: root, only: c.only, jobs: 3}
			reasons, err := cluster.bring(t.Context(), "zero", 0, into)
			err = conclude(t.Context(), &said, into, reasons, err)
			if c.code == 0 {
				require.NoError(t, err)
			} else {
				require.Equal(t, Exit{c.code}, err)
			}
			require.Equal(t, "jobs whose output is in "+root.Name()+" "+c.said, said.String())
		})
	}
}

func TestNames(t *testing.T) {
	for argument, want := range map[string]string{
		"zero": "zero", "htcjob/zero": "job/zero", "htcjobs/zero": "job/zero", "htcj/zero": "job/zero", "htcjob.htc.cern.ch/zero": "job/zero", "job/zero": "job/zero",
		"scan.v1": "scan.v1", "wf/scan": "wf/scan", "htcworkflow/scan": "wf/scan", "htcw/scan": "wf/scan", "htcworkflow.htc.cern.ch/scan": "wf/scan",
		"htcworkflows.v1alpha1.htc.cern.ch/scan": "wf/scan", "pod/zero": "", "job.batch/zero": "", "": "", "htcjob/": "", "wf/": "", "htcjob/a/b": "", "/": "", "WF/a": "",
	} {
		ref, err := named(argument, kinds...)
		if want == "" {
			require.ErrorContains(t, err, "want the name of an HTCJob or an HTCWorkflow", argument)
			continue
		}
		require.NoError(t, err, argument)
		if ref.kind != nil {
			ref.name = ref.kind.short(ref.name)
		}
		require.Equal(t, want, ref.name)
	}
	ref, err := named("scan", workflowKind)
	require.NoError(t, err)
	require.Equal(t, reference{workflowKind, "scan"}, ref)
	_, err = named("job/scan", workflowKind)
	require.ErrorContains(t, err, `"job/scan": want the name of an HTCWorkflow`)
}

func TestAFileIsTakenApart(t *testing.T) {
	const one = "apiVersion: htc.cern.ch/v1alpha1\nkind: HTCJob\nmetadata: {name: a}\n"
	for name, c := range map[string]struct {
		text  string
		n     int
		wrong string
	}{
		"one":                    {one, 1, ""},
		"two, and empty ones":    {"---\n" + one + "---\n# nothing\n---\n" + one, 2, ""},
		"JSON":                   {`{"apiVersion":"htc.cern.ch/v1alpha1","kind":"HTCJob","metadata":{"generateName":"a-"}}`, 1, ""},
		"none":                   {"# nothing\n", 0, "no HTCJob and no HTCWorkflow"},
		"another kind":           {"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n", 0, "v1 Pod"},
		"a workflow beside it":   {one + "---\n" + strings.Replace(one, "HTCJob", "HTCWorkflow", 1), 2, ""},
		"another version":        {strings.Replace(one, "v1alpha1", "v2", 1), 0, "htc.cern.ch/v2"},
		"without a name":         {"apiVersion: htc.cern.ch/v1alpha1\nkind: HTCJob\n", 0, "without metadata.name"},
		"a key twice":            {one + "kind: HTCJob\n", 0, "already set"},
		"what is no YAML at all": {"a: b: c", 0, "mapping values"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := split([]byte(c.text))
			if c.wrong != "" {
				require.ErrorContains(t, err, c.wrong)
				return
			}
			require.NoError(t, err)
			require.Len(t, got, c.n)
		})
	}
}
