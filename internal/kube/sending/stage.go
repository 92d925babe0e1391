package sending

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/ledger"
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

// StageInputs writes inputs, nil if there are none, into the directory of a run and names them in the run.
func (s *Sender) StageInputs(ready *inputs.Ready, run *ledger.Run) error {
	if ready == nil {
		return nil
	}
	digest, err := ready.Stage(run.TempDir)
	if err != nil {
		return errors.Join(s.StageError(err), os.RemoveAll(run.TempDir))
	}
	run.InputsDigest = digest
	return nil
}

// HasInputs reports whether the inputs that are staged of a run are whole and those that were recorded: they stay, as
// what their sources hold by now does not matter.
func HasInputs(run ledger.Run, recorded string) (bool, error) {
	digest, err := inputs.Staged(run.TempDir)
	if err != nil {
		return false, fmt.Errorf("read the staged inputs: %w", err)
	}
	return digest != "" && digest == recorded, nil
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
