package plugin

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"htc.cern.ch/htcd/internal/inputs/uploads"
)

// packed returns a directory as an archive to be uploaded: a file that has no name any more. It has the directory's
// files and directories by their names, modes and contents, so that the same ones are the same upload.
func packed(dir string) (f toUpload, err error) {
	to, err := os.CreateTemp("", "htcd-upload-")
	if err != nil {
		return f, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("pack the directory %s: %w", dir, err), to.Close())
		}
	}()
	if err := os.Remove(to.Name()); err != nil {
		return f, err
	}
	sum := sha256.New()
	if err := pack(dir, io.MultiWriter(to, sum)); err != nil {
		return f, err
	}
	size, err := to.Seek(0, io.SeekEnd)
	return toUpload{path: dir, upload: fmt.Sprintf("%s%x", uploads.Prefix, sum.Sum(nil)), size: size, archive: to}, err
}

func pack(dir string, to io.Writer) error {
	compressed, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		name, relErr := filepath.Rel(dir, path)
		if err = errors.Join(err, relErr); err != nil || name == "." {
			return err
		}
		return add(archive, path, filepath.ToSlash(name))
	})
	return errors.Join(err, archive.Close(), compressed.Close())
}

// add adds a file, which may be a link to one, or a directory.
func add(to *tar.Writer, path, name string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: 0o644, Format: tar.FormatPAX}
	switch link, err := os.Lstat(path); {
	case err != nil:
		return err
	case info.IsDir() && link.IsDir():
		return to.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, Format: tar.FormatPAX})
	case info.IsDir():
		return fmt.Errorf("%s is a link to a directory: put a copy there, or name the directory itself", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no file and no directory", path)
	}
	if info.Mode()&0o100 != 0 {
		header.Mode = 0o755
	}
	from, err := os.Open(path) // #nosec G304 -- the user's own
	if err != nil {
		return err
	}
	defer from.Close()
	if err := to.WriteHeader(header); err != nil {
		return err
	}
	if _, err := io.Copy(to, from); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
