package matching

import (
	"cmp"
	"slices"

	"htc.cern.ch/htcd/internal/schedd"
)

// Slots are those of a pool.
type Slots []schedd.Slot

// Machines returns how many there are.
func (all Slots) Machines() int { return all.machines(func(schedd.Slot) bool { return true }) }

// machines counts those with such a slot.
func (all Slots) machines(such func(schedd.Slot) bool) int {
	seen := map[string]bool{}
	for _, s := range all {
		if such(s) {
			seen[s.Machine] = true
		}
	}
	return len(seen)
}

// largest returns the most that a slot has of something.
func (all Slots) largest(of func(schedd.Size) int64) (most int64) {
	for _, s := range all {
		most = max(most, of(s.Whole))
	}
	return most
}

// sample returns some machines that hold a job of that size, of each kind of slots a few: those with room first.
func (all Slots) sample(need schedd.Size, most int) (machines []string) {
	var large Slots
	for _, s := range all {
		if holds(s.Whole, need) {
			large = append(large, s)
		}
	}
	room := func(s schedd.Slot) int {
		if holds(s.Free, need) {
			return 0
		}
		return 1
	}
	slices.SortFunc(
		large,
		func(a, b schedd.Slot) int { return cmp.Or(room(a)-room(b), cmp.Compare(a.Machine, b.Machine)) },
	)
	step := max(1, len(large)/most)
	seen := map[string]bool{}
	for i := 0; i < len(large) && len(machines) < most; i += step {
		if name := large[i].Machine; !seen[name] {
			seen[name] = true
			machines = append(machines, name)
		}
	}
	return machines
}

// Kind is slots of one size.
type Kind struct {
	Size     schedd.Size `json:"size"` // without disk; memory in whole GiB
	Machines int         `json:"machines"`
	Slots    int         `json:"slots"`
	Idle     int         `json:"idle"`    // nothing runs in these
	Free     schedd.Size `json:"free"`    // the sum of what is free in them
	Largest  schedd.Size `json:"largest"` // that is free in one of them, by CPUs and then memory
}

// Kinds sorts slots by their size, the largest first.
func (all Slots) Kinds() []Kind {
	sorted, machines := map[schedd.Size]*Kind{}, map[schedd.Size]map[string]bool{}
	for _, s := range all {
		size := schedd.Size{CPUs: s.Whole.CPUs, GPUs: s.Whole.GPUs, Memory: s.Whole.Memory >> 10 << 10}
		if sorted[size] == nil {
			sorted[size], machines[size] = &Kind{Size: size}, map[string]bool{}
		}
		k := sorted[size]
		k.Slots++
		machines[size][s.Machine] = true
		k.Machines = len(machines[size])
		if s.Free.CPUs == s.Whole.CPUs {
			k.Idle++
		}
		k.Free = schedd.Size{
			CPUs:   k.Free.CPUs + s.Free.CPUs,
			GPUs:   k.Free.GPUs + s.Free.GPUs,
			Memory: k.Free.Memory + s.Free.Memory,
			Disk:   k.Free.Disk + s.Free.Disk,
		}
		if cmp.Or(cmp.Compare(s.Free.CPUs, k.Largest.CPUs), cmp.Compare(s.Free.Memory, k.Largest.Memory)) > 0 {
			k.Largest = s.Free
		}
	}
	var kinds []Kind
	for _, k := range sorted {
		kinds = append(kinds, *k)
	}
	slices.SortFunc(kinds, func(a, b Kind) int {
		return cmp.Or(
			cmp.Compare(b.Size.CPUs, a.Size.CPUs),
			cmp.Compare(b.Size.Memory, a.Size.Memory),
			cmp.Compare(b.Size.GPUs, a.Size.GPUs),
		)
	})
	return kinds
}
