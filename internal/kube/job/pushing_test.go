package job

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/artifact"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

func sentTo(url string) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) {
		job.Spec.Outputs = []v1alpha1.Output{{Path: "small"}, {Path: "big.root", URL: url}}
	}
}

func TestWhatJobsHaveWrittenElsewhereIsListed(t *testing.T) {
	allowed := func(o *Options) { o.Site.AllowSchemes = []string{"https"} }
	w := newWorldWithOutput(t, allowed)
	w.apply(htcjob("one", queueOf(3), sentTo("https://s/{namespace}/{name}/{attempt}/{proc}")))
	w.schedd.Leaves(
		"1.0",
		map[string]string{
			".htcd-out/0/small": "s",
			".htcd-out/0.sent":  "1 12\n" + strings.Repeat("a", 64) + "  1\n0 5\n",
		},
	)
	w.schedd.Leaves("1.2", map[string]string{".htcd-out/0/small": "s"})
	w.completed(1, 0, 3)
	require.Empty(t, w.job("one").Status.Outputs)
	w.crosscheck()
	want := []v1alpha1.WrittenOutput{
		{
			Path:   "big.root",
			Proc:   0,
			URL:    "https://s/default/one/1/0",
			Size:   new(int64(12)),
			Digest: "sha256:" + strings.Repeat("a", 64),
		},
		{Path: "big.root", Proc: 2, URL: "https://s/default/one/1/2"},
	}
	require.Equal(t, want, w.job("one").Status.Outputs)
	require.Nil(t, meta.FindStatusCondition(w.job("one").Status.Conditions, v1alpha1.ConditionOutputsPushed))

	// The ledger is lost.
	require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.DeleteRuns("uid-one") }))
	w.restart()
	w.settle()
	require.Equal(t, 1, w.run("one").Attempt)
	require.Equal(t, want, w.job("one").Status.Outputs)
	w.later(time.Hour)
	require.Equal(t, want, w.job("one").Status.Outputs)

	job := w.job("one").DeepCopy()
	job.Spec.Script.Source, job.Generation = "exit 1\n", 2
	w.write(job)
	w.settle()
	require.Empty(t, w.job("one").Status.Outputs, "the next attempt has written nothing yet")
}

func TestTheListOfOutputsIsBounded(t *testing.T) {
	w := newWorldWithOutput(t, func(o *Options) { o.Site.AllowSchemes = []string{"https"} })
	w.apply(htcjob("many", queueOf(120), sentTo("https://s/{proc}")))
	w.apply(htcjob("long", queueOf(120), sentTo("https://s/{proc}/"+strings.Repeat("a", 1000))))
	w.completed(1)
	w.completed(2)
	w.crosscheck()
	require.Len(t, w.job("many").Status.Outputs, 100)
	require.Len(t, w.job("long").Status.Outputs, 64)
}

// registries takes what is pushed, unless err says otherwise.
type registries struct {
	err    error
	pushed []string
	shown  int // credentials
}

func (r *registries) Push(
	_ context.Context,
	to artifact.Target,
	files []artifact.Upload,
	last func(string) error,
	configs ...[]byte,
) (artifact.Pushed, error) {
	r.shown = len(configs)
	if r.err != nil {
		return artifact.Pushed{}, r.err
	}
	r.pushed = append(r.pushed, fmt.Sprintf("%s: %d", to.Reference, len(files)))
	return artifact.Pushed{Digest: "sha256:m", Size: 7}, last("sha256:m")
}

func pushedTo(reference string, credentials ...v1alpha1.Credential) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) {
		job.Spec.Outputs = []v1alpha1.Output{{Path: "model", Artifact: reference}}
		job.Spec.Credentials = credentials
	}
}

// pushes returns the condition OutputsPushed as "status reason: message".
func (w *world) pushes(name string) string {
	w.t.Helper()
	c := meta.FindStatusCondition(w.job(name).Status.Conditions, v1alpha1.ConditionOutputsPushed)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

func newWorldWithRegistries(t *testing.T, change ...func(*Options)) (*world, *registries) {
	r := &registries{}
	allowed, err := artifact.ParseRegistries([]string{"r.example.org"})
	require.NoError(t, err)
	return newWorldWithOutput(
		t,
		append(change, func(o *Options) { o.Registries, o.Site.Inputs.Registries = r, allowed })...), r
}

func TestArtifactsArePushedOnceTheOutputIsHere(t *testing.T) {
	w, r := newWorldWithRegistries(t)
	w.apply(htcjob("one", queueOf(2), pushedTo("r.example.org/{namespace}/{name}:{attempt}-{proc}")))
	require.Contains(t, w.pushes("one"), "False NotEnded: ")
	for _, id := range []string{"1.0", "1.1"} {
		w.schedd.Leaves(id, map[string]string{".htcd-out/0/model": "weights"})
	}
	w.completed(1)
	r.err = &artifact.Unusable{Reason: artifact.ReasonForbidden, Message: "the registry does not let htcd push it"}
	w.crosscheck()
	const why = "not pushed yet: model of job 1.0 to r.example.org/default/one:1-0: the registry does not let htcd push it"
	require.Equal(t, "False ArtifactForbidden: "+why, w.pushes("one"))
	require.Contains(t, w.events, "Warning ArtifactForbidden: "+why)
	require.Equal(t, v1alpha1.PhaseSucceeded, w.job("one").Status.Phase)
	require.Equal(t, "True Fetched: the output of 2 jobs is here", w.fetched("one"))
	require.Empty(t, w.job("one").Status.Outputs)

	// It is restarted, and then the ledger is lost.
	w.restart()
	require.NoError(t, w.pusher.Resume(t.Context()))
	require.Equal(t, 1, w.pusher.Queue.Len())
	require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.DeleteRuns("uid-one") }))
	w.restart()
	r.err = nil
	w.settle()
	w.crosscheck()
	w.later(reconciler.BetweenWrites)
	require.Equal(t, "True Pushed: 2 artifacts are pushed", w.pushes("one"))
	require.Equal(t, []string{"r.example.org/default/one:1-0: 1", "r.example.org/default/one:1-1: 1"}, r.pushed)
	require.Equal(t, []v1alpha1.WrittenOutput{
		{Path: "model", Proc: 0, Artifact: "r.example.org/default/one:1-0", Size: new(int64(7)), Digest: "sha256:m"},
		{Path: "model", Proc: 1, Artifact: "r.example.org/default/one:1-1", Size: new(int64(7)), Digest: "sha256:m"},
	}, w.job("one").Status.Outputs)

	require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.DeleteRuns("uid-one") }))
	w.restart()
	w.settle()
	w.crosscheck()
	require.Len(t, w.job("one").Status.Outputs, 2)
	require.Equal(t, "True Pushed: 2 artifacts are pushed", w.pushes("one"))
	require.Len(t, r.pushed, 2)
}

func TestAnArtifactThatCannotBePushedIsRefused(t *testing.T) {
	w, _ := newWorldWithRegistries(t)
	for name, c := range map[string]struct{ to, words string }{
		"elsewhere": {"x.example.org/m:v{proc}", "spec.outputs: model: the registry x.example.org is not one that the administrator of htcd allows"},
		"several":   {"r.example.org/m:v1", "expected {proc} in it: each of 2 jobs would replace the files of the others"},
	} {
		job := w.apply(htcjob(name, queueOf(2), pushedTo(c.to)))
		require.Equal(t, "Refused", job.Status.Reason)
		require.Contains(t, meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionFailed).Message, c.words)
	}
}

func TestWhatAJobLeftBeforeItRanAgainAndFailedIsNotAwaited(t *testing.T) {
	w, r := newWorldWithRegistries(t)
	w.apply(htcjob("one", queueOf(2), pushedTo("r.example.org/{namespace}/{name}:{attempt}-{proc}")))
	again := w.schedd.Jobs()[0]
	for _, id := range []string{"1.0", "1.1"} {
		w.schedd.Leaves(id, map[string]string{".htcd-out/0/model": "weights"})
	}
	r.err = &artifact.Unusable{Reason: artifact.ReasonForbidden, Message: "the registry does not let htcd push it"}
	w.completed(1)
	w.crosscheck()
	require.Contains(t, w.pushes("one"), "False ArtifactForbidden: ")

	again.Status = condor.Running
	w.schedd.Put(again)
	w.reconcile(ReconcileOptions{})
	w.schedd.Complete(1, 0, 3)
	w.crosscheck()
	r.err = nil
	w.restart()
	require.NoError(t, w.pusher.Resume(t.Context()))
	w.settle()
	w.later(reconciler.BetweenWrites)
	require.Equal(t, []string{"r.example.org/default/one:1-1: 1"}, r.pushed)
	require.Contains(t, w.pushes("one"), "True Pushed: ")
	require.Equal(t, &v1alpha1.Partial{Procs: "0", Succeeded: 1}, w.again("one", "a", "failed").Status.Partial)
}
