package sending

import (
	"fmt"
	"os"
	"path/filepath"

	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

// stage writes the sandbox from scratch: an earlier try may have left half of one.
func stage(dir string, sandbox submit.Sandbox, tokens []string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := unstage(dir); err != nil {
		return err
	}
	return submit.Stage(dir, sandbox, tokens...)
}

// unstage removes what is staged of a run except for its inputs.
func unstage(dir string) error {
	left, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range left {
		if inputs.Owns(entry.Name()) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// unstageAll removes the staged files of all runs of an object.
func (s *Sender) unstageAll(uid string) error {
	left, err := filepath.Glob(filepath.Join(s.Staging, uid+"-*"))
	if err != nil {
		return err
	}
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("remove staged files: %w", err)
		}
	}
	return nil
}
