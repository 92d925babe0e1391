package workflow

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"htc.cern.ch/htcd/internal/kube/graph"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd/submit"
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
			continue
		}
		for _, m := range n.Pulls[i] {
			if p.kept.has(m) {
				dirs = append(dirs, keptDir(n.Step, i, m))
			}
		}
	}
	return dirs
}

// keptDir names the directory of what a step pulls from a node of the same DAG that does not run again.
func keptDir(step, pull, node int) string { return fmt.Sprintf("s%d-p%d-k%d", step, pull, node) }

func (p plannedDAG) inputDir(n graph.Node, i int, pull graph.Pull) string {
	dir := fmt.Sprintf("s%d-p%d", n.Step, i)
	if n.Sequence != graph.AllSequences && !p.graph.Steps[pull.From].All {
		dir += fmt.Sprintf("-%d", n.Sequence)
	}
	if p.graph.Pairs(n.Step, pull.From) {
		dir += fmt.Sprintf("-x%d", n.Index)
	}
	return dir
}

// bring copies them from the store into the directory of a run.
func (p plannedDAG) bring(run ledger.Run) error {
	brought := map[string]bool{}
	for number, n := range p.nodes {
		if p.kept.has(number) {
			continue
		}
		for i, pull := range p.graph.Steps[n.Step].Pulls {
			sources := map[string][]graph.Node{} // by directory
			if pull.Earlier {
				sources[p.inputDir(n, i, pull)] = p.graph.Sources(n, pull, p.sequences)
			} else {
				for _, m := range n.Pulls[i] {
					if p.kept.has(m) {
						sources[keptDir(n.Step, i, m)] = []graph.Node{p.nodes[m]}
					}
				}
			}
			for dir, from := range sources {
				if brought[dir] {
					continue
				}
				brought[dir] = true
				if err := p.copyFrom(run, pull, from, filepath.Join(run.TempDir, submit.InputsDir, dir)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// copyFrom copies what a pull brings from nodes into a directory.
func (p plannedDAG) copyFrom(run ledger.Run, pull graph.Pull, from []graph.Node, to string) error {
	if err := os.RemoveAll(to); err != nil { // of an earlier try
		return err
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for _, source := range from {
		into := to
		if pull.Several {
			into = filepath.Join(to, filepath.FromSlash(p.graph.Place(source)))
		}
		// What a failed node has not left cannot be brought; the script sees that it is missing.
		if err := copyMatching(filepath.Join(run.OutputDir, p.graph.Name(source)), pull.Path, into); err != nil &&
			!errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("bring %s of %s: %w", pull.Path, p.graph.Name(source), err)
		}
	}
	return nil
}

// copyMatching copies what a path stands for below a directory, each file with its path.
func copyMatching(from, pattern, to string) error {
	root, err := os.OpenRoot(from) // nothing of a user leads out of it
	if err != nil {
		return err
	}
	defer root.Close()
	return output.Tree{Root: root}.Matching(pattern, func(file string) error {
		return copyFile(root, file, filepath.Join(to, filepath.FromSlash(file)))
	})
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
	file, err := os.OpenFile(
		to,
		os.O_WRONLY|os.O_CREATE|os.O_EXCL,
		info.Mode().Perm()|0o600,
	) // #nosec G304 -- below the run's directory
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
	return errors.Join(err, file.Close())
}
