package artifact

import (
	"context"
	"errors"
	"io"
	"time"

	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
)

const (
	mostFetches = 2                // at a time
	toResolve   = 20 * time.Second // for a manifest
	toFetch     = 10 * time.Minute // for a file
	silence     = 20 * time.Second // between two pieces of a file
)

// Fetcher fetches artifacts. It is safe for concurrent use.
type Fetcher struct {
	client
	silence time.Duration
	busy    map[string]bool // namespaces
}

// NewFetcher returns a Fetcher for these registries.
func NewFetcher(allowed Registries) *Fetcher {
	return &Fetcher{client: newClient(allowed, answerWithin), silence: silence, busy: map[string]bool{}}
}

// Artifact is what a reference named when it was resolved.
type Artifact struct {
	Digest string
	Files  []File

	fetcher    *Fetcher
	namespace  string
	repository *remote.Repository
}

// Resolve asks a registry for the artifact that a reference names now. dockerConfigs are contents of .dockerconfigjson: the first
// with credentials for the registry counts. The error is an *Unusable, that of CheckReference, or the context's.
func (f *Fetcher) Resolve(ctx context.Context, namespace, reference string, dockerConfigs ...[]byte) (*Artifact, error) {
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
	leave, err := f.enter(namespace, ref.Registry)
	if err != nil {
		return nil, err
	}
	defer leave()
	limited, cancel := context.WithTimeout(ctx, toResolve)
	defer cancel()
	a := &Artifact{fetcher: f, namespace: namespace, repository: repository}
	if err := a.read(limited, ref.Reference); err != nil {
		return nil, f.failed(ctx, ref.Registry, err)
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
func (a *Artifact) Open(ctx context.Context, file File) (io.ReadCloser, error) {
	at := a.repository.Reference.Registry
	leave, err := a.fetcher.enter(a.namespace, at)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, toFetch)
	end := func() { cancel(); leave() }
	body, err := a.repository.Blobs().Fetch(limited, file.blob)
	if err != nil {
		end()
		return nil, a.fetcher.failed(ctx, at, err)
	}
	return &reading{
		from: content.NewVerifyReader(body, file.blob), body: body, end: end,
		silence: a.fetcher.silence, impatient: time.AfterFunc(a.fetcher.silence, cancel),
		failed: func(err error) error { return a.fetcher.failed(ctx, at, err) },
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

// enter takes one of the places for requests, unless the registry is left alone at present.
func (f *Fetcher) enter(namespace, at string) (leave func(), err error) {
	if err := f.rests(at); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.busy[namespace] || len(f.busy) >= mostFetches {
		return nil, unusable(ReasonWaits, "it waits until other artifacts have been fetched")
	}
	f.busy[namespace] = true
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.busy, namespace)
	}, nil
}

// failed explains an error and leaves a registry alone that does not answer. If the caller's context has ended, nothing is known
// about the registry.
func (f *Fetcher) failed(ctx context.Context, at string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return f.noted(at, explain(err, at))
}
