package job

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/target/backend"
)

// sources are ConfigMaps, by name, with one key "k"; and what the input file held at each submission.
type sources struct {
	backend.Schedd
	maps map[string]string
	sent []string
}

func (s *sources) ConfigMap(_ context.Context, _, name string) (*corev1.ConfigMap, error) {
	text, is := s.maps[name]
	if !is {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
	}
	return &corev1.ConfigMap{Data: map[string]string{"k": text}}, nil
}

func (s *sources) Submit(ctx context.Context, id schedd.Identity, dir string) (condor.Cluster, error) {
	text, err := os.ReadFile(filepath.Join(dir, submit.InputsDir, "shared", "in"))
	switch {
	case err == nil:
		s.sent = append(s.sent, string(text))
	case !errors.Is(err, fs.ErrNotExist):
		return condor.Cluster{}, err
	}
	return s.Schedd.Submit(ctx, id, dir)
}

// newWorldWithInputs returns a world with those sources, whose schedd shows what is sent.
func newWorldWithInputs(t *testing.T) (*world, *sources) {
	s := &sources{maps: map[string]string{}}
	w := newWorldWithOutput(t, func(o *Options) { o.ConfigMaps = s })
	s.Schedd = w.schedd
	w.asks(s)
	return w, s
}

func input(in v1alpha1.Input) func(*v1alpha1.HTCJob) {
	in.Name = "in"
	return func(job *v1alpha1.HTCJob) { job.Spec.Inputs = []v1alpha1.Input{in} }
}

var fromMap = input(v1alpha1.Input{ConfigMapKeyRef: &v1alpha1.KeyRef{Name: "fit", Key: "k"}})

func fromJob(name string) func(*v1alpha1.HTCJob) {
	return input(v1alpha1.Input{JobRef: &v1alpha1.JobRef{Name: name, Path: "made", Proc: new(intstr.FromInt(0))}})
}

// ready returns the condition InputsReady as "status reason: message".
func (w *world) ready(name string) string {
	c := meta.FindStatusCondition(w.job(name).Status.Conditions, v1alpha1.ConditionInputsReady)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

func TestAnHTCJobWaitsForItsInputsAndContinues(t *testing.T) {
	w, s := newWorldWithInputs(t)
	job := w.apply(htcjob("one", fromMap))
	require.Equal(t, v1alpha1.PhasePending, job.Status.Phase)
	require.Equal(t, "ConfigMapNotFound", job.Status.Reason)
	require.Equal(t, "False ConfigMapNotFound: in: there is no configmap fit in this namespace", w.ready("one"))
	w.later(time.Minute)
	require.Zero(t, w.schedd.Calls(scheddtest.Submit))
	require.Len(t, w.events, 1, "it is news once")
	s.maps["fit"] = "first"
	w.later(time.Minute)
	require.Equal(t, []string{"first"}, s.sent)
	digest := w.job("one").Status.InputsDigest
	require.Equal(t, digest, w.run("one").InputsDigest)
	require.Equal(t, "True Read: the inputs have been read; their digest is "+digest, w.ready("one"))
	require.NoDirExists(t, w.run("one").TempDir, "the schedd has them")

	s.maps["fit"] = "second"
	w.later(time.Minute)
	require.Equal(t, digest, w.job("one").Status.InputsDigest, "taken once")
	require.Equal(t, []string{"first"}, s.sent)

	require.Empty(t, w.apply(htcjob("none")).Status.InputsDigest)
	require.Empty(t, w.ready("none"))
}

func TestWhatInputsReadySaysOfCyclesAndURLs(t *testing.T) {
	w, _ := newWorldWithInputs(t)
	w.apply(htcjob("first", fromJob("second")))
	require.Equal(t, "False HTCJobNotFound: in: there is no HTCJob second in this namespace", w.ready("first"))
	w.edit("first", func(spec *v1alpha1.HTCJobSpec) { spec.Inputs[0].JobRef.Name = "first" })
	w.later(time.Minute)
	require.Contains(t, w.ready("first"), "False Refused: spec.inputs: in: the jobRef names this HTCJob itself")

	w.Site.AllowSchemes = []string{"https"}
	job := w.apply(htcjob("url", input(v1alpha1.Input{URL: "https://store.example.org/x"})))
	require.Equal(t, []string{"1.0"}, job.Status.JobID)
	require.Empty(t, w.ready("url")+job.Status.InputsDigest, "the execute nodes read it")
}

// Whatever interrupts a submission, what is sent is what was read first; only if that is lost, and nothing was sent, it
// is read again.
func TestWhatIsSentAgainHasTheSameInputs(t *testing.T) {
	for _, lost := range []bool{false, true} {
		w, s := newWorldWithInputs(t)
		s.maps["fit"] = "first"
		w.schedd.Fail(scheddtest.Submit, scheddtest.Fault{Err: errBroken})
		w.apply(htcjob("one", fromMap))
		first := w.run("one")
		require.Equal(t, ledger.Intent, first.State)
		require.NotEmpty(t, first.InputsDigest)
		left, err := os.ReadDir(first.TempDir)
		require.NoError(t, err)
		for _, entry := range left {
			require.True(t, inputs.Owns(entry.Name()), "%s is rendered again", entry.Name())
		}
		s.maps["fit"] = "second"
		if lost {
			require.NoError(t, os.RemoveAll(first.TempDir))
		}
		w.restart()
		for range 3 {
			w.later(5 * time.Second)
		}
		want := []string{"first", "first"}
		if lost {
			want = []string{"first", "second"}
		}
		require.Equal(t, want, s.sent)
		require.Equal(t, ledger.Submitted, w.run("one").State)
		require.Equal(t, lost, w.run("one").InputsDigest != first.InputsDigest)
		require.Equal(t, w.run("one").InputsDigest, w.job("one").Status.InputsDigest)
	}
}

func TestWhatIsSentAgainNeedsNoSecondRoomForItsInputs(t *testing.T) {
	w, s := newWorldWithInputs(t)
	w.Staged.Volume = func() (free, size output.Room, err error) {
		size = output.Room{Bytes: 4 << 20, Files: 1 << 20}
		return size.Minus(output.Taken(w.Staging)), size, nil
	}
	s.maps["fit"] = strings.Repeat("x", 2<<20)
	w.schedd.Fail(scheddtest.Submit, scheddtest.Fault{Err: errBroken})
	w.apply(htcjob("one", fromMap))
	require.Equal(t, 1, len(s.sent))
	for range 3 {
		w.later(5 * time.Second)
	}
	require.Equal(t, 2, len(s.sent))
}

func TestTheLedgerLostTheDigestStays(t *testing.T) {
	w, s := newWorldWithInputs(t)
	s.maps["fit"] = "first"
	digest := w.apply(htcjob("one", fromMap)).Status.InputsDigest
	require.NotEmpty(t, digest)
	require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.DeleteRuns("uid-one") }))
	w.restart()
	w.later(time.Minute)
	require.Equal(t, digest, w.run("one").InputsDigest)
	require.Equal(t, digest, w.job("one").Status.InputsDigest)
	require.Len(t, s.sent, 1)
}

func TestAnHTCJobContinuesWhenTheOutputOfAnotherIsHere(t *testing.T) {
	w, s := newWorldWithInputs(t)
	job := w.apply(htcjob("fit", fromJob("prep")))
	require.Equal(t, "HTCJobNotFound", job.Status.Reason)
	prep := w.apply(htcjob("prep"))
	w.sourceChanged(nil, prep)
	w.settle()
	require.Equal(t, "False HTCJobNotEnded: in: the HTCJob prep has not ended", w.ready("fit"))
	require.NotContains(t, strings.Join(w.events, " "), "HTCJobNotEnded", "that is usual")
	w.schedd.Leaves("1.0", map[string]string{"made": "histogram"})
	w.completed(1)
	w.crosscheck()
	w.sourceChanged(prep, w.job("prep"))
	w.settle()
	require.Equal(t, []string{"histogram"}, s.sent)
	require.Equal(t, v1alpha1.PhaseIdle, w.job("fit").Status.Phase)
	require.Empty(t, w.waiters.Of("default/prep"))
}

func TestAnHTCJobWaitsForTheRerunOfOneThatHasFailed(t *testing.T) {
	for name, waits := range map[string]bool{"that had failed before": false, "that fails while it waits": true} {
		t.Run(name, func(t *testing.T) {
			w, s := newWorldWithInputs(t)
			if waits {
				w.apply(htcjob("fit", fromJob("prep")))
			}
			prep := w.apply(htcjob("prep"))
			w.completed(1, 3)
			w.crosscheck()
			if !waits {
				w.apply(htcjob("fit", fromJob("prep")))
			}
			w.sourceChanged(prep, w.job("prep"))
			w.settle()
			job := w.job("fit")
			require.Equal(t, v1alpha1.PhasePending, job.Status.Phase)
			require.Equal(t, "HTCJobFailed", job.Status.Reason)
			require.Contains(t, w.ready("fit"), "False HTCJobFailed: in: the HTCJob prep has failed: 1 of 1 job failed")
			w.later(time.Hour)
			require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))

			prep = w.annotate("prep", v1alpha1.RerunAnnotation, "again")
			w.schedd.Leaves("2.0", map[string]string{"made": "histogram"})
			w.completed(2)
			w.crosscheck()
			w.sourceChanged(prep, w.job("prep"))
			w.settle()
			require.Equal(t, []string{"histogram"}, s.sent)
			require.Equal(t, v1alpha1.PhaseIdle, w.job("fit").Status.Phase)
		})
	}
}

// Inputs that were staged for an attempt that did not begin are removed.
func TestInputsAreNotLeftBehind(t *testing.T) {
	w, s := newWorldWithInputs(t)
	s.maps["fit"] = "first"
	w.Site.MaxOpen = 1
	w.apply(htcjob("one", fromMap))
	job := w.apply(htcjob("two", fromMap))
	require.Equal(t, "NamespaceLimit", job.Status.Reason)
	require.Empty(t, w.ready("two"))
	left, err := filepath.Glob(filepath.Join(w.Staging, "uid-two-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestACycleIsRefused(t *testing.T) {
	w, _ := newWorldWithInputs(t)
	w.apply(htcjob("a", fromJob("b")))
	job := w.apply(htcjob("b", fromJob("a")))
	require.Equal(t, "Refused", job.Status.Reason)
	c := meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionFailed)
	require.Contains(t, c.Message, "b -> a -> b")
	w.later(time.Minute)
	require.Equal(t, "Refused", w.job("a").Status.Reason)
}

func TestSecretInputsAreNotKept(t *testing.T) {
	w, s := newWorldWithInputs(t)
	w.JobSecrets = secretSource{}
	w.Answering.Schedd = s
	w.apply(htcjob("one", input(v1alpha1.Input{SecretKeyRef: &v1alpha1.KeyRef{Name: "db", Key: "pass"}})))
	require.Equal(t, []string{"hush"}, s.sent)
	w.schedd.Leaves("1.0", map[string]string{"in": "hush, hush", "made": "x"})
	w.completed(1)
	w.crosscheck()
	require.Equal(t, "x", w.kept("one", 1, 0, "made"))
	require.Equal(t, "absent", w.kept("one", 1, 0, "in"))
}

type secretSource struct{}

func (secretSource) Read(_ context.Context, _, name, key string, _ int) ([]byte, error) {
	if name != "db" || key != "pass" {
		return nil, errors.New("unexpected")
	}
	return []byte("hush"), nil
}

func (secretSource) Version(context.Context, string, string) (string, error) { return "1", nil }
