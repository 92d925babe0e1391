package submit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Stage writes a sandbox and the run's tokens into dir, which must exist, replacing existing files: that of the
// callbacks, and that of Description.PullURL, if there is one. Everything is on disk when it returns, so that
// condor_submit never waits for a file while it blocks the schedd; only the small files of single procs may still be in
// memory, since 10,000 waits for the disk would take longer than the submission.
func Stage(dir string, s Sandbox, tokens ...string) error {
	var lines [2]string
	copy(lines[:], tokens)
	head := strings.Join(lines[:], "\n") + "\n"
	own := false
	var archived []File
	for _, f := range s.Files {
		if f.OfProc {
			own = true
			if s.Factory > 0 {
				archived = append(archived, f)
				continue
			}
			f.Content = head + f.Content
		}
		if err := f.write(dir); err != nil {
			return fmt.Errorf("stage %s: %w", f.Name, err)
		}
	}
	if len(archived) > 0 {
		if err := archiveOwn(dir, head, archived); err != nil {
			return fmt.Errorf("stage %s: %w", fileOwnAll, err)
		}
	}
	if !own {
		if err := (File{Name: fileToken, Mode: 0o600, Content: head}).write(dir); err != nil {
			return fmt.Errorf("stage %s: %w", fileToken, err)
		}
	}
	return syncDir(dir)
}

// Each calls fn for the size of each file that Stage writes.
func (s Sandbox) Each(fn func(bytes int64)) error {
	for _, f := range s.Files {
		size := int64(len(f.Text()))
		if f.From != "" {
			info, err := os.Stat(f.From)
			if err != nil {
				return err
			}
			size = info.Size()
		}
		fn(size)
	}
	fn(0) // the tokens, unless they are in the files of procs
	return nil
}

// write creates a new file: an existing one may have another mode.
func (f File) write(dir string) error {
	var content io.Reader = strings.NewReader(f.Content)
	if f.From != "" {
		from, err := os.Open(f.From)
		if err != nil {
			return err
		}
		defer from.Close()
		content = from
	}
	name := filepath.Join(dir, f.Name)
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	to, err := os.OpenFile(
		name,
		os.O_WRONLY|os.O_CREATE|os.O_EXCL,
		f.Mode,
	) // #nosec G304 -- a name checked by Render, in a run's staging directory
	if err != nil {
		return err
	}
	_, err = io.Copy(to, content)
	err = errors.Join(err, to.Chmod(f.Mode))
	if !f.OfProc {
		err = errors.Join(err, to.Sync())
	}
	return errors.Join(err, to.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir) // #nosec G304 -- dir is a run's staging directory
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// StagedProcs reads the last line of job.sub.
func StagedProcs(dir string) (int, error) {
	text, err := os.ReadFile(filepath.Join(dir, FileSubmit)) // #nosec G304 -- dir is a run's staging directory
	if err != nil {
		return 0, fmt.Errorf("submit: %w", err)
	}
	if m := queueRE.FindSubmatch(text); m != nil {
		return strconv.Atoi(string(m[1]))
	}
	if m := queueTableRE.FindSubmatch(text); m != nil {
		return bytes.Count(m[1], []byte("\n")), nil
	}
	return 0, fmt.Errorf("submit: %s was not written by Stage", filepath.Join(dir, FileSubmit))
}

var queueRE = regexp.MustCompile(`(?m)^queue (\d+)\n$`)
