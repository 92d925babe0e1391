package chaos

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"htc.cern.ch/htcd/test/lab"
)

// WorkflowPlan is everything to be done with HTCWorkflows.
type WorkflowPlan struct {
	Plan
	Workflows []WorkflowTrial
}

// WorkflowTrial is one HTCWorkflow.
type WorkflowTrial struct {
	Name      string
	Shape     WorkflowShape
	At, Later time.Duration // as Trial's
}

const dagmanLane = "dagman"

// NewWorkflowPlan decides everything from the seed alone.
func NewWorkflowPlan(seed uint64, trials int) WorkflowPlan {
	p := WorkflowPlan{Plan: Plan{Seed: seed}}
	draw := rand.New(rand.NewPCG(seed, 10))
	var shapes []WorkflowShape
	at := time.Second
	for len(p.Workflows) < trials {
		if len(shapes) == 0 {
			shapes = slices.Clone(WorkflowShapes)
			draw.Shuffle(len(shapes), func(i, j int) { shapes[i], shapes[j] = shapes[j], shapes[i] })
		}
		p.Workflows = append(p.Workflows, WorkflowTrial{
			Name: fmt.Sprintf(
				"flow-%03d",
				len(p.Workflows),
			),
			Shape: shapes[0],
			At:    at,
			Later: between(draw, 0, 20*time.Second),
		})
		shapes = shapes[1:]
		at += between(draw, 0, 3*time.Second)
	}
	end := at + 20*time.Second
	p.lane(11, end, 3*time.Second, 15*time.Second, func(draw *rand.Rand, d *Disturbance) {
		d.Lane, d.Do, d.For = htcdLane, doKill, between(draw, 0, 3*time.Second)
		if draw.IntN(8) == 0 {
			d.Do = doForget
		}
	})
	p.lane(12, end, 10*time.Second, 30*time.Second, func(draw *rand.Rand, d *Disturbance) {
		d.disturbSchedd(draw, 8*time.Second)
	})
	p.lane(13, end, 2*time.Second, 12*time.Second, func(draw *rand.Rand, d *Disturbance) {
		d.Lane, d.Do, d.For = callbacksLane, pick(
			draw,
			doLose,
			doMix,
			doMix,
		), between(
			draw,
			3*time.Second,
			15*time.Second,
		)
		if d.Do == doMix {
			d.Callbacks = lab.Callbacks{Drop: draw.Float64() / 2, Delay: draw.Float64() / 2, Double: draw.Float64()}
		}
	})
	p.lane(14, end, 500*time.Millisecond, 4*time.Second, func(draw *rand.Rand, d *Disturbance) {
		d.Lane, d.Do, d.Which = dagmanLane, doKill, draw.IntN(1000)
	})
	p.lane(15, end, 10*time.Second, 40*time.Second, func(draw *rand.Rand, d *Disturbance) {
		d.Lane, d.Do, d.For = secretLane, doAccount, between(draw, 2*time.Second, 8*time.Second)
	})
	p.lane(16, end, 2*time.Second, 10*time.Second, func(draw *rand.Rand, d *Disturbance) {
		d.Lane, d.Do, d.Which = launcherLane, doKill, draw.IntN(1000)
	})
	slices.SortStableFunc(p.Disturbances, func(a, b Disturbance) int { return cmp.Compare(a.At, b.At) })
	return p
}
