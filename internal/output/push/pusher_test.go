package push

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/workqueue"

	"htc.cern.ch/htcd/internal/admission/fairqueue"
	"htc.cern.ch/htcd/internal/artifact"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/ledger/ledgertest"
	"htc.cern.ch/htcd/internal/output"
)

// world is a Pusher with a real ledger and store, and registries in memory.
type world struct {
	*Pusher
	t        *testing.T
	book     *ledger.Ledger
	pushed   []string         // references, each with its files
	failing  map[string]error // by the beginning of a reference
	before   func()           // called before a reference gets its meaning
	gone     bool             // the HTCJob has been deleted
	login    string           // of the HTCJob
	inTheWay error            // of the last pass
	told     []string         // why something can never be pushed
}

func newWorld(t *testing.T) *world {
	t.Helper()
	book := ledgertest.Open(t)
	w := &world{t: t, book: book, failing: map[string]error{}}
	w.Pusher = New(Options{
		Store: output.Store{
			Root: t.TempDir(),
		}, Workers: 1, Ledger: book, Registries: w, Credentials: w.credentials, Observer: w, Log: zerolog.Nop(),
		Queue: fairqueue.New(workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Hour, time.Hour)),
	})
	t.Cleanup(w.Queue.ShutDown)
	return w
}

func (w *world) credentials(context.Context, Item) ([][]byte, error) {
	if w.gone {
		return nil, ErrGone
	}
	switch w.login {
	case "":
		return nil, nil
	case "missing":
		return nil, errors.New("there is no Secret")
	}
	return [][]byte{[]byte(w.login)}, nil
}

func (w *world) Push(
	_ context.Context,
	to artifact.Target,
	files []artifact.Upload,
	last func(string) error,
	_ ...[]byte,
) (artifact.Pushed, error) {
	reference := to.Reference
	text := reference
	for _, f := range files {
		from, err := f.Open()
		if err != nil {
			return artifact.Pushed{}, err
		}
		content, err := io.ReadAll(from)
		require.NoError(w.t, errors.Join(err, from.Close()))
		text += fmt.Sprintf(" %s=%s", f.Name, content)
	}
	for prefix, err := range w.failing {
		if strings.HasPrefix(reference, prefix) {
			return artifact.Pushed{}, err
		}
	}
	if len(files) == 0 {
		return artifact.Pushed{}, &artifact.Unusable{Reason: artifact.ReasonUnsuitable, Message: "it has no files"}
	}
	if w.before != nil {
		w.before()
	}
	if err := last("sha256:of " + reference); err != nil {
		return artifact.Pushed{}, err
	}
	require.True(w.t, w.Naming("default/one"))
	w.pushed = append(w.pushed, text)
	return artifact.Pushed{Digest: "sha256:of " + reference, Size: int64(len(files))}, nil
}

func (w *world) Passed(_ string, err error) { w.inTheWay = err }

func (w *world) Pushed(ledger.Run, int64) {}

func (w *world) NotPushed(_ ledger.Run, why string) { w.told = append(w.told, why) }

// fetched adds an attempt whose jobs have succeeded and left the files a and d/b.
func (w *world) fetched(attempt, jobs int, to ...string) ledger.Run {
	w.t.Helper()
	run := ledger.Run{
		UID:       "uid",
		Attempt:   attempt,
		Namespace: "default",
		Name:      "one",
		State:     ledger.Submitted,
		Cluster:   attempt,
		Procs:     jobs,
	}
	var all []ledger.Destination
	for i := 0; i < len(to); i += 2 {
		all = append(all, ledger.Destination{Number: i / 2, Path: to[i], Artifact: to[i+1]})
	}
	require.NoError(w.t, w.book.Write(w.t.Context(), func(tx *ledger.Tx) error {
		err := errors.Join(tx.InsertRun(run), tx.InsertProcs(run, jobs), tx.SetDestinations("uid", attempt, all))
		for proc := range jobs {
			p := ledger.Proc{
				UID:       "uid",
				Attempt:   attempt,
				Proc:      proc,
				Status:    ledger.StatusSucceeded,
				JobStatus: 4,
				Fetched:   ledger.IsFetched,
			}
			err = errors.Join(err, tx.UpdateProc(p), tx.ExpectWritten("uid", attempt, proc, ""))
		}
		return err
	}))
	for proc := range jobs {
		dir, err := w.Store.ProcDir(output.Attempt{Namespace: "default", Name: "one", Number: attempt}, proc)
		require.NoError(w.t, err)
		for _, name := range []string{"a", "d/b"} {
			require.NoError(w.t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
			require.NoError(w.t, os.WriteFile(filepath.Join(dir, name), fmt.Append(nil, proc), 0o600))
		}
	}
	return run
}

// pass does what there is to do now.
func (w *world) pass() {
	w.Queue.Add("default/one")
	for w.Queue.Len() > 0 {
		key, _ := w.Queue.Get()
		w.Pusher.Push(w.t.Context(), key)
		w.Queue.Done(key)
	}
}

func (w *world) counts(attempt int) (n ledger.PushCounts) {
	w.t.Helper()
	require.NoError(
		w.t,
		w.book.Read(w.t.Context(), func(tx *ledger.Tx) (err error) { n, err = tx.Pushes("uid", attempt); return err }),
	)
	return n
}

func TestEachProcsArtifactsArePushedOnce(t *testing.T) {
	w := newWorld(t)
	w.fetched(1, 2, "a", "r/m:{proc}", "*", "r/all:{proc}")
	require.NoError(t, w.Resume(t.Context()))
	require.Equal(t, 1, w.Queue.Len(), "what an earlier htcd left undone")
	w.pass()
	require.NoError(t, w.inTheWay)
	require.False(t, w.Naming("default/one"))
	require.Equal(t, []string{"r/m:0 a=0", "r/m:1 a=1", "r/all:0 a=0 d/b=0", "r/all:1 a=1 d/b=1"}, w.pushed)
	w.pass()
	require.Len(t, w.pushed, 4)
	require.Equal(t, ledger.PushCounts{Any: true, Pushed: 4}, w.counts(1))
	require.NoError(t, w.book.Read(t.Context(), func(tx *ledger.Tx) error {
		written, err := tx.Written("uid", 1, 1)
		require.Equal(t, "sha256:of r/m:0", written[0].Digest)
		require.EqualValues(t, 1, written[0].Size)
		return err
	}))
}

func TestACorrectedLoginIsUsedBeforeTheBackOffEnds(t *testing.T) {
	w := newWorld(t)
	w.fetched(1, 1, "a", "r/m:v1")
	w.failing["r"] = &artifact.Unusable{Reason: artifact.ReasonForbidden, Message: "denied"}
	w.pass()
	w.look(t.Context())
	require.Zero(t, w.Queue.Len(), "it has no login")
	for _, login := range []string{"missing", "wrong"} {
		w.login = login
		w.pass()
		require.Error(t, w.inTheWay)
		w.look(t.Context())
		require.Zero(t, w.Queue.Len(), "nothing has changed")
	}
	w.login = "right"
	w.look(t.Context())
	require.Equal(t, 1, w.Queue.Len())
	delete(w.failing, "r")
	w.pass()
	require.NoError(t, w.inTheWay)
	w.login = "another"
	w.look(t.Context())
	require.Zero(t, w.Queue.Len(), "there is nothing left to push")
}

func TestNothingIsPushedAgainForOneThatWasDeleted(t *testing.T) {
	w := newWorld(t)
	w.fetched(1, 1, "a", "r/m:v1")
	w.failing["r"] = &artifact.Unusable{Reason: artifact.ReasonForbidden, Message: "denied"}
	w.login = "wrong"
	w.pass()
	w.gone = true
	w.look(t.Context())
	require.Zero(t, w.Queue.Len())
}

func TestWhatFailsDelaysNothingElseAndIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.fetched(1, 3, "none", "r/none:{proc}", "a", "away/m:{proc}", "d", "r/d:{proc}")
	w.failing["away"] = &artifact.Unusable{Reason: artifact.ReasonUnreachable, Message: "away"}
	w.pass()
	require.Equal(t, []string{"r/d:0 d/b=0", "r/d:1 d/b=1", "r/d:2 d/b=2"}, w.pushed)
	require.EqualError(t, w.inTheWay, "a of job 1.0 to away/m:0: away", "and the others are not tried in this pass")
	require.Len(t, w.told, 3)
	require.Equal(t, "none of job 1.0 to r/none:0: it has no files", w.told[0])
	require.Equal(t, ledger.PushCounts{Any: true, Unpushed: 3, NotPushed: 3, Note: w.told[0]}, w.counts(1))

	delete(w.failing, "away")
	w.pass()
	require.NoError(t, w.inTheWay)
	require.Len(t, w.pushed, 6)
	require.Equal(t, ledger.PushCounts{Any: true, Pushed: 6, NotPushed: 3, Note: w.told[0]}, w.counts(1))
}

func TestOnlyTheNewestAttemptOfWhatExistsIsPushed(t *testing.T) {
	w := newWorld(t)
	w.fetched(1, 1, "a", "r/m:v")
	w.gone = true
	w.pass()
	require.Empty(t, w.pushed)
	require.NoError(t, w.inTheWay)
	w.gone = false

	w.before = func() { w.fetched(2, 1, "a", "r/m:v") } // while it is being pushed
	w.pass()
	require.Empty(t, w.pushed)
	w.before = nil
	w.pass()
	require.Equal(t, []string{"r/m:v a=0"}, w.pushed)
	require.Equal(t, 1, w.counts(1).Unpushed)
	require.Equal(t, 1, w.counts(2).Pushed)

	w.fetched(3, 1, "a", "r/m:v")
	w.before = func() { // it is deleted
		require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.DeleteRuns("uid") }))
		require.NoError(t, w.Store.Drop("default", "one"))
	}
	w.pass()
	w.pass()
	require.Len(t, w.pushed, 1)
	require.NoError(t, w.inTheWay)
}

func TestOutputThatIsNoLongerHereCannotBePushed(t *testing.T) {
	w := newWorld(t)
	w.fetched(1, 1, "a", "r/m:v")
	require.NoError(t, w.Store.Drop("default", "one"))
	w.pass()
	require.Equal(t, []string{"a of job 1.0 to r/m:v: it has no files"}, w.told)
}

func TestReferencesToWhichNothingCanBePushedAreRefused(t *testing.T) {
	allowed, err := artifact.ParseRegistries([]string{"r.example.org"})
	require.NoError(t, err)
	to := func(artifacts ...string) (all []ledger.Destination) {
		for i, a := range artifacts {
			all = append(all, ledger.Destination{Number: i, Path: fmt.Sprint("p", i), Artifact: a})
		}
		return all
	}
	for name, c := range map[string]struct {
		to    []ledger.Destination
		procs int
		words string
	}{
		"one":                    {to("r.example.org/m:v1"), 1, ""},
		"several":                {to("r.example.org/m:v{proc}", "r.example.org/n/{proc}:v1"), 100, ""},
		"not for several":        {to("r.example.org/m:v1"), 2, `spec.outputs: p0: artifact "r.example.org/m:v1": expected {proc} in it: each of 2 jobs would replace the files of the others`},
		"the same":               {to("r.example.org/m:v1", "r.example.org/m:v1"), 1, "spec.outputs: p1: artifact \"r.example.org/m:v1\": another output has the same"},
		"elsewhere":              {to("x.example.org/m:v1"), 1, "the registry x.example.org is not one that the administrator of htcd allows"},
		"no tag":                 {to("r.example.org/m"), 1, "expected a tag or a digest"},
		"a digest":               {to("r.example.org/m@sha256:" + strings.Repeat("0", 64)), 1, "expected a tag at its end"},
		"an unknown placeholder": {to("r.example.org/m:{uid}"), 1, "expected an artifact such as"},
		"too long for one proc":  {to("r.example.org/m:" + strings.Repeat("a", 127) + "{proc}"), 11, "expected an artifact such as"},
		"a URL as well":          {[]ledger.Destination{{Path: "p", URL: "https://a/b", Artifact: "r.example.org/m:v1"}}, 1, "not to both"},
		"only a URL":             {[]ledger.Destination{{Path: "p", URL: "https://a/b"}}, 1, ""},
	} {
		err := Check(allowed, true, c.to, c.procs)
		if c.words == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, c.words, name)
		}
	}
	require.ErrorContains(t, Check(allowed, false, to("r.example.org/m:v1"), 1), "this htcd keeps no output of jobs")
}
