//go:build workflows

package chaos

import (
	"context"
	"fmt"
	"os"
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
	p.Flags = []string{fmt.Sprintf("--factory-above=%d", factoryAbove)}
	plan := NewWorkflowPlan(*seed, *trials)
	say(
		"CHAOS_SEED=%d N=%d: %d disturbances; every step is in %s",
		*seed,
		*trials,
		len(plan.Disturbances),
		stepsFile(p.Lab),
	)
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
			require.NoError(
				t,
				p.Jobs.Workflows(p.namespace(s.Trial.Shape.Place)).
					Delete(t.Context(), s.Trial.Name, metav1.DeleteOptions{}),
			)
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

// rest is that of HTCJobs for workflows.
func (p *workflowPlayer) rest(ctx context.Context, say func(string, ...any)) (e WorkflowEvidence, err error) {
	err = untilRest(ctx, say, func() (moving, err error) {
		if e, err = p.gather(ctx); err != nil {
			return nil, err
		}
		return settledWorkflows(e), nil
	}, p.stuck)
	if err == nil {
		e.Kept, err = p.kept(ctx, "workflows")
	}
	return e, err
}

// explain prints findings and what helps to investigate them.
func (p *workflowPlayer) explain(e WorkflowEvidence, findings []Finding) {
	for _, f := range findings {
		fmt.Printf("%s: %s (%s): %s\n", f.Fault, f.Trial, f.Shape, f.What)
	}
	said := readLines(p.Player)
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
		said.print(p.Player, f.Trial, uid)
	}
}
