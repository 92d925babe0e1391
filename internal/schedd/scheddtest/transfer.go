package scheddtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// The commands for output.
const (
	Transfer = "Transfer"
	Release  = "Release"
)

// Leaves sets the output of a job, by its id: file names and contents, beside its streams.
func (s *Schedd) Leaves(id string, files map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		s.files = map[string]map[string]string{}
	}
	s.files[id] = files
}

// picked matches the completed jobs of procs that belong to this account.
func (s *Schedd) picked(id schedd.Identity, procs schedd.Procs) func(condor.Job) bool {
	return func(j condor.Job) bool {
		ended := j.Status == condor.Completed || procs.DAG && j.Status == condor.Removed || len(procs.Nodes) > 0
		return ended && j.Cluster == procs.Cluster && j.Tag.UID == procs.Tag.UID &&
			j.Tag.Attempt == procs.Tag.Attempt &&
			(j.Own != nil) == procs.Own && slices.Contains(procs.Numbers, j.Number()) &&
			(j.Owner == "" || j.Owner == account(id))
	}
}

// Transfer writes the jobs' output.
func (s *Schedd) Transfer(ctx context.Context, id schedd.Identity, procs schedd.Procs, dir string) error {
	f := s.call(ctx, Transfer)
	if f.Err != nil && !f.After {
		return f.Err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	is := s.picked(id, procs)
	for _, j := range s.queue {
		if !is(j) {
			continue
		}
		files := map[string]string{condor.Stdout: "out of " + j.ID() + "\n", condor.Stderr: ""}
		for name, text := range s.files[j.ID()] {
			files[name] = text
		}
		for name, text := range files {
			file := filepath.Join(dir, strconv.Itoa(j.Number()), name)
			if err := errors.Join(
				os.MkdirAll(filepath.Dir(file), 0o700),
				os.WriteFile(file, []byte(text), 0o600),
			); err != nil {
				return errors.Join(f.Err, fmt.Errorf("job %s: %w", j.ID(), err))
			}
		}
	}
	return f.Err
}

// release moves the completed jobs to the history.
func (s *Schedd) release(ctx context.Context, id schedd.Identity, procs schedd.Procs) (o schedd.Outcome, err error) {
	f := s.call(ctx, Release)
	if f.Err != nil && !f.After {
		return o, f.Err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	is := s.picked(id, procs)
	s.queue = slices.DeleteFunc(s.queue, func(j condor.Job) bool {
		if is(j) {
			s.history = append(s.history, j)
			o.Found = true
		}
		return is(j)
	})
	return o, f.Err
}
