package job

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/artifact"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

// registry has the artifact group/model:v1, of one file.
type registry struct {
	at     string
	blobs  atomic.Int64                                       // how often the file was asked for
	before func(w http.ResponseWriter, request *http.Request) // the file is sent
}

func newRegistry(t *testing.T) *registry {
	const kind = "application/vnd.oci.image.manifest.v1+json"
	const file = "weights"
	sum := func(text string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))) }
	manifest := fmt.Sprintf(
		`{"schemaVersion":2,"config":{"mediaType":"x/y","digest":%q,"size":0},"layers":[{"mediaType":"x/y","digest":%q,"size":%d}]}`,
		sum(""),
		sum(file),
		len(file),
	)
	r := &registry{before: func(http.ResponseWriter, *http.Request) {}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", kind)
		if strings.Contains(request.URL.Path, "/manifests/") {
			_, _ = w.Write([]byte(manifest))
			return
		}
		r.blobs.Add(1)
		r.before(w, request)
		_, _ = w.Write([]byte(file))
	}))
	t.Cleanup(s.Close)
	r.at = strings.TrimPrefix(s.URL, "http://")
	return r
}

// newWorldWithArtifacts returns a world with a registry, and a change that makes an HTCJob need its artifact.
func newWorldWithArtifacts(t *testing.T) (*world, *sources, *registry, func(*v1alpha1.HTCJob)) {
	r := newRegistry(t)
	allowed, err := artifact.ParseRegistries([]string{"http://" + r.at})
	require.NoError(t, err)
	s := &sources{maps: map[string]string{}}
	w := newWorldWithOutput(t, func(o *Options) {
		o.ConfigMaps, o.Artifacts, o.Site.Inputs.Registries = s, artifact.NewFetcher(allowed), allowed
	})
	s.Schedd = w.schedd
	w.asks(s)
	return w, s, r, input(v1alpha1.Input{Artifact: r.at + "/group/model:v1"})
}

func TestAFetchEndsWhenItsHTCJobIsDeletedEditedOrSuspended(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.HTCJob)
		sent   []string
	}{
		"deleted":   {func(job *v1alpha1.HTCJob) { job.DeletionTimestamp = new(metav1.Now()) }, nil},
		"suspended": {func(job *v1alpha1.HTCJob) { job.Generation++; job.Spec.Suspend = true }, nil},
		"edited":    {func(job *v1alpha1.HTCJob) { job.Generation++; job.Spec.Script.Source = "true\n" }, []string{"weights"}},
		"run again": {func(job *v1alpha1.HTCJob) { job.Annotations = map[string]string{v1alpha1.RerunAnnotation: "now"} }, []string{"weights"}},
		"vanished":  {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w, s, r, needs := newWorldWithArtifacts(t)
			r.before = func(answer http.ResponseWriter, request *http.Request) {
				r.before = func(http.ResponseWriter, *http.Request) {}
				_, _ = answer.Write([]byte("wei"))
				answer.(http.Flusher).Flush()
				was := w.job("one")
				if c.change == nil {
					_ = w.store.Delete(was)
					w.Controller.Handler().OnDelete(was)
				} else {
					is := was.DeepCopy()
					is.ResourceVersion += "0"
					c.change(is)
					w.write(is)
					w.Controller.Handler().OnUpdate(was, is)
				}
				<-request.Context().Done() // nothing else would end this fetch soon
			}
			w.apply(htcjob("one", needs))
			require.Equal(t, c.sent, s.sent)
			require.EqualValues(t, 1+len(c.sent), r.blobs.Load())
			require.NotContains(t, strings.Join(w.events, "; "), "Warning")
			left, err := os.ReadDir(w.Staging)
			require.NoError(t, err)
			require.Empty(t, left)

			// The place of a fetch that has ended is given back soon after.
			for w.apply(htcjob("another", needs)); len(s.sent) == len(c.sent) && t.Context().Err() == nil; w.later(reconciler.LastRetry) {
				ready := meta.FindStatusCondition(w.job("another").Status.Conditions, v1alpha1.ConditionInputsReady)
				require.Equal(t, "ArtifactWaits", ready.Reason, "the registry was not taken for silent")
			}
			require.Len(t, s.sent, len(c.sent)+1)
		})
	}
}

func TestNothingIsFetchedWithoutRoom(t *testing.T) {
	w, s, r, needs := newWorldWithArtifacts(t)
	w.Site.MaxOpen = 1
	w.apply(htcjob("running", fromMap))
	s.maps["fit"] = "first"
	w.later(reconciler.LastRetry)
	require.Equal(t, v1alpha1.PhaseIdle, w.job("running").Status.Phase)
	for range 3 {
		w.apply(htcjob("waits", needs))
		w.later(reconciler.LastRetry)
	}
	require.Equal(t, "NamespaceLimit", submitted(w.job("waits")).Reason)
	require.Zero(t, r.blobs.Load())
	require.NoError(t, w.ends("running", 0, 0))
	w.crosscheck()
	require.Equal(t, []string{"first", "weights"}, s.sent)
	require.EqualValues(t, 1, r.blobs.Load())
	require.Equal(t, 2, w.schedd.Calls(scheddtest.Submit))
}

func TestAnHTCJobSaysWhyItsArtifactIsNotFetchedYetAndIsSentInItsTurn(t *testing.T) {
	w, s, r, needs := newWorldWithArtifacts(t)
	reference := r.at + "/group/model:v1"
	fetching, end := context.WithCancel(t.Context())
	_, err := w.Artifacts.For("default/another", []string{reference}).Resolve(fetching, reference)
	require.NoError(t, err)
	w.apply(htcjob("one", needs))
	ready := meta.FindStatusCondition(w.job("one").Status.Conditions, v1alpha1.ConditionInputsReady)
	require.Equal(t, artifact.ReasonWaits, ready.Reason)
	require.Contains(t, ready.Message, "it waits for its turn: htcd fetches for one HTCJob of a namespace at a time")
	require.Empty(t, w.events)
	end()
	require.Eventually(t, func() bool { w.settle(); return len(s.sent) == 1 }, 10*time.Second, time.Millisecond)
	require.Equal(t, []string{"weights"}, s.sent)
	require.True(
		t,
		kind{w.Controller}.Line(t.Context(), reconciler.Submitting, "default/one").Fetches,
		"no other submission waits for a registry",
	)
	w.apply(htcjob("plain"))
	require.False(t, kind{w.Controller}.Line(t.Context(), reconciler.Submitting, "default/plain").Fetches)
}
