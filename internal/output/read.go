package output

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"
)

// numbered lists the children of a directory whose names are numbers, in order.
func numbered(dir string) ([]int, error) {
	d, err := os.Open(dir) // #nosec G304 -- below the root, of checked names
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil && n >= 0 && strconv.Itoa(n) == name {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// Open opens a file of a proc's output for reading: Stdout, Stderr or any other path below its directory. Only a
// regular file is opened, and no symbolic link that leads out of the directory is followed. fs.ErrNotExist if the
// proc's output, or that file, does not exist.
func (s Store) Open(a Attempt, proc int, file string) (*os.File, error) {
	root, err := s.procRoot(a, proc)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return Regular(root, file)
}

func (s Store) procRoot(a Attempt, proc int) (*os.Root, error) {
	dir, err := s.ProcDir(a, proc)
	if err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

// ErrNotRegular says that something is no regular file.
var ErrNotRegular = errors.New("not a regular file")

// Regular opens a regular file below root for reading. It never blocks, not even on a pipe.
func Regular(root *os.Root, file string) (*os.File, error) {
	f, err := root.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: file, Err: ErrNotRegular}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Archive writes the output of some procs, or of all when none is named, as a tar stream: <proc>/<path>. Only
// directories and regular files are included: a symbolic link made by a job could point anywhere on the reader's
// machine.
func (s Store) Archive(ctx context.Context, w io.Writer, a Attempt, procs ...int) error {
	if len(procs) == 0 {
		all, err := s.Procs(a)
		if err != nil {
			return err
		}
		procs = all
	}
	return s.tar(w, a, procs, func(out *tar.Writer, root *os.Root, proc int) error {
		return archive(ctx, out, root, proc, nil)
	})
}

// ArchiveFile writes as Archive does, but one file alone, of those procs that have it.
func (s Store) ArchiveFile(ctx context.Context, w io.Writer, a Attempt, file string, procs ...int) error {
	return s.tar(w, a, procs, func(out *tar.Writer, root *os.Root, proc int) error {
		info, err := root.Lstat(file)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			return nil
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			return nil
		}
		return add(out, root, proc, file)
	})
}

// tar writes what write adds of each proc as a tar stream.
func (s Store) tar(
	w io.Writer, a Attempt, procs []int, write func(out *tar.Writer, root *os.Root, proc int) error,
) error {
	out := tar.NewWriter(w)
	for _, proc := range procs {
		root, err := s.procRoot(a, proc)
		if err == nil {
			err = errors.Join(write(out, root, proc), root.Close())
		}
		if err != nil {
			return fmt.Errorf("archive proc %d: %w", proc, err)
		}
	}
	return out.Close()
}

// archive writes a directory: <number>/<path>. The records are part of the header of the directory itself.
func archive(ctx context.Context, out *tar.Writer, root *os.Root, number int, records map[string]string) error {
	return fs.WalkDir(Tree{root}, ".", func(name string, entry fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		switch {
		case entry.IsDir():
			as := path.Join(strconv.Itoa(number), name)
			header := &tar.Header{Typeflag: tar.TypeDir, Name: as + "/", Mode: 0o755}
			if name == "." {
				header.PAXRecords = records
			}
			return out.WriteHeader(header)
		case !entry.Type().IsRegular():
			return nil
		}
		return add(out, root, number, name)
	})
}

// add writes a file: <number>/<name>.
func add(out *tar.Writer, root *os.Root, number int, name string) error {
	f, err := Regular(root, name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	mode := int64(0o644)
	if info.Mode()&0o100 != 0 {
		mode = 0o755
	}
	as := path.Join(strconv.Itoa(number), name)
	if err := out.WriteHeader(
		&tar.Header{Typeflag: tar.TypeReg, Name: as, Mode: mode, Size: info.Size(), ModTime: info.ModTime()},
	); err != nil {
		return err
	}
	_, err = io.CopyN(out, f, info.Size())
	return err
}

// Files calls fn for every regular file in the output of some procs, in the order of the procs and of the paths.
func (s Store) Files(
	ctx context.Context,
	a Attempt,
	procs []int,
	fn func(proc int, path string, size int64) error,
) error {
	for _, proc := range procs {
		dir, err := s.ProcDir(a, proc)
		if err != nil {
			return err
		}
		err = walk(ctx, dir, func(path string, size int64) error { return fn(proc, path, size) })
		if err != nil {
			return fmt.Errorf("list proc %d: %w", proc, err)
		}
	}
	return nil
}

// walk calls fn for every regular file below a directory.
func walk(ctx context.Context, dir string, fn func(path string, size int64) error) error {
	return filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		path, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		return fn(path, info.Size())
	})
}

// Tail returns the end of a file: limited to a number of lines (0: any) and of bytes, as printable UTF-8, without a
// line break at its end. A line that does not fit is cut at its beginning.
func Tail(f *os.File, lines, size int) (string, error) {
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	from := max(0, info.Size()-int64(size))
	buf := make([]byte, info.Size()-from)
	n, err := f.ReadAt(buf, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	buf = buf[:n]
	for from > 0 && len(buf) > 0 && !utf8.RuneStart(buf[0]) { // the cut went through a character
		buf = buf[1:]
	}
	return End(string(buf), lines, size), nil
}

// End is Tail for a text.
func End(text string, lines, size int) string {
	text = strings.TrimRight(strings.Map(printable, text), "\n ")
	at := len(text)
	for i := 0; i < lines && at >= 0; i++ {
		at = strings.LastIndexByte(text[:at], '\n')
	}
	if lines > 0 {
		text = text[at+1:]
	}
	return within(text, size)
}

// printable keeps what a terminal shows and does not act upon.
func printable(r rune) rune {
	switch {
	case r == '\n', r == '\t', r != utf8.RuneError && unicode.IsPrint(r):
		return r
	case r == '\r':
		return -1
	}
	return '?'
}

// within cuts the beginning of a text that is too long.
func within(text string, size int) string {
	if len(text) <= size {
		return text
	}
	text = text[len(text)-size:]
	for text != "" && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}
