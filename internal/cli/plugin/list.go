package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// list prints the files of a job, or of all (-1), that have been brought back, and what was written elsewhere. It names
// the jobs that have brought nothing yet.
func (c *cluster) list(ctx context.Context, out, warnings io.Writer, job *v1alpha1.HTCJob, proc, attempt int) error {
	listed := landing{only: proc}
	of, err := c.listFiles(ctx, out, job.Name, procOf(proc, attempt), &listed)
	if err != nil {
		return err
	}
	if of == int(job.Status.Attempt) {
		if err := listElsewhere(out, job.Status.Outputs, proc); err != nil {
			return err
		}
	}
	return listed.told(warnings)
}

// listFiles prints the files that parameters select, and notes in listed whose they are. It returns the attempt.
func (c *cluster) listFiles(
	ctx context.Context,
	out io.Writer,
	name string,
	parameters url.Values,
	listed *landing,
) (attempt int, err error) {
	response, err := c.output(ctx, name, "log/files", parameters)
	if err != nil {
		return 0, ended(ctx, err)
	}
	defer response.Body.Close()
	if listed.jobs, err = strconv.Atoi(response.Header.Get(aggregate.HeaderJobs)); err != nil {
		return 0, errors.New("this htcd does not say how many jobs there are: it may be older than this program")
	}
	head, width := "JOB", 6
	if listed.nodes {
		head, width = "NODE", 24
	}
	if _, err := fmt.Fprintf(out, "%-*s %12s  %s\n", width, head, "SIZE", "FILE"); err != nil {
		return 0, err
	}
	for f, err := range jsonValues[aggregate.File](response.Body) {
		if err != nil {
			return 0, ended(ctx, fmt.Errorf("the list was interrupted: %w", err))
		}
		listed.arrived(f.Job)
		of := strconv.Itoa(f.Job)
		if listed.nodes {
			of = printed(f.Node)
		}
		if _, err := fmt.Fprintf(out, "%-*s %12d  %s\n", width, of, f.Size, printed(f.Path)); err != nil {
			return 0, err
		}
	}
	attempt, _ = strconv.Atoi(response.Header.Get(aggregate.HeaderAttempt))
	return attempt, nil
}

// told ends a list: it names what is missing.
func (l *landing) told(warnings io.Writer) error {
	missing := l.lacks()
	if missing == "" {
		return nil
	}
	fmt.Fprintf(warnings, "%s whose output is missing: %s\n", l.units(), missing)
	return Exit{exitIncomplete}
}

// printed returns a path as one line that a terminal only shows.
func printed(path string) string {
	if quoted := strconv.QuoteToGraphic(path); quoted != `"`+path+`"` {
		return quoted
	}
	return path
}

// listElsewhere prints what a job, or all (-1), have written elsewhere.
func listElsewhere(out io.Writer, written []v1alpha1.WrittenOutput, proc int) error {
	first := true
	for _, w := range written {
		if proc >= 0 && int(w.Proc) != proc {
			continue
		}
		if first {
			if _, err := fmt.Fprintf(out, "%-6s %12s  %s\n", "JOB", "SIZE", "WRITTEN ELSEWHERE"); err != nil {
				return err
			}
			first = false
		}
		size := "?"
		if w.Size != nil {
			size = strconv.FormatInt(*w.Size, 10)
		}
		line := strings.TrimSpace(w.Path + " " + w.URL + w.Artifact + " " + w.Digest)
		if _, err := fmt.Fprintf(out, "%-6d %12s  %s\n", w.Proc, size, printed(line)); err != nil {
			return err
		}
	}
	return nil
}
