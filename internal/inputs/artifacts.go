package inputs

import (
	"context"
	"errors"
	"io"
	"path"

	"htc.cern.ch/htcd/internal/artifact"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
)

// Artifacts asks registries.
type Artifacts interface {
	Resolve(ctx context.Context, namespace, reference string, dockerConfig []byte) (*artifact.Artifact, error)
}

// addArtifact adds the files of an artifact: one that is called as the input, or several in a directory of that name.
func (b Bringer) addArtifact(ctx context.Context, r *Ready, namespace string, in v1alpha1.Input) error {
	a, err := b.Artifacts.Resolve(ctx, namespace, in.Artifact, nil)
	if e, is := errors.AsType[*artifact.Unusable](err); is && e.Reason == artifact.ReasonNotFound && in.Optional {
		return nil
	}
	if err != nil {
		return notFetched(in, err)
	}
	for _, f := range a.Files {
		open := func() (io.ReadCloser, error) {
			from, err := a.Open(ctx, f)
			if err != nil {
				return nil, notFetched(in, err)
			}
			return download{from, in}, nil
		}
		r.files = append(r.files, file{path: path.Join(shared, in.Name, f.Name), mode: 0o644, size: f.Size, open: open})
	}
	return nil
}

// download is a file of an artifact that is being read.
type download struct {
	io.ReadCloser
	in v1alpha1.Input
}

func (d download) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = notFetched(d.in, err)
	}
	return n, err
}

func notFetched(in v1alpha1.Input, err error) error {
	if e, is := errors.AsType[*artifact.Unusable](err); is {
		return &Waiting{Reason: e.Reason, Message: in.Name + ": the artifact " + in.Artifact + ": " + e.Message, Usual: e.Reason == artifact.ReasonWaits}
	}
	return err
}
