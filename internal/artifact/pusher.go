package artifact

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
)

const (
	toPush   = time.Hour       // for a file
	toAccept = 2 * time.Minute // for a registry to answer after it has got a file
)

// The types that oras gives to files of which it knows none.
const (
	artifactType = "application/vnd.unknown.artifact.v1"
	fileType     = "application/octet-stream"
)

// Pusher pushes artifacts, and deletes them. It is safe for concurrent use.
type Pusher struct {
	client
	silence time.Duration
}

// NewPusher returns a Pusher for these registries.
func NewPusher(allowed Registries) *Pusher {
	return &Pusher{client: newClient(allowed, toAccept), silence: silence}
}

// Upload is a file that becomes part of an artifact.
type Upload struct {
	Name string // a relative path
	Open func() (io.ReadCloser, error)
}

// ownerAnnotation names, in the manifest of an artifact, whose it is.
const ownerAnnotation = "ch.cern.htc.owner"

// Target is where an artifact is pushed to.
type Target struct {
	Reference string
	// Namespace is who pushes. If the registry fails to answer one, it is left alone by that one only.
	Namespace string
	// Owner is whose it is: equal files of different owners make different artifacts, so that each can be deleted
	// alone. Empty: nobody's.
	Owner string
}

// Pushed is an artifact in its registry.
type Pushed struct {
	Digest string // of its manifest
	Size   int64  // of its files together
}

// Push makes an artifact of files. Equal files make an equal artifact, whenever they are pushed, and what the registry
// has already is not sent again. last is asked, with the digest of the manifest, before the reference gets its new
// meaning. dockerConfigs are as for Resolve. The error is an *Unusable, or that of Open or last.
func (p *Pusher) Push(
	ctx context.Context,
	target Target,
	files []Upload,
	last func(digest string) error,
	dockerConfigs ...[]byte,
) (Pushed, error) {
	repository, err := p.at(target, dockerConfigs)
	if err != nil {
		return Pushed{}, err
	}
	if err := checkUploads(files); err != nil {
		return Pushed{}, err
	}
	to := &pushing{p, repository, target.Namespace}
	manifest := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		ArtifactType: artifactType, Config: ocispec.DescriptorEmptyJSON,
	}
	if target.Owner != "" {
		manifest.Annotations = map[string]string{ownerAnnotation: target.Owner}
	}
	var done Pushed
	for _, f := range files {
		layer, err := to.file(ctx, f)
		if err != nil {
			return Pushed{}, err
		}
		manifest.Layers = append(manifest.Layers, layer)
		done.Size += layer.Size
	}
	text, err := json.Marshal(manifest)
	if err != nil {
		return Pushed{}, err
	}
	desc := content.NewDescriptorFromBytes(ocispec.MediaTypeImageManifest, text)
	done.Digest = desc.Digest.String()
	return done, to.manifest(ctx, desc, text, last)
}

// at returns the repository of a target, unless its registry is left alone at present.
func (p *Pusher) at(target Target, dockerConfigs [][]byte) (*remote.Repository, error) {
	if err := p.allowed.CheckTarget(target.Reference); err != nil {
		return nil, unusable(ReasonForbidden, "%v", err)
	}
	ref, err := parseReference(target.Reference)
	if err != nil {
		return nil, err
	}
	if err := p.rests(target.Namespace, ref.Registry); err != nil {
		return nil, err
	}
	return p.repository(ref, dockerConfigs)
}

// checkUploads refuses what could not be an input again.
func checkUploads(files []Upload) error {
	var all []File
	for _, f := range files {
		all = append(all, File{Name: f.Name})
	}
	switch {
	case len(all) == 0:
		return unsuitable("it has no files")
	case len(all) > MaxFiles:
		return unsuitable("it has more than %d files: let the script make an archive of them", MaxFiles)
	}
	return checkTitles(all)
}

// pushing is a push to one repository.
type pushing struct {
	*Pusher
	to        *remote.Repository
	namespace string
}

// file sends a file, unless the repository has it.
func (p *pushing) file(ctx context.Context, f Upload) (layer ocispec.Descriptor, err error) {
	from, err := f.Open()
	if err != nil {
		return layer, err
	}
	digester := digest.SHA256.Digester()
	size, err := io.Copy(digester.Hash(), from)
	if err := from.Close(); err != nil {
		return layer, err
	}
	if err != nil {
		return layer, err
	}
	layer = ocispec.Descriptor{
		MediaType:   fileType,
		Digest:      digester.Digest(),
		Size:        size,
		Annotations: map[string]string{ocispec.AnnotationTitle: f.Name},
	}
	return layer, p.blob(ctx, layer, f.Open)
}

// blob sends a blob, unless the repository has it.
func (p *pushing) blob(ctx context.Context, desc ocispec.Descriptor, open func() (io.ReadCloser, error)) error {
	ctx, cancel := context.WithTimeout(ctx, toPush)
	defer cancel()
	if there, err := p.to.Blobs().Exists(ctx, desc); err == nil && there {
		return nil
	} // some registries let an account push that may not read
	from, err := open()
	if err != nil {
		return err
	}
	defer from.Close()
	body := &sending{from: from, silence: p.silence, impatient: time.AfterFunc(toAccept, cancel)}
	defer body.impatient.Stop()
	if err := p.to.Blobs().Push(ctx, desc, body); err != nil {
		return p.failed(err)
	}
	return nil
}

// manifest sends the manifest, and lets the tag name it.
func (p *pushing) manifest(
	ctx context.Context,
	desc ocispec.Descriptor,
	text []byte,
	last func(digest string) error,
) error {
	empty := func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(ocispec.DescriptorEmptyJSON.Data)), nil
	}
	if err := p.blob(ctx, ocispec.DescriptorEmptyJSON, empty); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, toAccept)
	defer cancel()
	tag := p.to.Reference.Reference
	// A registry may refuse a tag that it has, even if the manifest is the same.
	if there, err := p.to.Resolve(ctx, tag); err == nil && there.Digest == desc.Digest {
		return nil
	}
	if err := last(desc.Digest.String()); err != nil {
		return err
	}
	if err := p.to.PushReference(ctx, desc, bytes.NewReader(text), tag); err != nil {
		return p.failed(err)
	}
	return nil
}

func (p *pushing) failed(err error) error {
	at := p.to.Reference.Registry
	return p.noted(p.namespace, at, explainPush(err, at))
}

// sending is a file that is being sent. If the registry does not take more of it for a while, the request ends.
type sending struct {
	from      io.Reader
	silence   time.Duration
	impatient *time.Timer // ends the request
}

func (s *sending) Read(b []byte) (int, error) {
	n, err := s.from.Read(b)
	if err != nil {
		s.impatient.Reset(toAccept) // now it is to answer
	} else {
		s.impatient.Reset(s.silence)
	}
	return n, err
}
