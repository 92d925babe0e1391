package plugin

import (
	"archive/tar"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// landing is the directory where an archive is unpacked. Nothing is written outside it, whatever the archive says: the
// jobs' programs have chosen the names.
type landing struct {
	root   *os.Root
	force  bool
	origin origin
	only   int // the wanted job; -1: all
	jobs   int // how many the attempt has; of nodes, how many are wanted
	nodes  bool
	names  map[int]string // of the directories of nodes, by their numbers
	places *places

	claimed bool
	owners  map[string]int   // the jobs of files that places has put there
	of      map[int][]string // the files of each of these jobs
	clashes []string         // what was meant for a place that another job's file has
	wrote   map[string]bool  // files that this command has put there for this attempt, by their path in root
	placed  []landed         // of the job being unpacked
	unit    unit             // that job, if places say where its files land
	has     map[int]bool     // the jobs whose output is there

	next        int // all jobs below are done
	came, there int

	terminal io.Writer // shows how many there are; nil: there is none
}

// landed is a file or directory of the job being unpacked, by its path in the job's directory.
type landed struct {
	path string
	dir  bool
}

// missing are the wanted jobs without output. Nodes have no numbers that a user knows.
func (l *landing) missing() []int {
	var missing []int
	if l.nodes {
		return nil
	}
	for proc := range l.jobs {
		if !l.has[proc] && (l.only < 0 || l.only == proc) {
			missing = append(missing, proc)
		}
	}
	return missing
}

func (l *landing) arrived(proc int) {
	if l.has == nil {
		l.has = map[int]bool{}
	}
	l.has[proc] = true
}

// unpack reads an archive in which the jobs come in order, each with all its files. Each is first unpacked into a
// directory of another name, which is renamed when it is complete.
func (l *landing) unpack(r io.Reader) (err error) {
	archive := tar.NewReader(r)
	current := -1 // the job being unpacked
	skip := false
	defer func() {
		if current >= 0 && !skip {
			err = errors.Join(err, l.root.RemoveAll(part(current)))
		}
	}()
	for {
		header, err := archive.Next()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		proc, rest, atEnd := -1, "", err != nil
		if !atEnd {
			if proc, rest, err = entry(header); err != nil {
				return errHere{err}
			}
		}
		if proc != current {
			if current >= 0 && !skip {
				if err := l.land(current); err != nil {
					return errHere{err}
				}
			}
			if current >= 0 {
				l.next = current + 1
			}
			if atEnd {
				current = -1
				return nil
			}
			if current, skip = proc, false; proc < l.next {
				return errHere{fmt.Errorf("the archive has job %d out of its turn", proc)}
			}
			if skip, err = l.begin(proc, header); err != nil {
				return errHere{err}
			}
		}
		if atEnd {
			return nil
		}
		if skip {
			continue
		}
		if err := l.place(proc, rest, header, archive); err != nil {
			return err
		}
	}
}

func part(proc int) string { return fmt.Sprintf(".htcd-%d.part", proc) }

// entry returns the job of an entry. Only files and directories are accepted: a link could lead anywhere.
func entry(header *tar.Header) (proc int, rest string, err error) {
	first, rest, _ := strings.Cut(strings.TrimSuffix(header.Name, "/"), "/")
	proc, err = strconv.Atoi(first)
	switch {
	case err != nil || proc < 0 || strconv.Itoa(proc) != first:
		return 0, "", fmt.Errorf("the archive has %q, which is no job's", header.Name)
	case rest != "" && !filepath.IsLocal(filepath.FromSlash(rest)):
		return 0, "", fmt.Errorf("the archive has %q, which would lead out of the directory", header.Name)
	case header.Typeflag != tar.TypeReg && header.Typeflag != tar.TypeDir || header.Typeflag == tar.TypeReg && rest == "":
		return 0, "", fmt.Errorf("the archive has %q, which is neither a file nor a directory", header.Name)
	}
	return proc, filepath.FromSlash(rest), nil
}

// name is the directory of a job.
func (l *landing) name(proc int) string {
	if l.nodes {
		return l.names[proc]
	}
	return strconv.Itoa(proc)
}

// call takes the name of a node from the first entry of its files.
func (l *landing) call(proc int, header *tar.Header) error {
	name := filepath.FromSlash(header.PAXRecords[aggregate.RecordNode])
	if !filepath.IsLocal(name) || strings.HasPrefix(name, ".") {
		return fmt.Errorf("the archive has %q without the name of a node", header.Name)
	}
	if l.names == nil {
		l.names = map[int]string{}
	}
	l.names[proc] = name
	return nil
}

// begin reports whether a job is there already.
func (l *landing) begin(proc int, first *tar.Header) (skip bool, err error) {
	if l.nodes {
		if err := l.call(proc, first); err != nil {
			return false, err
		}
	}
	name := l.name(proc)
	switch {
	case l.places != nil && l.nodes:
		l.unit = l.places.node(name, first)
	case l.places != nil:
		l.unit = l.places.job(proc)
	}
	_, err = l.root.Lstat(name)
	switch {
	case l.places != nil && l.whole(proc) && !l.force:
		l.there++
		l.arrived(proc)
		return true, nil
	case l.places != nil:
	case err == nil && !l.wrote[name]:
		return false, l.notOurs(name)
	case err == nil && !l.force:
		l.there++
		l.arrived(proc)
		return true, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	l.placed = nil
	if err := l.root.RemoveAll(part(proc)); err != nil {
		return false, err
	}
	return false, l.root.Mkdir(part(proc), 0o777)
}

func (l *landing) notOurs(path string) error {
	return fmt.Errorf(
		"%s exists already, and is not output of %s, attempt %d: choose another directory, or move it away",
		filepath.Join(l.root.Name(), path),
		cmp.Or(l.origin.HTCJob, l.origin.HTCWorkflow),
		l.origin.Attempt,
	)
}

// place writes one file or directory of a job.
func (l *landing) place(proc int, rest string, header *tar.Header, r io.Reader) error {
	name := filepath.Join(part(proc), rest)
	if header.Typeflag == tar.TypeDir {
		l.placed = append(l.placed, landed{rest, true})
		return local(l.root.MkdirAll(name, 0o777))
	}
	l.placed = append(l.placed, landed{rest, false})
	if err := l.root.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return errHere{err}
	}
	mode := fs.FileMode(0o666)
	if header.Mode&0o100 != 0 {
		mode = 0o777
	}
	file, err := l.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return errHere{err}
	}
	_, err = copyTo(file, r)
	if closing := file.Close(); err == nil {
		err = local(closing)
	}
	if err == nil {
		err = local(l.root.Chtimes(name, header.ModTime, header.ModTime))
	}
	return err
}

// local marks an error on this side, if it is one.
func local(err error) error {
	if err != nil {
		return errHere{err}
	}
	return nil
}

// land gives a complete job its name, and its streams theirs unless it has files of these names.
func (l *landing) land(proc int) error {
	if l.places != nil {
		return l.spread(proc)
	}
	if err := l.nameStreams(proc); err != nil {
		return err
	}
	name := l.name(proc)
	paths := []string{name}
	for _, p := range l.placed {
		paths = append(paths, filepath.Join(name, p.path))
	}
	_, err := l.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := l.record(paths); err != nil {
			return err
		}
		if err := l.root.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			return err
		}
		err = l.root.Rename(part(proc), name)
	case err == nil:
		err = l.replace(proc, paths)
	}
	if err != nil {
		return err
	}
	l.came++
	if l.terminal != nil {
		of := l.jobs
		if l.only >= 0 {
			of = 1
		}
		fmt.Fprintf(l.terminal, "\r\x1b[K%d of %d %s", l.came+l.there, of, l.units())
	}
	l.arrived(proc)
	return nil
}

func (l *landing) nameStreams(proc int) error {
	for from, to := range streams {
		if _, err := l.root.Lstat(filepath.Join(part(proc), to)); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		for i := range l.placed {
			if l.placed[i].path != from {
				continue
			}
			if err := l.root.Rename(filepath.Join(part(proc), from), filepath.Join(part(proc), to)); err != nil {
				return err
			}
			l.placed[i].path = to
		}
	}
	return nil
}

// replace replaces an existing job by a complete one. Other people's files stay; if a file of the job has the name of
// such a file, it is refused before anything changes.
func (l *landing) replace(proc int, paths []string) error {
	name := l.name(proc)
	for _, p := range l.placed {
		path := filepath.Join(name, p.path)
		if _, err := l.root.Lstat(path); err == nil && !p.dir && !l.wrote[path] {
			return l.notOurs(path)
		}
	}
	if err := l.record(paths); err != nil {
		return err
	}
	for _, p := range l.placed {
		to := filepath.Join(name, p.path)
		if p.dir {
			if err := l.root.MkdirAll(to, 0o777); err != nil {
				return err
			}
			continue
		}
		if err := l.root.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return err
		}
		if err := l.root.Rename(filepath.Join(part(proc), p.path), to); err != nil {
			return err
		}
	}
	return l.root.RemoveAll(part(proc))
}
