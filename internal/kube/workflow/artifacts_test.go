package workflow

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/artifact"
	"htc.cern.ch/htcd/internal/ledger"
)

// shelves are registries in memory.
type shelves struct {
	mu      sync.Mutex
	deleted []string
	failing map[string]error // by the beginning of a reference
	asked   int
}

func (*shelves) Push(
	context.Context,
	artifact.Target,
	[]artifact.Upload,
	func(string) error,
	...[]byte,
) (artifact.Pushed, error) {
	return artifact.Pushed{}, errors.New("nothing is pushed here")
}

func (s *shelves) Delete(_ context.Context, target artifact.Target, digest string, _ ...[]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	for prefix, err := range s.failing {
		if strings.HasPrefix(target.Reference, prefix) {
			return err
		}
	}
	s.deleted = append(s.deleted, target.Reference+" "+digest)
	return nil
}

// pushing applies a workflow of three sequences that has pushed what its nodes brought back, the last one perhaps: htcd
// ended just then.
func (w *world) pushing(name, to string, change ...func(*v1alpha1.HTCWorkflow)) {
	w.t.Helper()
	flow := newWorkflow(name)
	flow.Spec.Sequences.Count = new(int32(3))
	flow.Spec.Steps[0].Push = &v1alpha1.Push{Artifact: to}
	for _, f := range change {
		f(flow)
	}
	w.apply(flow)
	require.NoError(w.t, w.book.Write(w.t.Context(), func(tx *ledger.Tx) error {
		var err error
		for node := range 3 {
			as := ledger.Written{
				Destination: ledger.Destination{Number: 0},
				Proc:        node,
				Digest:      "sha256:" + name,
				Push:        ledger.Pushed,
			}
			if node == 2 {
				as.Push = ledger.Unpushed
			}
			err = errors.Join(err, tx.SetWritten("uid-"+name, 1, as))
		}
		return err
	}))
}

func TestArtifactsOfEphemeralRegistriesGoWithTheirWorkflow(t *testing.T) {
	w, s := newWorld(t), &shelves{failing: map[string]error{}}
	allowed, err := artifact.ParseRegistries([]string{"scratch.example.org", "registry.example.org"})
	require.NoError(t, err)
	w.Options.Registries, w.Options.Site.Inputs.Registries, w.Options.Ephemeral = s, allowed, allowed[:1]
	w.restart()
	gone := func(name string) bool { return w.flow(name) == nil }

	w.pushing("one", "scratch.example.org/m")
	w.delete("one")
	w.later(time.Second)
	require.True(t, gone("one"))
	slices.Sort(s.deleted)
	require.Equal(
		t,
		[]string{
			"scratch.example.org/m/job_0:a sha256:one",
			"scratch.example.org/m/job_1:a sha256:one",
			"scratch.example.org/m/job_2:a sha256:one",
		},
		s.deleted,
	)

	s.deleted = nil
	w.pushing("elsewhere", "registry.example.org/m")
	w.pushing("kept", "scratch.example.org/m", func(flow *v1alpha1.HTCWorkflow) { flow.Spec.KeepArtifacts = true })
	for _, name := range []string{"elsewhere", "kept"} {
		w.delete(name)
		w.later(time.Second)
		require.True(t, gone(name))
	}
	require.Zero(t, s.deleted)
	require.Empty(t, w.warned)

	s.asked, s.failing["scratch"] = 0, &artifact.Unusable{Reason: artifact.ReasonRefused, Message: "no"}
	w.pushing("refused", "scratch.example.org/m")
	w.delete("refused")
	w.later(time.Second)
	require.True(t, gone("refused"), "nothing waits for a registry that refuses")
	require.Equal(
		t,
		[]string{"ArtifactsLeft: 3 artifacts are left in ephemeral registries; scratch.example.org/m/job_0:a: no"},
		w.warned,
	)

	w.warned, s.failing["scratch"] = nil, &artifact.Unusable{Reason: artifact.ReasonUnreachable, Message: "away"}
	w.pushing("waits", "scratch.example.org/m")
	w.pushing("returns", "scratch.example.org/m")
	for _, name := range []string{"waits", "returns"} {
		w.delete(name)
	}
	w.later(registryPause)
	require.False(t, gone("waits") || gone("returns"))
	delete(s.failing, "scratch")
	require.NoError(t, w.dropArtifacts(t.Context(), w.flow("returns"), w.runs("returns")))
	require.Len(t, s.deleted, 3)
	s.failing["scratch"] = &artifact.Unusable{Reason: artifact.ReasonUnreachable, Message: "away"}
	w.clock = w.clock.Add(patienceWithRegistry)
	require.NoError(t, w.dropArtifacts(t.Context(), w.flow("waits"), w.runs("waits")))
	require.Equal(
		t,
		"ArtifactsLeft: 3 artifacts are left in ephemeral registries; scratch.example.org/m/job_0:a: away",
		w.warned[len(w.warned)-1],
	)
}

// runs lists the DAGs of a workflow.
func (w *world) runs(name string) []ledger.Run {
	w.t.Helper()
	runs, err := w.Runs(w.t.Context(), "default/"+name)
	require.NoError(w.t, err)
	return runs
}

func TestADeletionOfManyArtifactsIsBounded(t *testing.T) {
	d := dropping{began: time.Now(), refused: map[pushPlace]error{}}
	p := ledger.PushedNode{
		StepName: "a",
		Written:  ledger.Written{Destination: ledger.Destination{Artifact: "r.example.org/m:v1"}, Proc: 4},
	}
	away := &artifact.Unusable{Reason: artifact.ReasonUnreachable, Message: "away"}
	late := d.began.Add(patienceWithRegistry)
	require.Error(t, d.done(p, away, late.Add(-1)))
	require.NoError(t, d.done(p, nil, late.Add(-1)))
	require.Equal(t, 5, d.node)
	require.Error(t, d.done(p, away, late), "it has answered meanwhile")
	require.NoError(t, d.done(p, errLate, late))
	require.NoError(t, d.done(p, errStays, late))
	require.Equal(t, 1, d.left)
	require.Equal(t, "r.example.org/m:v1: deleting the others took too long", d.why)
}
