package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"htc.cern.ch/htcd/test/lab"
)

// nodeCounts is the part of an HTCWorkflow's counts that the demo shows.
type nodeCounts struct {
	Name                                       string
	Total, Done, Running, Idle, Failed, Futile int
}

// workflowStatus is the part of its status.
type workflowStatus struct {
	Phase string
	Nodes nodeCounts
	Steps []nodeCounts
}

// workflowWithin limits the demo's workflow of some 300 nodes.
const workflowWithin = 30 * time.Minute

// demoWorkflow runs the scan of examples/workflow to its end on a lab that is up, and prints what its last step has
// written.
func demoWorkflow(ctx context.Context, l *lab.Lab) error {
	ctx, cancel := context.WithTimeout(ctx, workflowWithin)
	defer cancel()
	p := newProgress()
	manifest, err := applyExample(ctx, l, p, "workflow/scan.yaml")
	if err != nil {
		return err
	}
	s, err := followWorkflow(ctx, l, p, manifest)
	if err != nil {
		told, failed := l.Run(context.WithoutCancel(ctx), "kubectl", "describe", "-f", manifest)
		return errors.Join(fmt.Errorf("the workflow has not ended: %w\n%s", err, told), failed)
	}
	table, err := l.Run(ctx, "kubectl", "get", "-f", manifest)
	if err != nil {
		return err
	}
	fmt.Print(table)
	if s.Phase != "Succeeded" || s.Nodes.Done != s.Nodes.Total {
		return errors.New("the example did not end as it should: every node has succeeded")
	}
	if _, err := l.Run(
		ctx,
		"kubectl",
		"wait",
		"--for=condition=OutputFetched",
		"-f",
		manifest,
		"--timeout=2m",
	); err != nil {
		return err
	}
	plotted, err := l.Run(ctx, "htcd", "logs", "scan", "--step=plot")
	if err != nil {
		return err
	}
	fmt.Printf("htcd logs scan --step plot:\n%s", plotted)
	return nil
}

// followWorkflow shows each change until the workflow has ended.
func followWorkflow(ctx context.Context, l *lab.Lab, p *progress, manifest string) (s workflowStatus, err error) {
	for last := ""; ; {
		text, err := l.Run(ctx, "kubectl", "get", "-f", manifest, "-o", "json")
		if err != nil {
			return s, errors.Join(ctx.Err(), err)
		}
		var w struct{ Status workflowStatus }
		if err := json.Unmarshal([]byte(text), &w); err != nil {
			return s, fmt.Errorf("read the HTCWorkflow: %w", err)
		}
		if line := w.Status.String(); line != last {
			p.printf("%s", line)
			last = line
		}
		switch w.Status.Phase {
		case "Succeeded", "Failed", "Removed":
			return w.Status, nil
		}
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-time.After(2 * time.Second):
		}
	}
}

// String is a line about it: the nodes that are done of each step.
func (s workflowStatus) String() string {
	line := fmt.Sprintf(
		"%s: %d/%d done, %d running, %d idle",
		s.Phase,
		s.Nodes.Done,
		s.Nodes.Total,
		s.Nodes.Running,
		s.Nodes.Idle,
	)
	if s.Nodes.Failed+s.Nodes.Futile > 0 {
		line += fmt.Sprintf(", %d failed, %d futile", s.Nodes.Failed, s.Nodes.Futile)
	}
	for i, step := range s.Steps {
		line += fmt.Sprintf(
			"%s%s %d/%d",
			map[bool]string{true: " (", false: ", "}[i == 0],
			step.Name,
			step.Done,
			step.Total,
		)
	}
	if len(s.Steps) > 0 {
		line += ")"
	}
	return line
}
