package reconciler

import (
	"errors"
	"io/fs"
	"os"

	"htc.cern.ch/htcd/internal/output"
)

// MaxResult is the most that status.result holds, in bytes.
const MaxResult = 4096

// Result reads what spec.result names of so many jobs, whose files open opens; nil if the only one has left none.
func Result(named string, jobs int, open func(job int, file string) (*os.File, error)) (*string, error) {
	if named == "stdout" {
		named = output.Stdout
	}
	text, err := output.Result(jobs, MaxResult, func(job int) (*os.File, error) { return open(job, named) })
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &text, nil
}
