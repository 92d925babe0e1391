package inputs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/artifact"
	"htc.cern.ch/htcd/internal/inputs/jobsecrets"
)

// Artifacts fetches from registries, by turns.
type Artifacts interface {
	For(key string, references []string) *artifact.Turn
	OnTurn(call func(key string))
}

// References names the artifacts that are fetched for an HTCJob.
func References(spec v1alpha1.HTCJobSpec) (all []string) {
	for _, in := range spec.Inputs {
		if in.Artifact != "" {
			all = append(all, in.Artifact)
		}
	}
	return all
}

// addArtifact adds the files of an artifact: one that is called as the input, or several in a directory of that name.
func (b Bringer) addArtifact(ctx context.Context, r *Ready, job *v1alpha1.HTCJob, in v1alpha1.Input) error {
	configs, err := DockerConfigs(ctx, b.Secrets, job)
	if err != nil {
		return err
	}
	a, err := b.Artifacts.Resolve(ctx, in.Artifact, configs...)
	if e, is := errors.AsType[*artifact.Unusable](err); is && e.Reason == artifact.ReasonNotFound && in.Optional {
		return nil
	}
	if err != nil {
		return notFetched(in, err)
	}
	for _, f := range a.Files {
		open := func() (io.ReadCloser, error) {
			from, err := a.Open(f)
			if err != nil {
				return nil, notFetched(in, err)
			}
			return download{from, in}, nil
		}
		name := f.Name
		if in.Name == "" { // files of a pull keep their names
			name = f.Title
		}
		r.files = append(r.files, file{path: path.Join(shared, in.Name, name), mode: 0o644, size: f.Size, open: open})
	}
	r.fetches = append(r.fetches, in.Name)
	return nil
}

// Fetches says what Stage fetches from registries; empty: nothing.
func (r *Ready) Fetches() string {
	if len(r.fetches) == 0 {
		return ""
	}
	return fmt.Sprintf(
		"%s: being fetched from the registry; all inputs together have %d KiB",
		strings.Join(r.fetches, ", "),
		r.bytes>>10,
	)
}

// maxDockerConfig is the greatest size of credentials for registries, in bytes.
const maxDockerConfig = 64 << 10

// DockerConfigs returns the credentials of an HTCJob for registries. While one is missing, the error is a *Waiting.
func DockerConfigs(ctx context.Context, secrets Secrets, job *v1alpha1.HTCJob) (configs [][]byte, err error) {
	for _, c := range job.Spec.Credentials {
		if c.As != v1alpha1.Registry {
			continue
		}
		config, err := secrets.Read(ctx, job.Namespace, c.SecretKeyRef.Name, c.SecretKeyRef.Key, maxDockerConfig)
		if e, is := errors.AsType[*jobsecrets.Unusable](err); is {
			return nil, &Waiting{Reason: e.Reason, Message: "the credential " + c.Name + ": " + e.Message}
		}
		if err != nil {
			return nil, fmt.Errorf("the credential %s: %w", c.Name, err)
		}
		configs = append(configs, config)
	}
	return configs, nil
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
		return &Waiting{
			Reason:  e.Reason,
			Message: in.Name + ": the artifact " + in.Artifact + ": " + e.Message,
			Usual:   e.Reason == artifact.ReasonWaits,
		}
	}
	return err
}
