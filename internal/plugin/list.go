package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"htc.cern.ch/htcd/internal/aggregate"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
)

// list prints the files of a job, or of all (-1), that have been brought back, and what was written elsewhere. It names the jobs that
// have brought nothing yet.
func (c *cluster) list(ctx context.Context, out, warnings io.Writer, job *v1alpha1.HTCJob, proc, attempt int) error {
	parameters := url.Values{"attempt": {strconv.Itoa(attempt)}}
	if proc >= 0 {
		parameters.Set("proc", strconv.Itoa(proc))
	}
	response, err := c.output(ctx, job.Name, "log/files", parameters)
	if err != nil {
		return ended(ctx, err)
	}
	defer response.Body.Close()
	jobs, err := strconv.Atoi(response.Header.Get(aggregate.HeaderJobs))
	if err != nil {
		return errors.New("this htcd does not say how many jobs there are: it may be older than this program")
	}
	listed := landing{only: proc, jobs: jobs}
	if _, err := fmt.Fprintf(out, "%-6s %12s  %s\n", "JOB", "SIZE", "FILE"); err != nil {
		return err
	}
	for lines := json.NewDecoder(response.Body); ; {
		var f aggregate.File
		err := lines.Decode(&f)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return ended(ctx, fmt.Errorf("the list was interrupted: %w", err))
		}
		listed.arrived(f.Job)
		if _, err := fmt.Fprintf(out, "%-6d %12d  %s\n", f.Job, f.Size, printed(f.Path)); err != nil {
			return err
		}
	}
	if of, _ := strconv.Atoi(response.Header.Get(aggregate.HeaderAttempt)); of == int(job.Status.Attempt) {
		if err := listElsewhere(out, job.Status.Outputs, proc); err != nil {
			return err
		}
	}
	if missing := listed.missing(); len(missing) > 0 {
		fmt.Fprintf(warnings, "jobs whose output is missing: %s\n", ranges(missing))
		return Exit{ExitIncomplete}
	}
	return nil
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
