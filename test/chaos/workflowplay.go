package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// workflowPlayer does the same for a plan of HTCWorkflows.
type workflowPlayer struct {
	*Player
	sent []SentWorkflow
}

// SentWorkflow records what was done with one of them.
type SentWorkflow struct {
	Trial   WorkflowTrial
	UID     string
	Edited  bool
	Deleted bool
}

// flow returns what the HTCWorkflow finally runs.
func (s SentWorkflow) flow() Flow {
	if s.Edited {
		return *s.Trial.Shape.Edited
	}
	return s.Trial.Shape.Flow
}

func (p *workflowPlayer) play(ctx context.Context, plan WorkflowPlan) error {
	p.done = map[string]int{}
	if err := p.furnish(ctx); err != nil {
		return err
	}
	began := time.Now()
	var all, edits sync.WaitGroup
	errs := make(chan error, len(plan.Disturbances)+2*len(plan.Workflows))
	p.disturbAll(ctx, began, plan.Plan, &all, errs)
	for _, trial := range plan.Workflows {
		all.Go(func() {
			sleep(ctx, time.Until(began.Add(trial.At)))
			if err := p.try(ctx, trial); err != nil {
				errs <- fmt.Errorf("%s: %w", trial.Name, err)
				return
			}
			edits.Go(func() {
				if err := p.change(ctx, trial); err != nil {
					errs <- fmt.Errorf("change %s: %w", trial.Name, err)
				}
			})
		})
	}
	return p.finish(ctx, &all, &edits, errs)
}

func (p *workflowPlayer) try(ctx context.Context, trial WorkflowTrial) error {
	place := trial.Shape.Place
	workflows := p.Jobs.Workflows(p.namespace(place))
	w, err := workflows.Create(ctx, &v1alpha1.HTCWorkflow{
		ObjectMeta: metav1.ObjectMeta{Name: trial.Name}, Spec: trial.Shape.Flow.object(place, p.poolOf(place)),
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	p.Log("%s: created %q as %s", trial.Name, trial.Shape.Name, w.UID)
	if trial.Shape.Deleted {
		sleep(ctx, trial.Later)
		p.Log("%s: delete", trial.Name)
		p.count("HTCWorkflow deleted")
		err = workflows.Delete(ctx, trial.Name, metav1.DeleteOptions{})
	}
	p.mu.Lock()
	p.sent = append(p.sent, SentWorkflow{Trial: trial, UID: string(w.UID), Deleted: trial.Shape.Deleted})
	p.mu.Unlock()
	return err
}

// change edits, suspends or resumes as the shape says.
func (p *workflowPlayer) change(ctx context.Context, trial WorkflowTrial) error {
	place := trial.Shape.Place
	workflows := p.Jobs.Workflows(p.namespace(place))
	if trial.Shape.Paused {
		for _, suspend := range []bool{true, false} {
			sleep(ctx, trial.Later)
			_, err := workflows.Patch(
				ctx,
				trial.Name,
				types.MergePatchType,
				fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, suspend),
				metav1.PatchOptions{},
			)
			if err != nil {
				return err
			}
			p.Log("%s: suspend %t", trial.Name, suspend)
			p.count(fmt.Sprintf("HTCWorkflow suspended %t", suspend))
		}
	}
	if trial.Shape.Edited == nil {
		return nil
	}
	patch, err := json.Marshal(
		[]map[string]any{
			{"op": "replace", "path": "/spec", "value": trial.Shape.Edited.object(place, p.poolOf(place))},
		},
	)
	if err != nil {
		return err
	}
	for {
		w, err := workflows.Get(ctx, trial.Name, metav1.GetOptions{})
		if err == nil && w.Status.Phase.Terminal() {
			_, err = workflows.Patch(ctx, trial.Name, types.JSONPatchType, patch, metav1.PatchOptions{})
			if err == nil {
				p.Log("%s: edited", trial.Name)
				p.count("HTCWorkflow edited")
				p.edited(trial)
				return nil
			}
		}
		if err != nil && !apierrors.IsInvalid(err) || p.givesUp(ctx, w.Status.Conditions) {
			return err
		}
		sleep(ctx, 500*time.Millisecond)
	}
}

func (p *workflowPlayer) edited(trial WorkflowTrial) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.sent {
		if p.sent[i].Trial.Name == trial.Name {
			p.sent[i].Edited = true
		}
	}
}

// killOne kills one of the processes $p of which a test of the shell is true, without a chance to write anything. The
// lab has process ids of its own.
func (p *Player) killOne(ctx context.Context, what, is string, which int) error {
	killed, err := p.sh(ctx, `set --; for p in /proc/[0-9]*; do
		if `+is+`; then set -- "$@" "${p#/proc/}"; fi
	done
	[ $# -gt 0 ] || exit 0
	shift $((`+fmt.Sprint(which)+` % $#))
	! kill -9 "$1" 2>/dev/null || echo "$1"`)
	if killed = strings.TrimSpace(killed); killed != "" {
		p.Log("killed %s %s", what, killed)
		p.count(what + " killed")
	}
	return err
}
