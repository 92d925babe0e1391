package output

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Matching lists the regular files of a job or node that a declared path stands for, as Tree.Matching does. dir is the
// directory below that of the attempt. It stops after that many.
func (s Store) Matching(ctx context.Context, a Attempt, dir, pattern string, most int) (files []string, err error) {
	attempt, err := s.AttemptDir(a)
	if err != nil {
		return nil, err
	}
	if !filepath.IsLocal(dir) {
		return nil, fs.ErrInvalid
	}
	root, err := os.OpenRoot(filepath.Join(attempt, dir))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	err = Tree{root}.Matching(pattern, func(file string) error {
		files = append(files, file)
		if len(files) == most {
			return fs.SkipAll
		}
		return ctx.Err()
	})
	return files, err
}

// Matching calls fn with each regular file that a declared path stands for: what a shell's pattern matches, with
// everything in directories. An empty path stands for all but HTCondor's and htcd's own. fn may return fs.SkipAll.
func (t Tree) Matching(pattern string, fn func(file string) error) error {
	parts := strings.Split(pattern, "/")
	return fs.WalkDir(t, ".", func(file string, entry fs.DirEntry, err error) error {
		switch depth := 1 + strings.Count(file, "/"); {
		case err != nil || file == ".":
			return err
		case entry.IsDir():
			if leads := strings.Join(parts[:min(depth, len(parts))], "/"); !stands(leads, file) {
				return fs.SkipDir
			}
			return nil
		case !entry.Type().IsRegular() || !stands(pattern, file):
			return nil
		}
		return fn(file)
	})
}

// stands is Matches, also for an empty path.
func stands(pattern, file string) bool {
	if pattern == "" {
		return !strings.HasPrefix(file, "_condor") && !strings.HasPrefix(file, ".htcd")
	}
	return Matches(pattern, file)
}

// Matches reports whether a declared path stands for a file, or for a directory in which it is. Like a shell's pattern,
// it matches no name that begins with a dot; HTCondor's own files are nobody's output.
func Matches(pattern, file string) bool {
	if strings.HasPrefix(file, "_condor") {
		return false
	}
	parts, names := strings.Split(pattern, "/"), strings.Split(file, "/")
	if len(names) < len(parts) {
		return false
	}
	for i, part := range parts {
		if part == names[i] {
			continue
		}
		// Where a shell writes [!x], path.Match wants [^x].
		is, err := path.Match(strings.ReplaceAll(part, "[!", "[^"), names[i])
		if err != nil || !is || strings.HasPrefix(names[i], ".") {
			return false
		}
	}
	return filepath.IsLocal(file) && path.Clean(file) == file // jobs leave names that are no UTF-8, too
}
