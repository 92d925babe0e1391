package matching

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/internal/schedd"
)

// Verdict says whether there are slots for a job that waits.
type Verdict struct {
	Is              metav1.ConditionStatus
	Reason, Message string
}

// The reasons of a Verdict.
const (
	ReasonNoMachine = "NoMachine"      // none is large enough
	ReasonNoneMeets = "NoMachineMeets" // none that is large enough meets the job's requirements
	ReasonRefused   = "MachinesRefuse" // those that the job would take do not take it
	ReasonAllBusy   = "AllBusy"
	ReasonRoom      = "Room" // there is a free slot
	ReasonUnknown   = "NotAnswered"
	ReasonInVain    = "StartsFail" // HTCondor starts the job again and again, and its script never begins
)

// inVain is the Verdict on a job that was started so often in vain.
func inVain(starts int64) Verdict {
	return Verdict{
		metav1.ConditionFalse,
		ReasonInVain,
		fmt.Sprintf("HTCondor has started the job %d times, but its script has never begun: "+
			"nodes could not set it up, for example because the schedd has no credential that MY.SendCredential asks for. "+
			"The schedd's ShadowLog has the reason", starts),
	}
}

// Judge says why a job of that size waits, by the first rule that fits. a is nil as long as its requirements have not
// been analysed.
func Judge(need schedd.Size, slots Slots, a *schedd.Analysis) Verdict {
	all := slots.Machines()
	large := slots.machines(func(s schedd.Slot) bool { return holds(s.Whole, need) })
	free := slots.machines(func(s schedd.Slot) bool { return holds(s.Free, need) })
	no := func(reason, format string, args ...any) Verdict {
		return Verdict{metav1.ConditionFalse, reason, fmt.Sprintf(format, args...)}
	}
	yes := func(reason, format string, args ...any) Verdict {
		return Verdict{metav1.ConditionTrue, reason, fmt.Sprintf(format, args...)}
	}
	switch {
	case all == 0:
		return no(ReasonNoMachine, "the pool has no machines")
	case large == 0:
		return no(ReasonNoMachine, "%s", tooLarge(need, slots))
	case a != nil && unmet(*a) != "":
		return no(ReasonNoneMeets, "no machine that is large enough (there are %d) meets %s now", large, unmet(*a))
	case a != nil && a.Slots > 0 && a.Refused == a.Slots:
		return no(
			ReasonRefused,
			"machines that are large enough (there are %d) do not take the job, by their own requirements",
			large,
		)
	case free == 0:
		return yes(
			ReasonAllBusy,
			"machines match, all busy: %d of %s large enough, and none of them has room now",
			large,
			isOrAre(all),
		)
	}
	return yes(
		ReasonRoom,
		"%d of %s room now: HTCondor decides by priorities and quotas, in its next cycle at the earliest",
		free,
		hasOrHave(all),
	)
}

// holds reports whether a job of that size fits.
func holds(slot, need schedd.Size) bool {
	return slot.CPUs >= max(need.CPUs, 1) && slot.GPUs >= need.GPUs && slot.Memory >= need.Memory &&
		slot.Disk >= need.Disk
}

// unmet returns the first part of the requirements that no slot meets, "" if there is none. The parts that HTCondor
// adds for the size are left out: what they are compared with is what is free at the moment. Numbers in brackets stand
// for the parts above.
func unmet(a schedd.Analysis) string {
	for _, step := range a.Steps {
		if step.Slots == 0 && !strings.Contains(step.Condition, "Request") && !strings.Contains(step.Condition, "[") {
			return step.Condition
		}
	}
	return ""
}

// tooLarge names what no machine has enough of, by the first that alone is too much.
func tooLarge(need schedd.Size, slots Slots) string {
	all := slots.Machines()
	for _, one := range []struct {
		of    func(schedd.Size) int64
		words func(int64) string
	}{
		{func(s schedd.Size) int64 { return s.Memory }, func(n int64) string { return bytes(n << 20) }},
		{func(s schedd.Size) int64 { return s.CPUs }, func(n int64) string { return counted(int(n), "CPU") }},
		{func(s schedd.Size) int64 { return s.GPUs }, func(n int64) string { return counted(int(n), "GPU") }},
		{func(s schedd.Size) int64 { return s.Disk }, func(n int64) string { return bytes(n<<10) + " of disk" }},
	} {
		if largest := slots.largest(one.of); one.of(need) > largest {
			return fmt.Sprintf("0 of %s %s (largest %s)", hasOrHave(all), one.words(one.of(need)), one.words(largest))
		}
	}
	return fmt.Sprintf("0 of %s all of what the job asks for: %s", hasOrHave(all), Describe(need))
}

// Describe returns a size for people.
func Describe(s schedd.Size) string {
	words := []string{counted(int(s.CPUs), "CPU"), bytes(s.Memory << 20)}
	if s.GPUs > 0 {
		words = append(words, counted(int(s.GPUs), "GPU"))
	}
	if s.Disk > 0 {
		words = append(words, bytes(s.Disk<<10)+" of disk")
	}
	return strings.Join(words, ", ")
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func isOrAre(machines int) string {
	if machines == 1 {
		return "1 machine is"
	}
	return fmt.Sprintf("%d machines are", machines)
}

func hasOrHave(machines int) string {
	if machines == 1 {
		return "1 machine has"
	}
	return fmt.Sprintf("%d machines have", machines)
}

// bytes returns a number of bytes with at most one digit after the point, which would be that of the next smaller unit.
func bytes(n int64) string {
	unit, units := 0, []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	f := float64(n)
	for f >= 1024 && unit < len(units)-1 {
		f, unit = f/1024, unit+1
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", f), ".0") + " " + units[unit]
}
