package schedd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/schedd/tool"
)

// timePerProc is what a submit gets per proc beyond Options.Timeout: 1.5 ms measured on an idle schedd, up to 20 times
// that on a busy one.
const timePerProc = 20 * time.Millisecond

// rangeRE matches what -terse prints for each cluster: "9.0 - 9.2".
var rangeRE = regexp.MustCompile(`^(\d+)\.0 - (\d+)\.(\d+)\n$`)

// Submit sends the sandbox that Stage wrote into dir and returns the new cluster. An error may carry a cluster, see
// Error.Cluster. Exit 0 is not the end of spooling: for about a second the jobs are held with code 16.
func (c *Client) Submit(ctx context.Context, id Identity, dir string) (condor.Cluster, error) {
	procs, err := submit.StagedProcs(dir)
	if err != nil {
		return condor.Cluster{}, err
	}
	args, err := c.target(ctx, id)
	if err != nil {
		return condor.Cluster{}, err
	}
	args = append(args, "-spool", "-terse", submit.FileSubmit)
	var out bytes.Buffer
	err = c.run(ctx, command{
		name: "condor_submit", args: args, dir: dir, id: id,
		timeout: c.o.Timeout + time.Duration(procs)*timePerProc + spoolTime(dir, procs), read: tool.Output(&out),
		echoes: true,
	})
	cluster, known := parseRange(out.String())
	var e *condor.Error
	switch {
	case err != nil && errors.As(err, &e):
		// The range is printed before the files are sent: the cluster exists, but will hardly run.
		if known {
			e.Cluster = &cluster
		}
		if known && e.Kind == condor.Refused {
			e.Kind, e.AtCommit = condor.Unknown, false // a submission with a cluster is not refused
		}
		// Problems with a job's credential are reported instead of the range.
		if said := strings.Join(strings.Fields(out.String()), " "); !known && said != "" {
			e.Stderr = strings.TrimSuffix(condor.Clip(said)+" | "+e.Stderr, " | ")
		}
		return condor.Cluster{}, err
	case err != nil:
		return condor.Cluster{}, err
	case !known:
		return condor.Cluster{}, &condor.Error{
			Command: "condor_submit",
			Stderr:  fmt.Sprintf("expected a range such as 9.0 - 9.2, found %q", condor.Clip(out.String())),
		}
	case cluster.Procs != procs:
		return condor.Cluster{}, &condor.Error{Command: "condor_submit", Cluster: &cluster,
			Stderr: fmt.Sprintf("cluster %d has %d procs, expected %d", cluster.ID, cluster.Procs, procs)}
	}
	return cluster, nil
}

const (
	// timePerInput is what a submit gets per file of an input and proc.
	timePerInput = 10 * time.Millisecond
	// inputSpeed is the least speed, in bytes per second, at which inputs have to be sent.
	inputSpeed = 4 << 20
)

// spoolTime returns what a submit of so many procs gets for its inputs, of which each proc gets a copy.
func spoolTime(dir string, procs int) time.Duration {
	var more time.Duration
	inputs := filepath.Join(dir, submit.InputsDir)
	_ = filepath.WalkDir(inputs, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil // condor_submit will say what is wrong
		}
		info, err := entry.Info()
		if err != nil {
			return nil
		}
		one := timePerInput + time.Duration(float64(info.Size())/inputSpeed*float64(time.Second))
		if rel, err := filepath.Rel(inputs, name); err == nil &&
			strings.HasPrefix(rel, submit.InputsShared+string(filepath.Separator)) {
			one *= time.Duration(procs)
		}
		more += one
		return nil
	})
	return more
}

func parseRange(out string) (condor.Cluster, bool) {
	m := rangeRE.FindStringSubmatch(out)
	if m == nil || m[1] != m[2] {
		return condor.Cluster{}, false
	}
	id, err1 := strconv.Atoi(m[1])
	last, err2 := strconv.Atoi(m[3])
	return condor.Cluster{ID: id, Procs: last + 1}, err1 == nil && err2 == nil
}
