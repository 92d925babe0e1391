package outage

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// slowRegistry is a way to the lab's registry on which files come one byte after the other while it is slow. They would
// take longer than any test.
type slowRegistry struct {
	*httptest.Server
	slow         atomic.Bool
	begun, ended atomic.Int64 // slow answers
}

func newSlowRegistry(t *testing.T, at string) *slowRegistry {
	s := &slowRegistry{}
	through := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: at})
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if !s.slow.Load() || !strings.Contains(request.URL.Path, "/blobs/") {
			through.ServeHTTP(w, request)
			return
		}
		through.ServeHTTP(&slowly{ResponseWriter: w, s: s, request: request}, request)
	}))
	t.Cleanup(func() { s.slow.Store(false); s.Close() })
	return s
}

func (s *slowRegistry) host() string { return strings.TrimPrefix(s.URL, "http://") }

type slowly struct {
	http.ResponseWriter
	s       *slowRegistry
	request *http.Request
	begun   bool
}

func (w *slowly) Write(p []byte) (int, error) {
	if !w.begun {
		w.begun = true
		w.s.begun.Add(1)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for i := range p {
		if !w.s.slow.Load() {
			n, err := w.ResponseWriter.Write(p[i:])
			return i + n, err
		}
		if _, err := w.ResponseWriter.Write(p[i : i+1]); err != nil {
			return i, err
		}
		w.ResponseWriter.(http.Flusher).Flush()
		select {
		case <-tick.C:
		case <-w.request.Context().Done():
			w.s.ended.Add(1)
			return i, w.request.Context().Err()
		}
	}
	return len(p), nil
}

// The fetch of an artifact may take minutes. Meanwhile htcd may be killed, and the HTCJob be changed.
func TestTheFetchOfAnArtifactIsInterrupted(t *testing.T) {
	lab := trial.New(t)
	r := newSlowRegistry(t, lab.Registry())
	o := begin(t, "--allow-registries=http://"+r.host())
	file := []byte(rand.Text() + strings.Repeat("x", 1<<20))
	reference := "/" + o.Namespace + "/model:v1"
	lab.Push(lab.Registry()+reference, map[string][]byte{"x": file})
	needs := input(v1alpha1.Input{Name: "model", Artifact: r.host() + reference})
	fetching := func(begun int64) {
		o.Eventually(
			func() bool { return r.begun.Load() == begun },
			func() string { return fmt.Sprintf("%d fetches have begun", r.begun.Load()) },
		)
	}
	gone := func(ended int64) {
		o.Eventually(
			func() bool { return r.ended.Load() == ended },
			func() string { return fmt.Sprintf("%d fetches were ended", r.ended.Load()) },
		)
	}
	r.slow.Store(true)
	job := o.Create("killed", "head -c 26 model; wc -c <model\n", needs)
	fetching(1)
	fetched := o.Until(
		"killed",
		"said to be fetched",
		func(job *v1alpha1.HTCJob) bool { return job.Status.Reason == "Fetching" },
	)
	require.Equal(
		t,
		"model: being fetched from the registry; all inputs together have 1024 KiB",
		o.Condition(fetched, v1alpha1.ConditionInputsReady).Message,
	)
	o.killHtcd()
	gone(1)
	require.Equal(
		t,
		"0",
		o.SQL(fmt.Sprintf("SELECT count(*) FROM runs WHERE uid = '%s'", job.UID)),
		"nothing is recorded before everything is there",
	)
	o.do(o.part("htcd").Start)
	fetching(2)
	r.slow.Store(false)
	ended := o.Fetched("killed")
	require.Equal(t, "True", string(o.Condition(ended, v1alpha1.ConditionInputsReady).Status))
	require.Equal(t, fmt.Sprintf("%s%d\n", file[:26], len(file)), o.Output(ended, 0))
	o.once(ended)

	r.slow.Store(true)
	deleted := o.Create("deleted", "true\n", needs)
	fetching(3)
	o.Kubectl("delete", "htcjob", "deleted", "--timeout="+trial.Patience.String())
	gone(2)
	o.Create("suspended", "wc -c <model\n", needs)
	fetching(4)
	o.Kubectl("patch", "htcjob", "suspended", "--type=merge", "-p", `{"spec":{"suspend":true}}`)
	gone(3)
	o.Until("suspended", "suspended", func(job *v1alpha1.HTCJob) bool { return job.Status.Reason == "Suspended" })
	o.Kubectl("patch", "htcjob", "suspended", "--type=merge", "-p", `{"spec":{"suspend":false}}`)
	fetching(5)
	o.Kubectl("patch", "htcjob", "suspended", "--type=merge", "-p", `{"spec":{"script":{"source":"echo edited\n"}}}`)
	gone(4)
	r.slow.Store(false)
	ended = o.Fetched("suspended")
	require.Equal(t, "edited\n", o.Output(ended, 0))
	o.once(ended)
	staged, err := o.Lab.RunAs(t.Context(), "root", "ls", o.Lab.Path("htcd", "data", "staging"))
	require.NoError(t, err)
	require.NotContains(t, staged, string(deleted.UID))
	o.gone()
}

// A registry that is slow has places of its own. Who needs another one has the rest.
func TestASlowRegistryKeepsOnlyThoseWaitingWhoNeedIt(t *testing.T) {
	lab := trial.New(t)
	r := newSlowRegistry(t, lab.Registry())
	o := begin(t, "--allow-registries=http://"+r.host()+",http://"+lab.Registry())
	reference := "/" + o.Namespace + "/model:v1"
	lab.Push(lab.Registry()+reference, map[string][]byte{"x": []byte(strings.Repeat("x", 1<<20))})
	r.slow.Store(true)
	needs := func(b *trial.Bench, registry string) {
		b.Create("needs", "wc -c <model\n", input(v1alpha1.Input{Name: "model", Artifact: registry + reference}))
	}
	hasReason := func(reason string) func(*v1alpha1.HTCJob) bool {
		return func(job *v1alpha1.HTCJob) bool { return job.Status.Reason == reason }
	}
	slow := []*trial.Bench{trial.New(t), trial.New(t)}
	for _, b := range slow {
		needs(b, r.host())
		b.Until("needs", "being fetched", hasReason("Fetching"))
	}
	o.Eventually(
		func() bool { return r.begun.Load() == 2 },
		func() string { return fmt.Sprintf("%d fetches have begun", r.begun.Load()) },
	)
	third := trial.New(t)
	needs(third, r.host())
	waits := third.Until("needs", "waiting for its turn", hasReason("ArtifactWaits"))
	require.Contains(
		t,
		third.Condition(waits, v1alpha1.ConditionInputsReady).Message,
		"htcd fetches from a registry for 2 HTCJobs at a time, and does for others from "+r.host(),
	)

	needs(o.Bench, lab.Registry())
	require.Equal(t, "1048576\n", o.Output(o.Fetched("needs"), 0))
	for _, b := range slow {
		require.Equal(t, "Fetching", b.Get("needs").Status.Reason)
	}
	require.EqualValues(t, 2, r.begun.Load())

	r.slow.Store(false)
	for _, b := range append(slow, third) {
		require.Equal(t, "1048576\n", b.Output(b.Fetched("needs"), 0))
	}
	o.gone()
}
