package schedd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Stage writes the sandbox of a run into dir, which must exist: job.sub, job.sh, script, token (mode 0600) and, if d has
// them, .environment (mode 0600) and htcd-send, replacing existing files. Everything is on disk when it returns, so that
// condor_submit never waits for a file while it blocks the schedd. Errors of kind Refused are about d, others about dir.
func Stage(dir string, d Description, token string) error {
	sub, err := d.Render()
	if err != nil {
		return err
	}
	job, err := d.Wrapper()
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name, text string
		mode       fs.FileMode
	}{
		{fileJob, job, 0o755}, {fileScript, d.Source, 0o644}, {fileToken, token + "\n", 0o600}, {fileSubmit, sub, 0o644},
	} {
		if err := write(filepath.Join(dir, f.name), f.mode, func(w io.Writer) error {
			_, err := io.WriteString(w, f.text)
			return err
		}); err != nil {
			return fmt.Errorf("stage %s: %w", f.name, err)
		}
	}
	if len(d.Environment) > 0 {
		if err := write(filepath.Join(dir, fileEnvironment), 0o600, func(w io.Writer) error {
			_, err := io.WriteString(w, environmentFile(d.Environment))
			return err
		}); err != nil {
			return fmt.Errorf("stage %s: %w", fileEnvironment, err)
		}
	}
	if d.Sender != "" {
		if err := copySender(dir, d.Sender); err != nil {
			return fmt.Errorf("stage %s: %w", fileSender, err)
		}
	}
	return syncDir(dir)
}

func copySender(dir, from string) error {
	src, err := os.Open(from) // #nosec G304 -- the administrator's --ship-sender
	if err != nil {
		return err
	}
	defer src.Close()
	return write(filepath.Join(dir, fileSender), 0o755, func(w io.Writer) error {
		_, err := io.Copy(w, src)
		return err
	})
}

// write creates a new file: an existing one may have another mode.
func write(name string, mode fs.FileMode, fill func(io.Writer) error) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode) // #nosec G304 -- a fixed name in a run's staging directory
	if err != nil {
		return err
	}
	return errors.Join(fill(f), f.Chmod(mode), f.Sync(), f.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir) // #nosec G304 -- dir is a run's staging directory
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
