package inputs

import (
	"io"
	"os"
	"path/filepath"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/inputs/uploads"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// upload is a file that is staged as a link to it: it never changes.
type upload struct{ path, sum string }

// at makes the link.
func (u upload) at(name string) error {
	err := os.MkdirAll(filepath.Dir(name), 0o755) // #nosec G301 -- below a directory of mode 0700
	if err != nil {
		return err
	}
	err = os.Link(u.path, name)
	if isMissing(err) {
		return noUpload(uploads.Prefix + u.sum)
	}
	return err
}

func noUpload(name string) error {
	return waiting(
		ReasonUploadNotFound,
		"there is no upload %s in this namespace: make it with htcd upload FILE, or htcd submit --input",
		name,
	)
}

// upload finds one.
func (b Bringer) upload(namespace, name string) (*file, error) {
	digest, err := uploads.Digest(name)
	if err != nil {
		return nil, condor.Refusal("%w", err)
	}
	path, err := b.Uploads.Path(namespace, name)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if isMissing(err) {
		return nil, noUpload(name)
	}
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return os.Open(path) } // #nosec G304 -- of checked names
	return &file{mode: 0o644, size: info.Size(), open: open, link: &upload{path, digest}}, nil
}

// UploadsOf names the uploads among inputs.
func UploadsOf(list []v1alpha1.Input) (all []string) {
	for _, in := range list {
		if in.Upload != "" {
			all = append(all, in.Upload)
		}
	}
	return all
}
