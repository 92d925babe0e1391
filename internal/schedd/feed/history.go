package feed

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unique"
)

const (
	// maxLeft is how many jobs of the history are known, the newest.
	maxLeft = 100_000
	// maxHistory is how much of the history is read at the start, in bytes, in whole files; at least two.
	maxHistory = 1 << 30
)

// Of a job in the history these attributes are held; the others are read when they are asked for.
var heldOfLeft = []name{
	nameOf(
		"ClusterId",
	), nameOf("ProcId"), tags[0], tags[1], nameOf("HTCJobAttempt"), nameOf("HTCWorkflowDAG"), nameOf("HTCNode"), owner,
}

// left is a job in the history.
type left struct {
	number
	known    ad
	of       *leftFile
	from, to int64 // its ad, in the file
}

type leftFile struct {
	f    *os.File
	info os.FileInfo
	at   int64 // up to which it has been read
}

// history follows the schedd's history file and those that it has been rotated to. It only reads.
type history struct {
	path   string
	owners Owners
	files  []*leftFile // the last is that at path, if there is one
	jobs   []left      // in their order
}

func (h *history) close() {
	for _, f := range h.files {
		_ = f.f.Close() // nothing was written
	}
	h.files, h.jobs = nil, nil
}

// follow reads what is new. A schedd that has written no history yet has none.
func (h *history) follow() error {
	now, err := os.Stat(h.path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if n := len(h.files); err == nil &&
		(n == 0 || !os.SameFile(now, h.files[n-1].info) || now.Size() < h.files[n-1].at) {
		if err := h.rotate(); err != nil {
			return err
		}
	}
	for _, f := range h.files[max(0, len(h.files)-1):] {
		if err := h.read(f); err != nil {
			return err
		}
	}
	return nil
}

// rotate finds the files that there are now, and reads those to their ends that have been rotated away.
func (h *history) rotate() error {
	paths, err := filepath.Glob(globbed.Replace(h.path) + ".[0-9]*T*")
	if err != nil {
		return err
	}
	slices.Sort(paths) // their names end with the time
	paths = append(paths, h.path)
	var files []*leftFile
	total := int64(0)
	for i := len(paths) - 1; i >= 0; i-- {
		f, err := h.open(paths[i])
		if errors.Is(err, os.ErrNotExist) {
			continue // rotated again just now
		}
		if err != nil {
			return err
		}
		if total += f.info.Size(); total > maxHistory && len(files) > 1 && !slices.Contains(h.files, f) {
			_ = f.f.Close()
			break
		}
		files = append(files, f)
	}
	slices.Reverse(files)
	for _, f := range h.files {
		if !slices.Contains(files, f) {
			_ = f.f.Close()
			h.jobs = slices.DeleteFunc(slices.Clone(h.jobs), func(l left) bool { return l.of == f })
		}
	}
	h.files = files
	for _, f := range files {
		if err := h.read(f); err != nil {
			return err
		}
	}
	return nil
}

var globbed = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`)

// open returns the file at a path, the one that is open already if that is the same.
func (h *history) open(path string) (*leftFile, error) {
	f, err := os.Open(path) // #nosec G304 -- the administrator names it
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	for _, known := range h.files {
		if os.SameFile(known.info, info) && info.Size() >= known.at {
			_ = f.Close()
			return known, nil
		}
	}
	return &leftFile{f: f, info: info}, nil
}

// read takes note of the ads that have been added to a file. Each ends with a line that begins with ***.
func (h *history) read(f *leftFile) error {
	info, err := f.f.Stat()
	if err != nil || info.Size() <= f.at {
		return err
	}
	lines := newLineReader(f.f, f.at, info.Size(), maxSeen)
	known := ad{}
	for {
		before := lines.at
		line, _, err := lines.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case !strings.HasPrefix(line, "***"):
			if at, is := attributeOf(line, false); is && slices.Contains(heldOfLeft, at.name) {
				known = append(known, at)
			}
			continue
		}
		h.add(left{known: known, of: f, from: f.at, to: before})
		f.at, known = lines.at, ad{}
	}
}

// add takes note of a job that is one of htcd's.
func (h *history) add(l left) {
	l.cluster, l.proc = l.known.number("ClusterId"), l.known.number("ProcId")
	tagged := slices.ContainsFunc(tags, func(t name) bool { return l.known.find(t) >= 0 })
	if !tagged || l.cluster < 1 || l.proc < 0 || !h.owners.Has(l.known.text(owner)) {
		return
	}
	if h.jobs = append(h.jobs, l); len(h.jobs) >= 2*maxLeft {
		h.jobs = slices.Clone(h.jobs[len(h.jobs)-maxLeft:])
	}
}

// attributeOf reads a line "Name = value".
func attributeOf(line string, cut bool) (at attribute, is bool) {
	shown, value, is := strings.Cut(line, " = ")
	if !is || shown == "" || private(shown) {
		return at, false
	}
	if at = (attribute{name: nameOf(shown), shown: unique.Make(shown), value: value, cut: cut}); cut {
		at.value = ""
	}
	return at, true
}

// ad reads a job's complete ad.
func (l left) ad() (ad, error) {
	lines := newLineReader(l.of.f, l.from, l.to, maxValue)
	var all ad
	for lines.at < l.to {
		line, cut, err := lines.next()
		if err != nil {
			return nil, err
		}
		if at, is := attributeOf(line, cut); is {
			if i := all.find(at.name); i >= 0 {
				all = slices.Delete(all, i, i+1) // the last one counts
			}
			all = append(all, at)
		}
	}
	return all, nil
}
