package condor

import (
	"cmp"
	"math"
	"time"

	"htc.cern.ch/htcd/internal/schedd/usage"
)

// Use returns what the job has used in its last execution until now, if that still goes on, and what it asked for; the
// zero value if it never started.
func (j Job) Use(now time.Time) usage.Use {
	if j.JobStartDate == 0 || j.Spooling() {
		return usage.Use{}
	}
	until := j.EnteredCurrentStatus
	switch {
	case j.Status == Running || j.Status == TransferringOutput:
		until = now.Unix()
	case j.Done() && j.CompletionDate > 0:
		until = j.CompletionDate
	}
	memory := j.MemoryUsage
	if memory == 0 {
		memory = (j.ResidentSetSize + 1023) / 1024
	}
	return usage.Use{
		CPU:    bounded(int64(math.Min(math.Max(0, (j.UserCPU+j.SysCPU)*1000), usage.Most))),
		Wall:   bounded(until - cmp.Or(j.JobCurrentStartDate, j.JobStartDate)),
		Memory: bounded(memory),
		Disk:   bounded(j.DiskUsage),
		// A request that is an expression has become a number in the slot; that of disk is then HTCondor's own, and is
		// nobody's wish.
		AskedCPUs:   bounded(bounded(j.RequestCpus) * min(max(j.MaxHosts, 1), mostNodes)),
		AskedMemory: bounded(cmp.Or(j.RequestMemory, j.MemoryProvisioned)),
		AskedDisk:   bounded(j.RequestDisk),
	}
}

// mostNodes is more than any job has.
const mostNodes = 1 << 16

// bounded makes a number fit for a Use, whatever an ad says.
func bounded(n int64) int64 { return min(max(n, 0), usage.Most) }
