package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"htc.cern.ch/htcd/test/lab"
)

// jobStatus is the part of an HTCJob's status that demo checks; the first three are always present.
type jobStatus struct {
	Active, Succeeded, Failed *int
	JobID                     []string `json:"jobid"`
	Phase                     string   `json:"phase"`
}

// demoWithin limits the first job of a lab, whose image must first be unpacked.
const demoWithin = 3 * time.Minute

// applyExample applies an example, in place of an earlier one of its name, and returns the manifest's path.
func applyExample(ctx context.Context, l *lab.Lab, p *progress, example string) (manifest string, err error) {
	id, err := l.Identity()
	if err != nil {
		return "", fmt.Errorf("lab %s: %w", l.Dir, err)
	}
	manifest = filepath.Join(id.Clone, "examples", example)
	if _, err := l.Run(ctx, "kubectl", "delete", "--ignore-not-found", "-f", manifest); err != nil {
		return "", err
	}
	out, err := l.Run(ctx, "kubectl", "apply", "-f", manifest)
	if err != nil {
		return "", err
	}
	p.printf("%s", strings.TrimSpace(out))
	return manifest, nil
}

// demo runs the smallest example to its end on a lab that is up.
func demo(ctx context.Context, l *lab.Lab) error {
	ctx, cancel := context.WithTimeout(ctx, demoWithin)
	defer cancel()
	p := newProgress()
	manifest, err := applyExample(ctx, l, p, "retcode/zero.yaml")
	if err != nil {
		return err
	}
	last := ""
	for {
		text, err := l.Run(ctx, "kubectl", "get", "-f", manifest, "-o", "json")
		if err != nil {
			return err
		}
		var job struct{ Status jobStatus }
		if err := json.Unmarshal([]byte(text), &job); err != nil {
			return fmt.Errorf("read the HTCJob: %w", err)
		}
		s := job.Status
		if line := describe(s); line != last {
			p.printf("%s", line)
			last = line
		}
		if ended(s) {
			return judge(ctx, l, manifest, s)
		}
		select {
		case <-ctx.Done():
			out, err := l.Run(context.WithoutCancel(ctx), "kubectl", "describe", "-f", manifest)
			return errors.Join(fmt.Errorf("the job has not ended: %w\n%s", ctx.Err(), out), err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func describe(s jobStatus) string {
	if s.Active == nil || s.Succeeded == nil || s.Failed == nil {
		return "no status yet"
	}
	return fmt.Sprintf(
		"%s: active %d, succeeded %d, failed %d, jobid %v",
		s.Phase,
		*s.Active,
		*s.Succeeded,
		*s.Failed,
		s.JobID,
	)
}

// ended reports whether nothing of a submitted run is active; before submission everything is 0.
func ended(s jobStatus) bool {
	return s.Active != nil && *s.Active == 0 && len(s.JobID) > 0 &&
		s.Succeeded != nil && s.Failed != nil && *s.Succeeded+*s.Failed > 0
}

// next is what a user would type after the demo.
const next = `
Look around, in a shell:
  . %s
  htcd logs zero                # what the job has written; examples/retcode/zero.yaml is the HTCJob
  htcd status -v zero           # what happened to it, and when; kubectl describe htcjob zero says it, too
  kubectl apply -f examples/queue.yaml && htcd wait queue
  make down                     # ends the lab
`

// judge prints the HTCJob, reports whether it ended as expected, and says what comes next.
func judge(ctx context.Context, l *lab.Lab, manifest string, s jobStatus) error {
	table, err := l.Run(ctx, "kubectl", "get", "-f", manifest)
	if err != nil {
		return err
	}
	fmt.Print(table)
	if *s.Succeeded != 1 || *s.Failed != 0 || len(s.JobID) != 1 || !strings.HasSuffix(s.JobID[0], ".0") {
		return errors.New("the example did not end as it should: active 0, failed 0, succeeded 1, one jobid C.0")
	}
	fmt.Printf(next, l.Path("env"))
	return nil
}
