package submit

import "htc.cern.ch/htcd/internal/schedd/condor"

// JobOptions holds what an HTCJob's own fields say about its jobs' resources, when they are retried and when they are
// given up. The zero value says nothing.
type JobOptions struct {
	CPUs, GPUs int64
	NoGPUs     bool  // 0 GPUs are requested, which adds no line but contradicts any other number
	Memory     int64 // MiB
	Disk       int64 // KiB

	AccountingGroup string
	Requirements    string // a ClassAd expression

	Priority     *int  // nil: not set
	Retries      *int  // nil: not set
	SuccessCodes []int // return codes that are success; empty: not set

	MemoryRetry *MemoryRetry

	condor.Deadlines
}

// MemoryRetry lets a job that was held for too little memory run again with more.
type MemoryRetry struct {
	Most  int64 // MiB
	Times int
}

// The largest requests. No machine has more, and condor_submit's arithmetic is near its limit.
const (
	mostCount  = 1_000_000
	mostMemory = 1 << 30 // MiB: 1 PiB
	mostDisk   = 1 << 40 // KiB: 1 PiB
)

func (o JobOptions) check() error {
	for _, r := range []struct {
		field       string
		asked, most int64
	}{
		{"resources.cpus", o.CPUs, mostCount}, {"resources.gpus", o.GPUs, mostCount},
		{"resources.memory", o.Memory, mostMemory}, {"resources.disk", o.Disk, mostDisk},
	} {
		if r.asked < 0 || r.asked > r.most {
			return condor.Refusal("spec.%s: expected at least 0 and at most %d, found %d", r.field, r.most, r.asked)
		}
	}
	if o.AccountingGroup != "" {
		if _, err := word(o.AccountingGroup); err != nil {
			return condor.Refusal("spec.accountingGroup: %w", err)
		}
	}
	if o.Priority != nil && (*o.Priority < -mostCount || *o.Priority > mostCount) {
		return condor.Refusal(
			"spec.priority: expected at least -%d and at most %d, found %d",
			mostCount,
			mostCount,
			*o.Priority,
		)
	}
	if o.Retries != nil && (*o.Retries < 0 || *o.Retries > mostCount) {
		return condor.Refusal("spec.retries: expected at least 0 and at most %d, found %d", mostCount, *o.Retries)
	}
	for _, code := range o.SuccessCodes {
		if code < 0 || code > 255 {
			return condor.Refusal("spec.successExitCodes: expected return codes from 0 to 255, found %d", code)
		}
	}
	if m := o.MemoryRetry; m != nil && (m.Most < 1 || m.Most > mostMemory || m.Times < 1 || m.Times > 30) {
		return condor.Refusal(
			"spec.memoryRetry: expected maxMemory up to 1 PiB and maxRetries from 1 to 30, found %d MiB and %d",
			m.Most,
			m.Times,
		)
	}
	return o.Deadlines.Check()
}
