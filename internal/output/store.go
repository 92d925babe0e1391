package output

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
)

// The names of a job's two streams in its directory.
const (
	Stdout = "_condor_stdout"
	Stderr = "_condor_stderr"
)

// Store is the tree of all output.
type Store struct{ Root string }

// Attempt names one run of one HTCJob.
type Attempt struct {
	Namespace, Name string
	Number          int // from 1
}

// nameRE matches the names that Kubernetes allows for a namespace or an HTCJob. They have no slash, and no dot at the
// beginning. The length is checked with maxName: {0,251} in the expression would take 0.2 MB.
var nameRE = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)

const maxName = 253

// rel is the attempt's directory below the root.
func (a Attempt) rel() (string, error) {
	if a.Number < 1 {
		return "", fmt.Errorf("output: attempt %d: expected 1 or more", a.Number)
	}
	job, err := relJob(a.Namespace, a.Name)
	return filepath.Join(job, strconv.Itoa(a.Number)), err
}

func relJob(namespace, name string) (string, error) {
	for _, s := range []string{namespace, name} {
		if len(s) > maxName || !nameRE.MatchString(s) {
			return "", fmt.Errorf("output: %q: expected a Kubernetes name", s)
		}
	}
	return filepath.Join(namespace, name), nil
}

// AttemptDir is the directory of an attempt, which need not exist.
func (s Store) AttemptDir(a Attempt) (string, error) {
	rel, err := a.rel()
	return filepath.Join(s.Root, rel), err
}

// ProcDir is the directory of a proc's output, which exists when that is complete.
func (s Store) ProcDir(a Attempt, proc int) (string, error) {
	dir, err := s.AttemptDir(a)
	if err == nil && proc < 0 {
		err = fmt.Errorf("output: proc %d: expected 0 or more", proc)
	}
	return filepath.Join(dir, strconv.Itoa(proc)), err
}

// Newest is the highest attempt of an HTCJob with output of some proc; fs.ErrNotExist if there is none.
func (s Store) Newest(namespace, name string) (Attempt, error) {
	attempts, err := s.Attempts(namespace, name)
	if err != nil {
		return Attempt{}, err
	}
	for i := len(attempts) - 1; i >= 0; i-- {
		procs, err := s.Procs(attempts[i])
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Attempt{}, err
		}
		if len(procs) > 0 {
			return attempts[i], nil
		}
	}
	return Attempt{}, fmt.Errorf("output of %s/%s: %w", namespace, name, fs.ErrNotExist)
}

// Attempts are the attempts of an HTCJob that have a directory, in order, even if it is empty.
func (s Store) Attempts(namespace, name string) ([]Attempt, error) {
	rel, err := relJob(namespace, name)
	if err != nil {
		return nil, err
	}
	numbers, err := numbered(filepath.Join(s.Root, rel))
	if err != nil {
		return nil, err
	}
	attempts := make([]Attempt, 0, len(numbers))
	for _, n := range numbers {
		if n > 0 {
			attempts = append(attempts, Attempt{Namespace: namespace, Name: name, Number: n})
		}
	}
	return attempts, nil
}

// Procs are the numbers of the procs with output, in order.
func (s Store) Procs(a Attempt) ([]int, error) {
	dir, err := s.AttemptDir(a)
	if err != nil {
		return nil, err
	}
	return numbered(dir)
}
