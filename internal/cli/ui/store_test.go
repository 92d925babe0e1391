package ui

import (
	"errors"
	"fmt"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"htc.cern.ch/htcd/api/v1alpha1"
)

func TestAPageGetsWhatHasChangedSince(t *testing.T) {
	s := newStore()
	a, b, w := ref{jobs, "ns", "a"}, ref{jobs, "ns", "b"}, ref{workflows, "ns", "a"}
	s.put(a, 1)
	s.put(b, 1)
	s.put(w, 1)
	first := s.since(jobs, 0)
	require.Len(t, first.of, 2)
	select {
	case <-first.more:
		t.Fatal("nothing has changed")
	default:
	}
	s.put(a, 2)
	s.put(b, nil)
	<-first.more
	second := s.since(jobs, first.at)
	require.Equal(t, []version{{a, 4, 2}, {b, 5, nil}}, second.of)
	require.Empty(t, s.since(jobs, second.at).of)
	require.Len(t, s.since(jobs, 0).of, 1, "a new page does not hear of what was deleted")
	require.True(t, s.since(jobs, 99).behind, "it is of another server")

	s.put(b, 3) // again of that name
	require.Equal(t, []version{{b, 6, 3}}, s.since(jobs, second.at).of)
	require.Empty(t, s.gone)
}

func TestAPageThatIsTooFarBehindBeginsAnew(t *testing.T) {
	s := newStore()
	s.put(ref{jobs, "ns", "first"}, 1)
	at := s.since(jobs, 0).at
	for i := range mostGone + 2 {
		r := ref{jobs, "ns", fmt.Sprint(i)}
		s.put(r, 1)
		s.put(r, nil)
	}
	require.True(t, s.since(jobs, at).behind)
	require.Len(t, s.objects, 1+mostGone)
	require.False(t, s.since(jobs, s.at).behind)
}

func TestTroubleIsTold(t *testing.T) {
	s := newStore()
	more := s.since(jobs, 0).more
	s.troubled("htcjobs", "refused")
	<-more
	require.Equal(t, []string{"htcjobs: refused"}, s.since(jobs, 0).trouble)
	s.troubled("htcjobs", "")
	require.Empty(t, s.since(jobs, 0).trouble)
}

func TestItIsKnownThatTheApiserverIsAway(t *testing.T) {
	s := newStore()
	refused := &url.Error{Op: "Get", URL: "https://127.0.0.1:6443/apis", Err: errors.New("connect: connection refused")}
	s.troubled(
		"htcjobs of namespace ns",
		why(
			jobs,
			apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource(v1alpha1.Resource).GroupResource(), "", nil),
		),
	)
	require.Empty(t, s.stale(), "it has answered")
	_, more := s.get(ref{})
	s.troubled("htcjobs of namespace ns", why(jobs, refused))
	<-more
	require.Equal(t, "not up to date: the apiserver does not answer", s.stale())
	require.Equal(
		t,
		[]string{"htcjobs of namespace ns: the apiserver does not answer: connect: connection refused"},
		s.since(jobs, 0).trouble,
	)
	s.troubled("htcjobs of namespace ns", why(jobs, nil))
	require.Empty(t, s.stale())
}
