//go:build workflows

package chaos

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestEveryNodeRunsOnce does for HTCWorkflows what TestNothingIsDoubledLostWrongOrLeftOver does for HTCJobs.
func TestEveryNodeRunsOnce(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	began := time.Now()
	say := func(format string, args ...any) {
		fmt.Printf("[%4.0fs] %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	p := &workflowPlayer{Player: newPlayer(t, began)}
	plan := NewWorkflowPlan(*seed, *trials)
	say("CHAOS_SEED=%d N=%d: %d disturbances; every step is in %s", *seed, *trials, len(plan.Disturbances), stepsFile(p.Lab))
	require.NoError(t, p.play(t.Context(), plan))
	say("all %d sent, %s; now everything is left alone", len(p.sent), p.Done())

	e, err := p.rest(t.Context(), say)
	require.NoError(t, err)
	findings := JudgeWorkflows(e)
	say("CHAOS_SEED=%d N=%d", *seed, *trials)
	var shapes []string
	for _, shape := range WorkflowShapes {
		shapes = append(shapes, shape.Name)
	}
	require.NoError(t, Print(os.Stdout, shapes, e.shapes(), findings))
	p.explain(e, findings)

	// Finally everything is deleted: nothing of any trial may be left.
	for i, s := range p.sent {
		if !s.Deleted {
			require.NoError(t, p.Jobs.Workflows(p.Namespace).Delete(t.Context(), s.Trial.Name, metav1.DeleteOptions{}))
			p.sent[i].Deleted = true
		}
	}
	after, err := p.rest(t.Context(), say)
	require.NoError(t, err)
	var left []Finding
	for _, f := range JudgeWorkflows(after) {
		if f.Fault == LeftOver {
			left = append(left, f)
		}
	}
	say("after the deletion of them all: %d left over", len(left))
	p.explain(after, left)
	require.Empty(t, append(findings, left...))
}

// rest waits until nothing moves and returns the evidence; whatever moves too long is for the judge.
func (p *workflowPlayer) rest(ctx context.Context, say func(string, ...any)) (WorkflowEvidence, error) {
	quiet, least, said := 0, math.MaxInt, time.Time{}
	for deadline := time.Now(); ; {
		e, err := p.gather(ctx)
		if err != nil {
			return e, err
		}
		moving, n := settledWorkflows(e), 0
		if quiet++; moving != nil {
			quiet, n = 0, strings.Count(moving.Error(), "\n")+1
		}
		if n < least {
			least, deadline = n, time.Now().Add(settling)
		}
		if quiet == 2 || time.Now().After(deadline) {
			e.Kept, err = kept(ctx, p.Lab, "workflows", p.Namespace)
			return e, err
		}
		if moving != nil && time.Since(said) > 14*time.Second {
			said = time.Now()
			say("%d are still moving: %.300s", n, strings.ReplaceAll(moving.Error(), "\n", ", "))
		}
		sleep(ctx, 3*time.Second)
	}
}

// explain prints findings and what helps to investigate them.
func (p *workflowPlayer) explain(e WorkflowEvidence, findings []Finding) {
	for _, f := range findings {
		fmt.Printf("%s: %s (%s): %s\n", f.Fault, f.Trial, f.Shape, f.What)
	}
	log, _ := os.ReadFile(p.Lab.Log("htcd"))
	steps, _ := os.ReadFile(stepsFile(p.Lab))
	told := map[string]bool{}
	for _, f := range findings {
		if told[f.Trial] {
			continue
		}
		told[f.Trial] = true
		fmt.Printf("\n%s (%s)\n", f.Trial, f.Shape)
		uid := f.Trial
		for _, s := range e.Sent {
			if s.Trial.Name == f.Trial {
				uid = s.UID
			}
		}
		fmt.Printf("  status %+v\n", e.Objects[uid].Status)
		for _, ad := range e.Ads {
			if ad.UID == uid || ad.Workflow == uid {
				fmt.Printf("  job of DAG %d, node %d: %s\n", ad.DAG, ad.Node, ad)
			}
		}
		for _, r := range e.Runs {
			if r.UID == uid {
				fmt.Printf("  run %+v\n", r)
			}
		}
		for _, n := range e.Nodes {
			if n.UID == uid {
				fmt.Printf("  node %+v\n", n)
			}
		}
		for line := range strings.Lines(string(steps)) {
			if strings.Contains(line, f.Trial+":") {
				fmt.Print("  step ", line)
			}
		}
		for line := range strings.Lines(string(log)) {
			if strings.Contains(line, p.Namespace+"/"+f.Trial+`"`) || strings.Contains(line, uid) {
				fmt.Print("  htcd ", line)
			}
		}
	}
}
