package usage

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// Tally collects what the jobs of an attempt used, each once: 24 bytes for a job. The zero value is empty.
type Tally struct {
	// Name is what the advice calls a job, such as job 7; nil: that.
	Name func(proc int) string

	cpu, memory, disk resourceTally
}

// resourceTally is that of one resource.
type resourceTally struct {
	used  []int64
	worst int64 // the most
	proc  int   // that used it, the first of several
	asked int64 // the most
}

// Add counts a job that has started. Memory and disk that HTCondor has not measured do not count.
func (t *Tally) Add(proc int, u Use) {
	// How many cores it kept busy on average, in thousandths.
	t.cpu.add(proc, u.CPU/max(u.Wall, 1), u.AskedCPUs*1000)
	if u.Memory > 0 {
		t.memory.add(proc, u.Memory, u.AskedMemory)
	}
	if u.Disk > 0 {
		t.disk.add(proc, u.Disk, u.AskedDisk)
	}
}

func (r *resourceTally) add(proc int, used, asked int64) {
	if len(r.used) == 0 || used > r.worst || used == r.worst && proc < r.proc {
		r.worst, r.proc = used, proc
	}
	r.used = append(r.used, used)
	r.asked = max(r.asked, asked)
}

// Usage returns the summary; nil if no job was added.
func (t *Tally) Usage() *v1alpha1.Usage {
	if len(t.cpu.used) == 0 {
		return nil
	}
	return &v1alpha1.Usage{
		Jobs: int32(len(t.cpu.used)), // #nosec G115 -- at most 100,000
		CPU:  t.cpu.of(cores), Memory: t.memory.of(mebibytes), Disk: t.disk.of(kibibytes), Advice: t.advice(),
	}
}

func (r *resourceTally) of(quantity func(int64) resource.Quantity) *v1alpha1.Used {
	if len(r.used) == 0 {
		return nil
	}
	slices.Sort(r.used)
	used := &v1alpha1.Used{
		Median: quantity(
			r.used[(len(r.used)-1)/2],
		), Worst: quantity(r.worst), WorstProc: int32(r.proc), // #nosec G115 -- below 100,000
	}
	if r.asked > 0 {
		used.Requested = new(quantity(r.asked))
	}
	return used
}

func cores(thousandths int64) resource.Quantity {
	return *resource.NewMilliQuantity(thousandths, resource.DecimalSI)
}

func mebibytes(n int64) resource.Quantity { return *resource.NewQuantity(n<<20, resource.BinarySI) }

func kibibytes(n int64) resource.Quantity { return *resource.NewQuantity(n<<10, resource.BinarySI) }
