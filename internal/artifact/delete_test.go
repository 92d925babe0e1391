package artifact

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// deletes lets a shop delete manifests. A shop that does not keep tags drops them with their manifest.
func (s *shop) deletes(keepTags bool) *[]string {
	asked := s.takes()
	others := s.guard
	s.guard = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodDelete {
			return others(w, r)
		}
		name := strings.TrimPrefix(r.URL.Path, "/v2/group/model/")
		*asked = append(*asked, "DELETE "+name)
		text, is := s.content[name]
		if !is {
			return false
		}
		delete(s.content, name)
		for other := range s.content {
			if !keepTags && string(s.content[other]) == string(text) {
				delete(s.content, other)
			}
		}
		w.WriteHeader(http.StatusAccepted)
		return true
	}
	return asked
}

func TestOnlyWhatAnOwnerHasPushedIsDeleted(t *testing.T) {
	for _, keepTags := range []bool{false, true} {
		s := open(t)
		asked := s.deletes(keepTags)
		p := s.pusher(t)
		push := func(tag, owner string) string {
			done, err := p.Push(
				t.Context(),
				Target{Reference: s.host() + "/group/model:" + tag, Owner: owner},
				[]Upload{upload("a", "text")},
				yes,
			)
			require.NoError(t, err)
			return done.Digest
		}
		first := push("one", "first")
		require.Equal(t, first, push("one", "first"))
		second := push("two", "second")
		require.NotEqual(t, first, second, "though the files are equal")
		reference := s.host() + "/group/model:one"
		require.NoError(t, p.Delete(t.Context(), Target{Reference: reference}, first))
		require.NotContains(t, s.content, "manifests/one")
		require.NotContains(t, s.content, "manifests/"+first)
		require.Contains(t, s.content, "manifests/two")
		require.NoError(t, p.Delete(t.Context(), Target{Reference: reference}, first), "it is gone already")

		third := push("one", "third")
		*asked = nil
		require.NoError(t, p.Delete(t.Context(), Target{Reference: reference}, first))
		require.Equal(t, []string{"DELETE manifests/" + first}, *asked, "the tag names another artifact")
		require.Contains(t, s.content, "manifests/"+third)
	}
}

func TestARegistryThatDoesNotDeleteIsNotAskedLong(t *testing.T) {
	s := open(t)
	status := http.StatusMethodNotAllowed
	s.guard = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(status); return true }
	p := s.pusher(t)
	for _, c := range []struct {
		status int
		reason string
	}{
		{http.StatusMethodNotAllowed, ReasonRefused}, {http.StatusForbidden, ReasonForbidden},
		{http.StatusUnauthorized, ReasonForbidden},
		{http.StatusTooManyRequests, ReasonUnreachable},
	} {
		status = c.status
		require.Equal(
			t,
			c.reason,
			reasonOf(t, p.Delete(t.Context(), Target{Reference: s.host() + "/group/model:one"}, "sha256:"+strings.Repeat("0", 64))),
			c.status,
		)
	}
	before := s.asked.Load()
	require.Equal(t, ReasonUnreachable, reasonOf(t, p.Delete(t.Context(), Target{Reference: s.host() + "/group/model:one"}, "sha256:0")))
	require.Equal(t, before, s.asked.Load(), "it is left alone for a moment")
	require.Equal(t, ReasonForbidden, reasonOf(t, p.Delete(t.Context(), Target{Reference: "other.example.org/m:one"}, "sha256:0")))
}
