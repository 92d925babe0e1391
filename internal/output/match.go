package output

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
)

// errEnough ends a walk.
var errEnough = errors.New("enough")

// Matching lists the regular files of a job or node that a declared path stands for, as paths in its directory: what a
// shell's pattern matches, with everything in directories. An empty path stands for all but HTCondor's and htcd's own.
// dir is the directory below that of the attempt. It stops after that many.
func (s Store) Matching(ctx context.Context, a Attempt, dir, pattern string, most int) ([]string, error) {
	attempt, err := s.AttemptDir(a)
	if err != nil {
		return nil, err
	}
	if !filepath.IsLocal(dir) {
		return nil, fs.ErrInvalid
	}
	var files []string
	err = walk(ctx, filepath.Join(attempt, dir), func(file string, _ int64) error {
		if pattern == "" && !strings.HasPrefix(file, "_condor") && !strings.HasPrefix(file, ".htcd") ||
			pattern != "" && Matches(pattern, file) {
			files = append(files, file)
		}
		if len(files) == most {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return files, err
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
