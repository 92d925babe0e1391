package chaos

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"htc.cern.ch/htcd/test/lab"
)

// Plan is everything to be done, with the time since the beginning at which it is due. Late actions are done
// nevertheless, in the same order.
type Plan struct {
	Seed         uint64
	Trials       []Trial
	Disturbances []Disturbance
}

// Trial is one HTCJob.
type Trial struct {
	Name  string
	Shape Shape
	At    time.Duration
	// Later is when, after its creation, it is edited or deleted, if its shape says so.
	Later time.Duration
}

// Disturbance is one thing that goes wrong for a while.
type Disturbance struct {
	At, For time.Duration
	Lane    string // what it affects; disturbances in one lane follow one another
	Do      string
	// Callbacks is how receiver-net disturbs them.
	Callbacks lab.Callbacks
	// Leaves is how many KiB of htcd's volume stay free.
	Leaves int
	// Which chooses one of the condor_dagman, or launchers of factories.
	Which int
}

func (d Disturbance) String() string { return fmt.Sprintf("%s: %s for %s", d.Lane, d.Do, d.For) }

// The lanes and their disturbances.
const (
	htcdLane      = "htcd"
	scheddLane    = "schedd"
	callbacksLane = "callbacks"
	secondLane    = "schedd2"
	secretLane    = "secret"
	volumeLane    = "volume"
	foreignLane   = "foreigner"
	launcherLane  = "launcher"
	feedLane      = "feed"

	doKill    = "kill"
	doStop    = "stop"
	doFreeze  = "freeze"
	doLose    = "stop receiver-net"
	doMix     = "drop, delay and double"
	doWrong   = "wrong password"
	doAccount = "another account"
	doRevert  = "an older ledger"
	doForget  = "no ledger"
	doEmpty   = "an empty queue"
	doFill    = "nearly full"
	doOlder   = "an older spool"
	doBigAd   = "a job of another account with a huge HoldReason"
)

// NewPlan decides everything from the seed alone, with a feed or without one. The shapes take turns in a random order,
// so that each gets its share.
func NewPlan(seed uint64, trials int, feed bool) Plan {
	p := Plan{Seed: seed}
	draw := rand.New(rand.NewPCG(seed, 0))
	var shapes []Shape
	at := time.Second
	for burst := 0; len(p.Trials) < trials; burst-- {
		if burst <= 0 {
			burst = 1 + draw.IntN(6)
			at += between(draw, time.Second, 8*time.Second)
		}
		if len(shapes) == 0 {
			shapes = slices.Clone(Shapes)
			draw.Shuffle(len(shapes), func(i, j int) { shapes[i], shapes[j] = shapes[j], shapes[i] })
		}
		p.Trials = append(p.Trials, Trial{
			Name: trialName(len(p.Trials)), Shape: shapes[0], At: at, Later: between(draw, 0, 10*time.Second),
		})
		shapes = shapes[1:]
		at += between(draw, 0, 300*time.Millisecond)
	}
	end := at + 5*time.Second
	p.lane(1, end, 2*time.Second, 12*time.Second, func(draw *rand.Rand, d *Disturbance) {
		d.Lane, d.Do, d.For = htcdLane, doKill, between(draw, 0, 3*time.Second)
		if draw.IntN(8) == 0 { // d.For is also the ledger's age
			d.Do, d.For = pick(draw, doRevert, doForget), between(draw, 2*time.Second, 20*time.Second)
		}
		// Half of them affect an HTCJob on its way to the schedd.
		if draw.IntN(2) == 0 {
			if i := slices.IndexFunc(p.Trials, func(t Trial) bool { return t.At >= d.At }); i >= 0 {
				d.At = p.Trials[i].At + between(draw, 0, 700*time.Millisecond)
			}
		}
	})
	p.lane(2, end, 8*time.Second, 25*time.Second, func(draw *rand.Rand, d *Disturbance) {
		d.disturbSchedd(draw, 12*time.Second)
	})
	p.lane(7, end, 8*time.Second, 25*time.Second, func(draw *rand.Rand, d *Disturbance) {
		d.Lane, d.Do, d.For = secondLane, pick(draw, doKill, doStop), between(draw, 0, 12*time.Second)
	})
	p.lane(3, end, 2*time.Second, 12*time.Second, func(draw *rand.Rand, d *Disturbance) {
		d.Lane, d.Do, d.For = callbacksLane, pick(
			draw,
			doLose,
			doMix,
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
	p.lane(4, end, 10*time.Second, 40*time.Second, func(draw *rand.Rand, d *Disturbance) {
		d.Lane, d.Do, d.For = secretLane, pick(draw, doWrong, doAccount), between(draw, 2*time.Second, 8*time.Second)
	})
	p.lane(5, end, 8*time.Second, 30*time.Second, func(draw *rand.Rand, d *Disturbance) {
		d.Lane, d.Do, d.For, d.Leaves = volumeLane, doFill, between(
			draw,
			3*time.Second,
			15*time.Second,
		), 512<<draw.IntN(6)
	})
	p.lane(6, end, 8*time.Second, 30*time.Second, func(draw *rand.Rand, d *Disturbance) {
		d.Lane, d.Do, d.For = foreignLane, doBigAd, between(draw, 8*time.Second, 20*time.Second)
	})
	p.lane(8, end, 2*time.Second, 10*time.Second, func(draw *rand.Rand, d *Disturbance) {
		d.Lane, d.Do, d.Which = launcherLane, doKill, draw.IntN(1000)
	})
	if feed {
		p.lane(9, end, 4*time.Second, 20*time.Second, func(draw *rand.Rand, d *Disturbance) {
			d.Lane, d.Do, d.For = feedLane, pick(
				draw,
				doKill,
				doStop,
				doFreeze,
				doOlder,
			), between(
				draw,
				0,
				30*time.Second,
			)
		})
	}
	slices.SortStableFunc(p.Disturbances, func(a, b Disturbance) int { return cmp.Compare(a.At, b.At) })
	return p
}

// disturbSchedd lasts as long as most says. A frozen schedd may outlast the deadline of commands; an empty queue lasts
// longer than jobs are missing before they count as lost.
func (d *Disturbance) disturbSchedd(draw *rand.Rand, most time.Duration) {
	d.Lane, d.Do, d.For = scheddLane, pick(draw, doKill, doKill, doStop, doFreeze), between(draw, 0, most)
	if d.Do == doFreeze {
		d.For *= 6
	}
	if draw.IntN(8) == 0 {
		d.Do, d.For = doEmpty, d.For+45*time.Second
	}
}

// lane fills one lane up to end, with a pause of least to most before each disturbance. Every lane draws from its own
// numbers, so that changing one leaves the others unchanged.
func (p *Plan) lane(stream uint64, end, least, most time.Duration, decide func(*rand.Rand, *Disturbance)) {
	draw := rand.New(rand.NewPCG(p.Seed, stream))
	for at := time.Duration(0); ; {
		d := Disturbance{At: at + between(draw, least, most)}
		decide(draw, &d)
		if d.At >= end {
			return
		}
		if d.Do != doEmpty {
			d.For = min(d.For, end-d.At)
		}
		p.Disturbances = append(p.Disturbances, d)
		at = d.At + d.For
	}
}

func between(draw *rand.Rand, least, most time.Duration) time.Duration {
	return (least + time.Duration(draw.Int64N(int64(most-least)))).Truncate(time.Millisecond)
}

func pick(draw *rand.Rand, of ...string) string { return of[draw.IntN(len(of))] }
