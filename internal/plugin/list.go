package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"

	"htc.cern.ch/htcd/internal/aggregate"
)

// list prints the files of a job, or of all (-1), that have been brought back, and names the jobs that have none yet.
func (c *cluster) list(ctx context.Context, out, warnings io.Writer, name string, proc, attempt int) error {
	parameters := url.Values{"attempt": {strconv.Itoa(attempt)}}
	if proc >= 0 {
		parameters.Set("proc", strconv.Itoa(proc))
	}
	response, err := c.output(ctx, name, "log/files", parameters)
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
