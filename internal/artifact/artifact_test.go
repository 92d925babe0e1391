package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"
)

// shop is a registry with one repository, group/model.
type shop struct {
	*httptest.Server
	content map[string][]byte // by path below /v2/group/model/
	types   map[string]string
	asked   atomic.Int64
	guard   func(http.ResponseWriter, *http.Request) bool // answers itself if true
}

func open(t *testing.T) *shop {
	s := &shop{content: map[string][]byte{}, types: map[string]string{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		if s.guard != nil && s.guard(w, r) {
			return
		}
		name := strings.TrimPrefix(r.URL.Path, "/v2/group/model/")
		text, is := s.content[name]
		if !is {
			http.Error(w, `{"errors":[{"code":"X","message":"secret words"}]}`, http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", s.types[name])
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		if strings.HasPrefix(name, "manifests/") {
			w.Header().Set("Docker-Content-Digest", digest.FromBytes(text).String())
		}
		_, _ = w.Write(text)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *shop) host() string { return strings.TrimPrefix(s.URL, "http://") }

func (s *shop) blob(text, title string) ocispec.Descriptor {
	sum := digest.FromString(text)
	s.content["blobs/"+sum.String()] = []byte(text)
	d := ocispec.Descriptor{MediaType: "application/octet-stream", Digest: sum, Size: int64(len(text))}
	if title != "" {
		d.Annotations = map[string]string{ocispec.AnnotationTitle: title}
	}
	return d
}

// push adds a manifest under a tag and its digest, which it returns.
func (s *shop) push(tag string, layers ...ocispec.Descriptor) string {
	m := ocispec.Manifest{
		MediaType: ocispec.MediaTypeImageManifest,
		Config:    ocispec.DescriptorEmptyJSON,
		Layers:    layers,
	}
	m.SchemaVersion = 2
	text, _ := json.Marshal(m)
	return s.put(tag, ocispec.MediaTypeImageManifest, text)
}

func (s *shop) put(tag, mediaType string, text []byte) string {
	sum := fmt.Sprintf("sha256:%x", sha256.Sum256(text))
	for _, name := range []string{"manifests/" + tag, "manifests/" + sum} {
		s.content[name], s.types[name] = text, mediaType
	}
	return sum
}

func (s *shop) fetcher(t *testing.T, more ...string) *Fetcher {
	r, err := ParseRegistries(append(more, s.URL))
	require.NoError(t, err)
	f := NewFetcher(r)
	f.turns.Places, f.turns.PerHost = 99, 99
	return f
}

// resolve resolves a reference for an HTCJob of its own.
func resolve(t *testing.T, f *Fetcher, reference string, configs ...[]byte) (*Artifact, error) {
	named++
	return f.For(fmt.Sprintf("n%d/one", named), []string{reference}).Resolve(t.Context(), reference, configs...)
}

var named int

func reasonOf(t *testing.T, err error) string {
	t.Helper()
	var e *Unusable
	require.ErrorAs(t, err, &e)
	require.NotContains(t, e.Message, "secret")
	return e.Reason
}

func read(t *testing.T, a *Artifact) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, f := range a.Files {
		r, err := a.Open(f)
		require.NoError(t, err)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		require.EqualValues(t, f.Size, len(text))
		all[f.Name] = string(text)
	}
	return all
}

func TestFilesAreFetched(t *testing.T) {
	s := open(t)
	one := s.push("one", s.blob("weights", "model.pt"))
	s.push("nameless", s.blob("weights", ""))
	s.push("two", s.blob("weights", "model.pt"), s.blob("labels", "data/labels.txt"))
	f := s.fetcher(t)
	for tag, want := range map[string]map[string]string{
		":one": {"": "weights"}, "@" + one: {"": "weights"}, ":wrong@" + one: {"": "weights"}, ":nameless": {"": "weights"},
		":two": {"model.pt": "weights", "data/labels.txt": "labels"},
	} {
		a, err := resolve(t, f, s.host()+"/group/model"+tag)
		require.NoError(t, err, tag)
		require.Equal(t, want, read(t, a), tag)
		require.Regexp(t, "^sha256:[0-9a-f]{64}$", a.Digest)
	}
	a, err := resolve(t, f, s.host()+"/group/model:one")
	require.NoError(t, err)
	require.Equal(t, one, a.Digest)
	s.push("one", s.blob("others", "model.pt"))
	require.Equal(
		t,
		map[string]string{"": "weights"},
		read(t, a),
		"what was resolved stays, whatever the tag names now",
	)
}

func TestWhatCannotBeUsedIsSaid(t *testing.T) {
	s := open(t)
	image, _ := json.Marshal(ocispec.Manifest{Config: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageConfig}})
	s.put("image", ocispec.MediaTypeImageManifest, image)
	s.put("index", ocispec.MediaTypeImageIndex, []byte("{}"))
	s.put("docker", "application/vnd.docker.distribution.manifest.v2+json", []byte("{}"))
	s.put("text", ocispec.MediaTypeImageManifest, []byte("hello"))
	s.put("huge", ocispec.MediaTypeImageManifest, []byte(strings.Repeat(" ", maxManifest+1)))
	s.push("nothing")
	s.push("nameless", s.blob("a", ""), s.blob("b", ""))
	s.push("outside", s.blob("a", "../a"), s.blob("b", "b"))
	s.push("absolute", s.blob("a", "/etc/a"), s.blob("b", "b"))
	s.push("control", s.blob("a", "a\nb"), s.blob("b", "b"))
	s.push("dots", s.blob("a", "a/../../b"), s.blob("b", "b"))
	s.push("twice", s.blob("a", "a"), s.blob("b", "a"))
	s.push("both", s.blob("a", "a"), s.blob("b", "a/b"))
	s.push("both again", s.blob("a", "a/b"), s.blob("b", "a"))
	directory := s.blob("a", "a")
	directory.Annotations[unpack] = "true"
	s.push("directory", directory)
	negative := s.blob("a", "a")
	negative.Size = -1
	s.push("negative", negative)
	many := make([]ocispec.Descriptor, MaxFiles+1)
	for i := range many {
		many[i] = s.blob("a", fmt.Sprint("f", i))
	}
	s.push("many", many...)
	f := s.fetcher(t)
	for _, tag := range []string{"image", "index", "docker", "text", "huge", "nothing", "nameless", "outside", "absolute", "control", "dots", "twice", "both", "directory", "negative", "many"} {
		_, err := resolve(t, f, s.host()+"/group/model:"+tag)
		require.Equal(t, ReasonUnsuitable, reasonOf(t, err), tag)
	}
	_, err := files(ocispec.MediaTypeImageManifest, s.content["manifests/both again"])
	require.ErrorContains(t, err, `it has two files called "a"`)
	_, err = resolve(t, f, s.host()+"/group/model:absent")
	require.Equal(t, ReasonNotFound, reasonOf(t, err))
}

func TestAnotherContentThanTheManifestSaysIsNotTaken(t *testing.T) {
	s := open(t)
	blob := s.blob("weights", "model.pt")
	s.push("one", blob)
	a, err := resolve(t, s.fetcher(t), s.host()+"/group/model:one")
	require.NoError(t, err)
	for _, other := range []string{"WEIGHTS", "weight", "weights and more"} {
		s.content["blobs/"+blob.Digest.String()] = []byte(other)
		r, err := a.Open(a.Files[0])
		if err == nil {
			_, err = io.ReadAll(r)
			require.NoError(t, r.Close())
		}
		require.Error(t, err, other)
	}
}

func TestOnlyListedHostsAreAsked(t *testing.T) {
	s, elsewhere := open(t), open(t)
	elsewhere.content["stored"] = []byte("weights")
	s.push("one", s.blob("weights", "model.pt"))
	s.guard = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/blobs/") {
			http.Redirect(w, r, elsewhere.URL+"/v2/group/model/stored?signature=secret", http.StatusTemporaryRedirect)
			return true
		}
		return false
	}
	a, err := resolve(t, s.fetcher(t), s.host()+"/group/model:one")
	require.NoError(t, err)
	_, err = a.Open(a.Files[0])
	require.Equal(t, ReasonForbidden, reasonOf(t, err))
	require.ErrorContains(t, err, elsewhere.URL+" is not listed in --allow-registries")
	require.Zero(t, elsewhere.asked.Load())

	a, err = resolve(t, s.fetcher(t, elsewhere.URL), s.host()+"/group/model:one")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"": "weights"}, read(t, a))
}

func TestCredentialsGoToTheRegistryAndItsListedTokenServerAlone(t *testing.T) {
	s, tokens := open(t), open(t)
	s.push("one", s.blob("weights", "model.pt"))
	var shown []string
	tokens.guard = func(w http.ResponseWriter, r *http.Request) bool {
		shown = append(shown, r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, `{"token":"good"}`)
		return true
	}
	s.guard = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "Bearer good" {
			return false
		}
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="x"`, tokens.URL))
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	account := base64.StdEncoding.EncodeToString([]byte("alice:secret"))
	config := []byte(
		fmt.Sprintf(`{"auths":{%q:{"auth":%q},"other.example.org":{"auth":%q}}}`, s.host(), account, account),
	)
	_, err := resolve(t, s.fetcher(t), s.host()+"/group/model:one", config)
	require.Equal(t, ReasonForbidden, reasonOf(t, err))
	require.Empty(t, shown)

	a, err := resolve(t, s.fetcher(t, tokens.URL), s.host()+"/group/model:one", config)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"": "weights"}, read(t, a))
	require.Equal(t, "Basic "+account, shown[0])

	shown = nil
	_, err = resolve(t, s.fetcher(t, tokens.URL), s.host()+"/group/model:one")
	require.NoError(t, err, "the token server lets everybody read")
	require.Equal(t, "", shown[0])
	_, err = resolve(t, s.fetcher(t), s.host()+"/group/model:one", []byte("secret"))
	require.Equal(t, ReasonForbidden, reasonOf(t, err))

	s.guard = func(w http.ResponseWriter, r *http.Request) bool {
		if user, password, _ := r.BasicAuth(); user == "alice" && password == "secret" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	_, err = resolve(t, s.fetcher(t), s.host()+"/group/model:one")
	require.Equal(t, ReasonForbidden, reasonOf(t, err))
	other := []byte(`{"auths":{"other.example.org":{"auth":"YTpi"}}}`)
	_, err = resolve(t, s.fetcher(t), s.host()+"/group/model:one", other, config)
	require.NoError(t, err)
}

func TestARegistryThatDoesNotAnswerIsLeftAloneForAMoment(t *testing.T) {
	s := open(t)
	s.push("one", s.blob("weights", "model.pt"))
	broken := true
	s.guard = func(w http.ResponseWriter, _ *http.Request) bool {
		if broken {
			http.Error(w, "no", http.StatusServiceUnavailable)
		}
		return broken
	}
	f := s.fetcher(t)
	clock := time.Now()
	f.now = func() time.Time { return clock }
	ask := func(namespace, tag string) error {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, err := f.For(namespace+"/one", []string{s.host() + "/group/model:one"}).
			Resolve(ctx, s.host()+"/group/model:"+tag)
		return err
	}
	for range 3 {
		require.Equal(t, ReasonUnreachable, reasonOf(t, ask("default", "one")))
	}
	require.EqualValues(t, 1, s.asked.Load())
	broken = false
	require.NoError(t, ask("another", "one"), "it answers what another namespace asks")
	clock = clock.Add(pauseAfter)
	require.NoError(t, ask("default", "one"))
	require.Equal(t, ReasonNotFound, reasonOf(t, ask("default", "absent")))
	require.NoError(t, ask("default", "one"), "an artifact that is missing concerns no other")
}

func TestARegistryThatStopsInTheMiddleIsNotWaitedFor(t *testing.T) {
	s := open(t)
	s.push("one", s.blob("weights", "model.pt"))
	s.guard = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/blobs/") {
			return false
		}
		w.Header().Set("Content-Length", "7")
		_, _ = io.WriteString(w, "wei")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	}
	f := s.fetcher(t)
	f.silence = 50 * time.Millisecond
	a, err := resolve(t, f, s.host()+"/group/model:one")
	require.NoError(t, err)
	r, err := a.Open(a.Files[0])
	require.NoError(t, err)
	_, err = io.ReadAll(r)
	require.Equal(t, ReasonUnreachable, reasonOf(t, err))
	require.NoError(t, r.Close())
}

func TestAPlaceIsKeptUntilEverythingIsThere(t *testing.T) {
	s, other := open(t), open(t)
	s.push("one", s.blob("weights", "model.pt"))
	other.push("one", other.blob("weights", "model.pt"))
	f := s.fetcher(t, other.URL)
	f.turns.Places, f.turns.PerHost = Places, ofRegistry
	turn := make(chan string, 9)
	f.OnTurn(func(key string) { turn <- key })
	try := func(key string, from *shop) (end context.CancelFunc, err error) {
		ctx, cancel := context.WithCancel(t.Context())
		reference := from.host() + "/group/model:one"
		_, err = f.For(key, []string{reference}).Resolve(ctx, reference)
		return cancel, err
	}
	first, err := try("one/a", s)
	require.NoError(t, err)
	_, err = try("one/b", s)
	require.Equal(t, ReasonWaits, reasonOf(t, err))
	require.ErrorContains(
		t,
		err,
		"it waits for its turn: htcd fetches for one HTCJob of a namespace at a time, and does for another one of namespace one",
	)
	_, err = try("two/a", s)
	require.NoError(t, err)
	_, err = try("three/a", s)
	require.Equal(t, ReasonWaits, reasonOf(t, err))
	require.ErrorContains(
		t,
		err,
		"htcd fetches from a registry for 2 HTCJobs at a time, and does for others from "+s.host(),
	)
	_, err = try("four/a", other)
	require.NoError(t, err, "another registry has its own places")
	first()
	require.Equal(t, "three/a", <-turn, "the namespace that has had none yet")
	_, err = try("three/a", s)
	require.NoError(t, err)
}

func TestWhatIsNotThereInTimeGivesItsPlaceBack(t *testing.T) {
	s := open(t)
	s.push("one", s.blob("weights", "model.pt"))
	f := s.fetcher(t)
	turn := f.For("default/one", []string{s.host() + "/group/model:one"})
	turn.within = 50 * time.Millisecond
	s.guard = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/blobs/") {
			return false
		}
		<-r.Context().Done()
		return true
	}
	a, err := turn.Resolve(t.Context(), s.host()+"/group/model:one")
	require.NoError(t, err)
	_, err = a.Open(a.Files[0])
	require.Equal(t, ReasonLate, reasonOf(t, err))
	require.ErrorContains(t, err, "was not fetched within 50ms")
	_, err = resolve(t, f, s.host()+"/group/model:one")
	require.NoError(t, err, "the registry was not taken for silent")
}

func TestARegistryIsOneWhateverItsNameLooksLike(t *testing.T) {
	f := NewFetcher(nil)
	require.Len(
		t,
		f.For(
			"default/one",
			[]string{"registry.example.org/a:1", "REGISTRY.example.org:443/b:1", "registry.example.org/c:1"},
		).hosts,
		1,
	)
}

func TestReferences(t *testing.T) {
	r, err := ParseRegistries([]string{"registry.example.org", "*.cern.ch:5000", "http://127.0.0.1:80"})
	require.NoError(t, err)
	for text, words := range map[string]string{
		"registry.example.org/group/model:v3":      "",
		"registry.example.org:443/model:v3":        "",
		"a.cern.ch:5000/model:v3":                  "",
		"127.0.0.1/model:v3":                       "",
		"cern.ch:5000/model:v3":                    "is not one that",
		"evilcern.ch:5000/model:v3":                "is not one that",
		"a.cern.ch/model:v3":                       "is not one that",
		"other.example.org/model:v3":               "is not one that",
		"registry.example.org:80/model:v3":         "is not one that",
		"registry.example.org/model":               "expected a tag or a digest",
		"group/model:v3":                           "expected an artifact such as",
		"https://registry.example.org/m:1":         "expected an artifact such as",
		"registry.example.org/a/../b:1":            "expected an artifact such as",
		"registry.example.org/a:$(x)":              "expected an artifact such as",
		"registry.example.org/a@sha256:ab":         "expected an artifact such as",
		"user@registry.example.org/a:1":            "expected an artifact such as",
		"registry.example.org/" + longTag() + ":1": "expected an artifact such as",
	} {
		err := r.CheckReference(text)
		if words == "" {
			require.NoError(t, err, text)
			continue
		}
		require.ErrorContains(t, err, words, text)
	}
	require.ErrorContains(
		t,
		Registries(nil).CheckReference("registry.example.org/group/model:v3"),
		"its administrator has listed no registries",
	)
	for _, entry := range []string{"", "*", "a b", "ftp://a", "https://a/b", "a:x", "*a.org", "a,b", "user@a"} {
		_, err := ParseRegistries([]string{entry})
		require.Error(t, err, entry)
	}
}

func longTag() string { return strings.Repeat("a", maxReference) }
