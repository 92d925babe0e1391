package plugin

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
)

// complete is the path in the manifest that stands for all files of a job: they are there.
const complete = ""

// whole reports whether all files of a job are where they were put.
func (l *landing) whole(proc int) bool {
	done := false
	for _, path := range l.of[proc] {
		if path == complete {
			done = true
			continue
		}
		if _, err := l.root.Lstat(path); err != nil {
			return false
		}
	}
	return done
}

// spread puts the files of a complete job to their places. Nothing is put there if one of them is not free.
func (l *landing) spread(proc int) error {
	type move struct{ from, to string }
	var moves []move
	taken := map[string]string{}
	u := l.unit
	for _, p := range slices.SortedStableFunc(slices.Values(l.placed), streamsLast) {
		if p.dir {
			continue
		}
		to, err := u.of(p.path)
		if err != nil {
			return err
		}
		if other := l.holder(to, proc, taken); other != "" {
			meant := to
			to = filepath.Join(u.home, streamName(p.path))
			if l.holder(to, proc, taken) != "" {
				to = filepath.Join(u.home, p.path)
			}
			for n := 1; l.holder(to, proc, taken) != ""; n++ {
				to = filepath.Join(u.home, p.path+"."+strconv.Itoa(n))
			}
			l.clashes = append(
				l.clashes,
				fmt.Sprintf("%s of %s is at %s, as %s is %s: write {{proc}} or {{item.NAME}} in %s",
					p.path, u.called, filepath.ToSlash(to), meant, other, u.field),
			)
		}
		owner, ours := l.owners[to]
		if _, err := l.root.Lstat(to); !errors.Is(err, fs.ErrNotExist) && (err != nil || !ours || owner != proc) {
			return l.notOurs(to)
		}
		taken[to] = p.path
		moves = append(moves, move{filepath.Join(part(proc), p.path), to})
	}
	paths := make([]string, len(moves))
	for i, m := range moves {
		paths[i] = m.to
	}
	if err := l.recordOf(proc, paths); err != nil {
		return err
	}
	for _, m := range moves {
		if err := l.root.MkdirAll(filepath.Dir(m.to), 0o777); err != nil {
			return err
		}
		if err := l.root.Rename(m.from, m.to); err != nil {
			return err
		}
	}
	if err := errors.Join(l.root.RemoveAll(part(proc)), l.recordOf(proc, []string{complete})); err != nil {
		return err
	}
	l.came++
	l.arrived(proc)
	return nil
}

// streamsLast orders a job's streams after its files, which keep their names where both have one.
func streamsLast(a, b landed) int { return cmp.Compare(len(streams[a.path]), len(streams[b.path])) }

// holder says whose a place is that cannot be this file's as well; empty: it is free, or a file's of before.
func (l *landing) holder(to string, proc int, taken map[string]string) string {
	if file, is := taken[to]; is {
		return "its " + file
	}
	if owner, is := l.owners[to]; is && owner != proc {
		if l.nodes {
			return "node " + cmp.Or(filepath.ToSlash(l.names[owner]), strconv.Itoa(owner)) + "'s"
		}
		return "job " + strconv.Itoa(owner) + "'s"
	}
	return ""
}

// recordOf adds paths of a job to the manifest.
func (l *landing) recordOf(proc int, paths []string) error {
	var lines []byte
	for _, path := range paths {
		if owner, is := l.owners[path]; path == complete || !is || owner != proc {
			lines = strconv.AppendQuote(lines, path)
			lines = append(strconv.AppendInt(append(lines, ' '), int64(proc), 10), '\n')
		}
	}
	if err := l.write(lines); err != nil {
		return err
	}
	for _, path := range paths {
		l.own(path, proc)
	}
	return nil
}

// own notes that a path is a job's.
func (l *landing) own(path string, proc int) {
	if l.owners == nil {
		l.owners, l.of = map[string]int{}, map[int][]string{}
	}
	l.owners[path] = proc
	l.of[proc] = append(l.of[proc], path)
}
