package admission

import (
	"cmp"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Demand is what an HTCJob asks for with all its jobs, or, where a factory makes them, with the first.
type Demand struct {
	Jobs   int
	Made   int // how many a factory makes in all; 0: there is none
	Cores  int // 0: not known
	Memory int // MiB; 0: not known
}

// DemandOf returns what so many jobs ask for, of which each asks for what holds for it; nil: nothing is known.
func DemandOf(jobs int, each *v1alpha1.Effective) Demand {
	d := Demand{Jobs: jobs}
	if each == nil || each.Resources == nil {
		return d
	}
	if cores := each.Resources.CPUs; cores != nil {
		d.Cores = jobs * int(cores.Value())
	}
	if memory := each.Resources.Memory; memory != nil {
		d.Memory = jobs * int(memory.Value()>>20)
	}
	return d
}

// orAs returns a demand with what is known of it, or was known before.
func (d Demand) orAs(before Demand) Demand {
	if d.Jobs == 0 {
		d.Jobs = max(before.Jobs, 1)
	}
	if d.Jobs == before.Jobs && d.Cores+d.Memory == 0 {
		d.Cores, d.Memory = before.Cores, before.Memory
	}
	return d
}

// Requested is a sum of what jobs ask for.
type Requested struct {
	InUse   int // by jobs that run or wait for a slot, those on their way included
	Waiting int // by those that wait for a slot, as HTCondor has shown
}

func (r Requested) plus(n, waiting int) Requested { return Requested{r.InUse + n, r.Waiting + waiting} }

// requests are the limits of what jobs may ask for together.
func (r Rules) requests() []requestLimit {
	var all []requestLimit
	if most, is := bound(r.Limits.Cores); is {
		all = append(all, requestLimit{
			most,
			"cores",
			"cores",
			"resources.cpus",
			func(d Demand) int { return d.Cores },
			func(u Usage) int { return u.Cores },
			func(p Part) int { return p.Cores.Waiting },
		})
	}
	if memory := r.Limits.Memory; memory != nil {
		all = append(all, requestLimit{
			int(memory.Value() >> 20),
			"memory",
			"MiB of memory",
			"resources.memory",
			func(d Demand) int { return d.Memory },
			func(u Usage) int { return u.Memory },
			func(p Part) int { return p.Memory.Waiting },
		})
	}
	return all
}

type requestLimit struct {
	most    int
	name    string
	unit    string
	field   string // by which an HTCJob says what it asks for
	asked   func(Demand) int
	inUse   func(Usage) int
	waiting func(Part) int
}

// RefuseUncounted returns an error of kind schedd.Refused if a limit counts what this demand does not say.
func (r Rules) RefuseUncounted(d Demand) error {
	for _, l := range r.requests() {
		if l.asked(d) == 0 {
			return condor.Refusal(
				"%s counts what jobs ask for, %s: write %s, a number and no expression",
				r.name(l.name),
				r.where(),
				l.field,
			)
		}
	}
	return nil
}

// RefuseRequest returns an error of kind schedd.Refused if a demand is more than what may be in use together.
func (r Rules) RefuseRequest(d Demand) error {
	for _, l := range r.requests() {
		if n := l.asked(d); n > l.most {
			return condor.Refusal(
				"asks for %d %s, which is more than the %d that may be in use %s (%s)",
				n,
				l.unit,
				l.most,
				r.where(),
				r.name(l.name),
			)
		}
	}
	return nil
}

// AtOnce returns how many jobs may be in use at a time of which each asks for so much, 0 for any number.
func (r Rules) AtOnce(each Demand) (most int) {
	for _, l := range r.requests() {
		if asked := l.asked(each); asked > 0 {
			n := max(l.most/asked, 1)
			most = min(cmp.Or(most, n), n)
		}
	}
	return most
}
