package output

import (
	"archive/tar"
	"context"
	"os"
	"path/filepath"
)

// A node of a workflow is named by its directory below that of the attempt.

// OpenAt opens a file of a workflow's node as Open does.
func (s Store) OpenAt(a Attempt, node, file string) (*os.File, error) {
	root, err := s.nodeRoot(a, node)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return Regular(root, file)
}

func (s Store) nodeRoot(a Attempt, node string) (*os.Root, error) {
	dir, err := s.AttemptDir(a)
	if err != nil {
		return nil, err
	}
	attempt, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer attempt.Close()
	return attempt.OpenRoot(node)
}

// ArchiveNode writes the output of a node to a tar stream, as Archive does: <number>/<path>. The first header has these
// records. fs.ErrNotExist if there is no output of it.
func (s Store) ArchiveNode(
	ctx context.Context,
	out *tar.Writer,
	a Attempt,
	node string,
	number int,
	records map[string]string,
) error {
	root, err := s.nodeRoot(a, node)
	if err != nil {
		return err
	}
	defer root.Close()
	return archive(ctx, out, root, number, records)
}

// NodeFiles calls fn for every regular file in the output of a node. fs.ErrNotExist if there is no output of it.
func (s Store) NodeFiles(ctx context.Context, a Attempt, node string, fn func(path string, size int64) error) error {
	root, err := s.nodeRoot(a, node)
	if err != nil {
		return err
	}
	defer root.Close()
	dir, err := s.AttemptDir(a)
	if err != nil {
		return err
	}
	return walk(ctx, filepath.Join(dir, filepath.FromSlash(node)), fn)
}
