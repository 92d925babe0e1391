package inputs

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

const (
	shared   = submit.InputsShared
	manifest = ".in.json"
)

// entry is a staged file, as the manifest lists it.
type entry struct {
	Path    string `json:"path"`
	Sum     string `json:"sum"`               // SHA-256 of the content
	Version string `json:"version,omitempty"` // of a Secret
}

// listedSize is what the manifest has of a file beside its path and version.
const listedSize = 128

// Stage writes the inputs into the directory of a run, replacing any that are there, and returns their digest. The
// manifest is written last: without it the files do not count. It ends early, like the opened sources, with the context
// that Resolve had.
func (r *Ready) Stage(dir string) (digest string, err error) {
	defer func() { err = stopped(r.ctx, err) }()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if err := remove(dir); err != nil {
		return "", err
	}
	into := filepath.Join(dir, submit.InputsDir)
	if err := os.Mkdir(into, 0o700); err != nil {
		return "", err
	}
	for _, name := range r.dirs() {
		if err := os.Mkdir(filepath.Join(into, name), 0o700); err != nil {
			return "", err
		}
	}
	entries := make([]entry, 0, len(r.files))
	for _, f := range r.files {
		sum, err := f.write(r.ctx, filepath.Join(into, f.path))
		if err != nil {
			return "", fmt.Errorf("stage %s: %w", f.path, err)
		}
		entries = append(entries, entry{f.path, sum, f.version})
	}
	if err := output.Sync(into); err != nil {
		return "", err
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.Path, b.Path) })
	text, err := json.Marshal(entries)
	if err != nil {
		return "", err
	}
	list := file{content: text, size: int64(len(text)), mode: 0o600}
	if _, err := list.write(r.ctx, filepath.Join(dir, manifest)); err != nil {
		return "", err
	}
	return digestOf(entries), output.Sync(dir)
}

// Needs returns how much Stage takes of the volume, which the caller books before.
func (r *Ready) Needs() output.Room {
	if r == nil {
		return output.Room{}
	}
	needs, list := output.Room{}, int64(0)
	for _, f := range r.files {
		room := output.FileRoom(f.size)
		if f.link != nil { // it is there already
			room = output.Room{}
		}
		needs, list = needs.Plus(room), list+int64(len(f.path)+len(f.version)+listedSize)
	}
	return needs.Plus(output.FileRoom(list)).Plus(output.Room{Files: int64(r.procs)})
}

// write writes the file, below a directory that exists or whose parent does, and returns the digest of its content.
func (f file) write(ctx context.Context, name string) (sum string, err error) {
	if f.link != nil {
		if err := f.link.at(name); err == nil || !errors.Is(err, syscall.EXDEV) {
			return f.link.sum, err
		}
	}
	var from io.Reader = bytes.NewReader(f.content)
	if f.open != nil {
		source, err := f.open()
		if isMissing(err) {
			return "", waiting(ReasonHTCJobNotEnded, "the file is gone: its HTCJob was deleted, or is run again")
		}
		if err != nil {
			return "", err
		}
		defer source.Close()
		from = source
	}
	err = os.MkdirAll(
		filepath.Dir(name),
		0o755,
	) // #nosec G301 -- below a directory of mode 0700; jobs get it with this mode
	if err != nil {
		return "", err
	}
	to, err := os.OpenFile(
		name,
		os.O_WRONLY|os.O_CREATE|os.O_EXCL,
		f.mode,
	) // #nosec G304 -- a checked name in a run's directory
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, hash), io.LimitReader(output.WhileNeeded(ctx, from), f.size+1))
	if err == nil && n != f.size {
		err = fmt.Errorf("expected %d bytes, found %d", f.size, n)
	}
	return hex.EncodeToString(hash.Sum(nil)), errors.Join(err, to.Chmod(f.mode), to.Close())
}

// digestOf identifies what was staged. A Secret counts by the version of its object: a digest of its content could be
// guessed from, if it is short.
func digestOf(entries []entry) string {
	hash := sha256.New()
	for _, e := range entries {
		fmt.Fprintf(hash, "%s %s\n", e.Path, cmp.Or(e.Version, e.Sum))
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}

// Staged returns the digest of the inputs that Stage left in the directory of a run; empty if they are not whole.
func Staged(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, manifest)) // #nosec G304 -- a run's directory
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var entries []entry
	if json.Unmarshal(text, &entries) != nil {
		return "", nil
	}
	root, err := os.OpenRoot(filepath.Join(dir, submit.InputsDir))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer root.Close()
	for _, e := range entries {
		sum, err := sumOf(root, e.Path)
		if err != nil && !isMissing(err) {
			return "", err
		}
		if sum != e.Sum {
			return "", nil
		}
	}
	return digestOf(entries), nil
}

func sumOf(root *os.Root, name string) (string, error) {
	f, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	hash := sha256.New()
	_, err = io.Copy(hash, f)
	return hex.EncodeToString(hash.Sum(nil)), err
}

// Owns reports whether an entry of a run's directory is of this package.
func Owns(name string) bool { return name == submit.InputsDir || name == manifest }

// remove removes the staged inputs of a run; none is no error.
func remove(dir string) error {
	if err := os.Remove(filepath.Join(dir, manifest)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(filepath.Join(dir, submit.InputsDir))
}
