package artifact

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/stretchr/testify/require"
)

// takes lets a shop take what is pushed. It returns what was asked of it, a method and a path each.
func (s *shop) takes() *[]string {
	asked := &[]string{}
	s.guard = func(w http.ResponseWriter, r *http.Request) bool {
		name := strings.TrimPrefix(r.URL.Path, "/v2/group/model/")
		if r.Method != http.MethodHead {
			*asked = append(*asked, r.Method+" "+name)
		}
		switch r.Method {
		case http.MethodPost:
			w.Header().Set("Location", s.URL+"/v2/group/model/blobs/uploads/1?state=x")
			w.WriteHeader(http.StatusAccepted)
		case http.MethodPut:
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return true
			}
			if sum := r.URL.Query().Get("digest"); sum != "" {
				if digest.FromBytes(body).String() != sum {
					http.Error(
						w,
						`{"errors":[{"code":"DIGEST_INVALID","message":"secret words"}]}`,
						http.StatusBadRequest,
					)
					return true
				}
				s.content["blobs/"+sum] = body
			} else {
				s.put(strings.TrimPrefix(name, "manifests/"), r.Header.Get("Content-Type"), body)
			}
			w.WriteHeader(http.StatusCreated)
		default:
			return false
		}
		return true
	}
	return asked
}

func (s *shop) pusher(t *testing.T, more ...string) *Pusher {
	r, err := ParseRegistries(append(more, s.URL))
	require.NoError(t, err)
	return NewPusher(r)
}

func upload(name, text string) Upload {
	return Upload{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
}

func never(string) error { return errors.New("nobody asked") }

func yes(string) error { return nil }

func TestWhatIsPushedCanBeFetched(t *testing.T) {
	s := open(t)
	asked := s.takes()
	p := s.pusher(t)
	one, err := p.Push(
		t.Context(),
		Target{Reference: s.host() + "/group/model:one"},
		[]Upload{upload("plots/model.pt", "weights")},
		yes,
	)
	require.NoError(t, err)
	require.EqualValues(t, 7, one.Size)
	two, err := p.Push(
		t.Context(),
		Target{Reference: s.host() + "/group/model:two"},
		[]Upload{upload("model.pt", "weights"), upload("d/e/labels.txt", ""), upload("a", "weights")},
		yes,
	)
	require.NoError(t, err)
	require.EqualValues(t, 14, two.Size)
	f := s.fetcher(t)
	for tag, want := range map[string]map[string]string{
		"one": {"": "weights"}, "two": {"model.pt": "weights", "d/e/labels.txt": "", "a": "weights"},
	} {
		a, err := resolve(t, f, s.host()+"/group/model:"+tag)
		require.NoError(t, err)
		require.Equal(t, want, read(t, a))
		require.Contains(t, []string{one.Digest, two.Digest}, a.Digest)
	}

	*asked = nil
	again, err := p.Push(
		t.Context(),
		Target{Reference: s.host() + "/group/model:one"},
		[]Upload{upload("plots/model.pt", "weights")},
		never,
	)
	require.NoError(t, err)
	require.Equal(t, one, again)
	require.Empty(t, *asked, "it is there")
	again, err = p.Push(
		t.Context(),
		Target{Reference: s.host() + "/group/model:other"},
		[]Upload{upload("plots/model.pt", "weights")},
		yes,
	)
	require.NoError(t, err)
	require.Equal(t, one, again)
	require.Equal(t, []string{"PUT manifests/other"}, *asked)
}

func TestWhatCouldNotBeFetchedIsNotPushed(t *testing.T) {
	s := open(t)
	p := s.pusher(t)
	many := make([]Upload, MaxFiles+1)
	for i := range many {
		many[i] = upload(fmt.Sprint("f", i), "")
	}
	for words, files := range map[string][]Upload{
		"it has no files":    nil,
		"more than 1000":     many,
		`its file "a b"`:     {upload("a b", "")},
		`its file "../a"`:    {upload("../a", "")},
		`its file "d/.h"`:    {upload("a", ""), upload("d/.h", "")},
		`its file "gr`:       {upload("größe", "")},
		`two files called "`: {upload("a", ""), upload("a", "")},
	} {
		_, err := p.Push(t.Context(), Target{Reference: s.host() + "/group/model:one"}, files, yes)
		require.Equal(t, ReasonUnsuitable, reasonOf(t, err))
		require.ErrorContains(t, err, words)
	}
	for _, reference := range []string{s.host() + "/group/model", "elsewhere.example.org/m:v1", s.host() + "/group/model:v1@sha256:" + strings.Repeat("0", 64)} {
		_, err := p.Push(t.Context(), Target{Reference: reference}, []Upload{upload("a", "")}, yes)
		require.Equal(t, ReasonForbidden, reasonOf(t, err), reference)
	}
	require.Zero(t, s.asked.Load())
}

func TestWhyAPushFailsIsSaid(t *testing.T) {
	elsewhere := open(t)
	answer := func(status int, code string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, fmt.Sprintf(`{"errors":[{"code":%q,"message":"secret words"}]}`, code), status)
			return true
		}
	}
	location := func(to string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusAccepted)
			return r.Method == http.MethodPost
		}
	}
	for name, c := range map[string]struct {
		guard         func(http.ResponseWriter, *http.Request) bool
		reason, words string
	}{
		"not without an account": {answer(401, "UNAUTHORIZED"), ReasonForbidden, "does not let htcd push it: it needs credentials"},
		"not that account":       {answer(403, "DENIED"), ReasonForbidden, "does not let htcd push it: it needs credentials"},
		"no such repository":     {answer(404, "NAME_UNKNOWN"), ReasonNoPlace, "has no such repository"},
		"the tag must not move":  {answer(409, "DENIED"), ReasonRefused, "refuses it with status 409 (DENIED)"},
		"it does not say why":    {answer(405, "secret words"), ReasonRefused, "refuses it with status 405"},
		"it has trouble":         {answer(503, ""), ReasonUnreachable, "answers with status 503"},
		"it has too much to do":  {answer(429, "TOOMANYREQUESTS"), ReasonUnreachable, "answers with status 429"},
		"it sends htcd away":     {location(elsewhere.URL + "/v2/x"), ReasonForbidden, "wants the files to be sent to another host"},
		"it says nothing":        {location(""), ReasonUnreachable, "cannot be used"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			s.guard = func(w http.ResponseWriter, r *http.Request) bool {
				return r.Method != http.MethodHead && c.guard(w, r)
			}
			_, err := s.pusher(
				t,
				elsewhere.URL,
			).Push(
				t.Context(),
				Target{Reference: s.host() + "/group/model:one"},
				[]Upload{upload("a", "text")},
				yes,
			)
			require.Equal(t, c.reason, reasonOf(t, err))
			require.ErrorContains(t, err, c.words)
		})
	}
	require.Zero(t, elsewhere.asked.Load())
}

func TestARegistryThatTakesNothingIsNotWaitedFor(t *testing.T) {
	s := open(t)
	s.takes()
	takes := s.guard
	end := make(chan struct{})
	defer close(end)
	s.guard = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			<-end
		}
		return takes(w, r)
	}
	p := s.pusher(t)
	p.silence = 50 * time.Millisecond
	clock := time.Now()
	p.now = func() time.Time { return clock }
	large := strings.Repeat("x", 64<<20) // more than fits on the way
	_, err := p.Push(t.Context(), Target{Reference: s.host() + "/group/model:one"}, []Upload{upload("a", large)}, yes)
	require.Equal(t, ReasonUnreachable, reasonOf(t, err))
	before := s.asked.Load()
	_, err = p.Push(t.Context(), Target{Reference: s.host() + "/group/model:two"}, []Upload{upload("a", "text")}, yes)
	require.Equal(t, ReasonUnreachable, reasonOf(t, err))
	require.Equal(t, before, s.asked.Load(), "it is left alone for a moment")
	other := Target{Reference: s.host() + "/group/model:three", Namespace: "other"}
	_, err = p.Push(t.Context(), other, nil, yes)
	require.Equal(t, ReasonUnsuitable, reasonOf(t, err), "it may answer another namespace")
}

func TestAPushThatIsNoLongerWantedChangesNoTag(t *testing.T) {
	s := open(t)
	asked := s.takes()
	gone := errors.New("gone")
	_, err := s.pusher(
		t,
	).Push(
		t.Context(),
		Target{Reference: s.host() + "/group/model:one"},
		[]Upload{upload("a", "text")},
		func(string) error { return gone },
	)
	require.ErrorIs(t, err, gone)
	require.NotContains(t, strings.Join(*asked, " "), "manifests")
	broken := errors.New("broken")
	_, err = s.pusher(
		t,
	).Push(
		t.Context(),
		Target{Reference: s.host() + "/group/model:one"},
		[]Upload{{Name: "a", Open: func() (io.ReadCloser, error) { return nil, broken }}},
		yes,
	)
	require.ErrorIs(t, err, broken)
	require.False(t, bytes.Contains(s.content["manifests/one"], []byte("a")))
}
