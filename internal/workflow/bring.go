package workflow

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"htc.cern.ch/htcd/internal/graph"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

// What steps pull from earlier DAGs is fetched by htcd and spooled again, in directories below schedd.InputsDir.

// brings reports whether a step pulls from an earlier DAG.
func (p plannedDAG) brings() bool {
	for _, i := range p.steps {
		for _, pull := range p.graph.Steps[i].Pulls {
			if pull.Earlier {
				return true
			}
		}
	}
	return false
}

// inputs names the directories of a node: one for each pull from an earlier DAG, shared by all nodes that get the same.
func (p plannedDAG) inputs(n graph.Node) (dirs []string) {
	for i, pull := range p.graph.Steps[n.Step].Pulls {
		if pull.Earlier {
			dirs = append(dirs, p.inputDir(n, i, pull))
		}
	}
	return dirs
}

func (p plannedDAG) inputDir(n graph.Node, i int, pull graph.Pull) string {
	if n.Sequence == graph.AllSequences || p.graph.Steps[pull.From].All {
		return fmt.Sprintf("s%d-p%d", n.Step, i)
	}
	return fmt.Sprintf("s%d-p%d-%d", n.Step, i, n.Sequence)
}

// bring copies them from the store into the directory of a run.
func (p plannedDAG) bring(run ledger.Run) error {
	brought := map[string]bool{}
	for _, n := range p.nodes {
		for i, pull := range p.graph.Steps[n.Step].Pulls {
			dir := p.inputDir(n, i, pull)
			if !pull.Earlier || brought[dir] {
				continue
			}
			brought[dir] = true
			to := filepath.Join(run.TempDir, schedd.InputsDir, dir)
			if err := os.RemoveAll(to); err != nil { // of an earlier try
				return err
			}
			if err := os.MkdirAll(to, 0o700); err != nil {
				return err
			}
			for _, source := range p.graph.Sources(n, pull, p.sequences) {
				into := to
				if pull.Several {
					into = filepath.Join(to, filepath.FromSlash(p.graph.Place(source)))
				}
				// What a failed node has not left cannot be brought; the script sees that it is missing.
				if err := copyMatching(filepath.Join(run.OutputDir, p.graph.Name(source)), pull.Path, into); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return fmt.Errorf("bring %s of %s: %w", pull.Path, p.graph.Name(source), err)
				}
			}
		}
	}
	return nil
}

// copyMatching copies what matches a pattern below a directory, with its path.
func copyMatching(from, pattern, to string) error {
	root, err := os.OpenRoot(from) // nothing of a user leads out of it
	if err != nil {
		return err
	}
	defer root.Close()
	names, err := fs.Glob(root.FS(), pattern)
	if err != nil {
		return err
	}
	for _, name := range names {
		err := fs.WalkDir(root.FS(), name, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			return copyFile(root, file, filepath.Join(to, filepath.FromSlash(file)))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func copyFile(root *os.Root, name, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	from, err := root.Open(path.Clean(name))
	if err != nil {
		return err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm()|0o600) // #nosec G304 -- below the run's directory
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
	return errors.Join(err, file.Close())
}
