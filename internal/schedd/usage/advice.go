package usage

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Fits is the advice when there is nothing to change.
const Fits = "What the jobs asked for fits what they used."

// advice says what to ask for next time: a fifth more than the job that used most. A request that is at most a third
// too large stays, as the next jobs may differ by as much. Less disk is never advised: HTCondor looks at it now and
// then, and what a job has written and removed in between it has not seen.
func (t *Tally) advice() string {
	var all []string
	add := func(name string, r resourceTally, need int64, quantity func(int64) resource.Quantity, less bool) {
		asked, most := quantity(r.asked), quantity(r.worst)
		switch {
		case r.asked == 0 || r.worst == 0:
		case r.worst > r.asked && need > r.asked:
			all = append(
				all,
				fmt.Sprintf(
					"%s: %s instead of %s, as %s used %s",
					name,
					str(quantity(need)),
					&asked,
					t.name(r.proc),
					&most,
				),
			)
		case less && need <= r.asked-r.asked/4:
			all = append(
				all,
				fmt.Sprintf(
					"%s: %s instead of %s, as no job used more than %s",
					name,
					str(quantity(need)),
					&asked,
					&most,
				),
			)
		}
	}
	// Whole cores, in thousandths. A tenth of a core more than a whole number is noise.
	add("cpus", t.cpu, max((t.cpu.worst+899)/1000, 1)*1000, cores, true)
	add("memory", t.memory, rounded(t.memory.worst, 1), mebibytes, true)
	add("disk", t.disk, rounded(t.disk.worst, 1<<10), kibibytes, false)
	if len(all) == 0 {
		return Fits
	}
	return "Next time ask for " + strings.Join(all, "; ") + "."
}

func (t *Tally) name(proc int) string {
	if t.Name == nil {
		return fmt.Sprint("job ", proc)
	}
	return t.Name(proc)
}

func str(q resource.Quantity) string { return q.String() }

// rounded adds a fifth, and rounds up to a number that people write: 64, 128, 192 ... MiB, from 1 GiB on steps of 256
// MiB, and so on; mebi is 1 MiB in the unit of used.
func rounded(used, mebi int64) int64 {
	need := used + used/5
	step := 64 * mebi
	for need > 16*step {
		step *= 4
	}
	return max((need+step-1)/step, 1) * step
}
