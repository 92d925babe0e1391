package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"

	"htc.cern.ch/htcd/internal/admission/fairqueue"
)

const (
	// Places is how many HTCJobs a Fetcher fetches for at a time.
	Places     = 8
	ofRegistry = 2                // of these, from one registry
	toResolve  = 20 * time.Second // for a manifest
	toFetch    = 10 * time.Minute // for all that an HTCJob, or a DAG, needs
	silence    = 20 * time.Second // between two pieces of a file
)

// Fetcher fetches artifacts. It is safe for concurrent use.
type Fetcher struct {
	client
	silence time.Duration
	turns   fairqueue.Turns
}

// NewFetcher returns a Fetcher for these registries.
func NewFetcher(allowed Registries) *Fetcher {
	return &Fetcher{
		client: newClient(allowed, answerWithin), silence: silence,
		turns: fairqueue.Turns{Places: Places, PerHost: ofRegistry, Now: time.Now},
	}
}

// OnTurn has call called with each key that was told to wait, when it need no longer. It is set before the first For.
func (f *Fetcher) OnTurn(call func(key string)) { f.turns.Go = call }

// Turn fetches what one HTCJob, or HTCWorkflow, needs. It is not safe for concurrent use.
type Turn struct {
	fetcher        *Fetcher
	key, namespace string
	hosts          []string
	within         time.Duration
	place          context.Context // ends with the place; nil before there is one
}

// For returns the Turn of a key, "namespace/name", that needs these references. It takes a place when the first is
// resolved.
func (f *Fetcher) For(key string, references []string) *Turn {
	t := &Turn{fetcher: f, key: key, within: toFetch}
	t.namespace, _, _ = strings.Cut(key, "/")
	for _, reference := range references {
		host := strings.ToLower(Host(reference)) // with a usual port and without it, it is one registry
		if host = strings.TrimSuffix(strings.TrimSuffix(host, ":443"), ":80"); !slices.Contains(t.hosts, host) {
			t.hosts = append(t.hosts, host)
		}
	}
	return t
}

// take takes a place until ctx ends.
func (t *Turn) take(ctx context.Context) error {
	if t.place != nil {
		return nil
	}
	if full := t.fetcher.turns.Take(t.key, t.hosts); full != fairqueue.Room {
		return unusable(ReasonWaits, "%s", t.waits(full))
	}
	late := unusable(
		ReasonLate,
		"what it needs from %s was not fetched within %s, which is how long htcd fetches at a stretch, so that others get their turn: make it smaller, or have the script fetch it",
		strings.Join(t.hosts, " and "),
		t.within,
	)
	place, cancel := context.WithTimeoutCause(ctx, t.within, late)
	context.AfterFunc(ctx, func() { cancel(); t.fetcher.turns.Leave(t.key) })
	t.place = place
	return nil
}

func (t *Turn) waits(full fairqueue.Full) string {
	why := "it is the turn of other namespaces"
	switch full {
	case fairqueue.OfNamespace:
		why = "htcd fetches for one HTCJob of a namespace at a time, and does for another one of namespace " + t.namespace
	case fairqueue.OfHost:
		why = fmt.Sprintf(
			"htcd fetches from a registry for %d HTCJobs at a time, and does for others from %s",
			ofRegistry,
			strings.Join(t.hosts, " or "),
		)
	case fairqueue.OfAll:
		why = fmt.Sprintf("htcd fetches for %d HTCJobs at a time, and does for others", Places)
	}
	return "it waits for its turn: " + why
}

// Artifact is what a reference named when it was resolved.
type Artifact struct {
	Digest string
	Files  []File

	turn       *Turn
	repository *remote.Repository
}

// Resolve asks a registry for the artifact that a reference names now. dockerConfigs are contents of .dockerconfigjson:
// the first with credentials for the registry counts. The place is given back when ctx ends. The error is an *Unusable,
// that of CheckReference, or the context's.
func (t *Turn) Resolve(ctx context.Context, reference string, dockerConfigs ...[]byte) (*Artifact, error) {
	f := t.fetcher
	if err := f.allowed.CheckReference(reference); err != nil {
		return nil, err
	}
	ref, err := parseReference(reference)
	if err != nil {
		return nil, err
	}
	repository, err := f.repository(ref, dockerConfigs)
	if err != nil {
		return nil, err
	}
	if err := f.rests(t.namespace, ref.Registry); err != nil {
		return nil, err
	}
	if err := t.take(ctx); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(t.place, toResolve)
	defer cancel()
	a := &Artifact{turn: t, repository: repository}
	if err := a.read(limited, ref.Reference); err != nil {
		return nil, t.failed(ref.Registry, err)
	}
	return a, nil
}

// read reads the manifest.
func (a *Artifact) read(ctx context.Context, reference string) error {
	desc, body, err := a.repository.FetchReference(ctx, reference)
	if err != nil {
		return err
	}
	defer body.Close()
	if desc.Size > maxManifest {
		return unsuitable("its manifest has %d bytes", desc.Size)
	}
	text, err := content.ReadAll(body, desc)
	if err != nil {
		return err
	}
	a.Digest = desc.Digest.String()
	a.Files, err = files(desc.MediaType, text)
	return err
}

// Open opens a file. The last Read fails if its content is not what the manifest says.
func (a *Artifact) Open(file File) (io.ReadCloser, error) {
	t, at := a.turn, a.repository.Reference.Registry
	if err := t.fetcher.rests(t.namespace, at); err != nil {
		return nil, err
	}
	limited, cancel := context.WithCancel(t.place)
	body, err := a.repository.Blobs().Fetch(limited, file.blob)
	if err != nil {
		cancel()
		return nil, t.failed(at, err)
	}
	return &reading{
		from: content.NewVerifyReader(body, file.blob), body: body, end: cancel,
		silence: t.fetcher.silence, impatient: time.AfterFunc(t.fetcher.silence, cancel),
		failed: func(err error) error { return t.failed(at, err) },
	}, nil
}

// reading is a file that is being read.
type reading struct {
	from      *content.VerifyReader
	body      io.Closer
	end       func()
	silence   time.Duration
	impatient *time.Timer // ends the request
	failed    func(error) error
}

func (r *reading) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.impatient.Reset(r.silence)
	if errors.Is(err, io.EOF) {
		if r.from.Verify() == nil {
			return n, io.EOF
		}
		return n, unsuitable("the registry delivers another content than its manifest says")
	}
	if err != nil {
		return n, r.failed(err)
	}
	return n, nil
}

func (r *reading) Close() error {
	r.impatient.Stop()
	defer r.end()
	return r.body.Close()
}

// failed explains an error and leaves a registry alone that does not answer. If the place has been given back, or was
// kept too long, nothing is known about the registry.
func (t *Turn) failed(at string, err error) error {
	if t.place.Err() != nil {
		return context.Cause(t.place)
	}
	return t.fetcher.noted(t.namespace, at, explain(err, at))
}
