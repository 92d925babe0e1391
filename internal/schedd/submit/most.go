package submit

import (
	"cmp"
	"strconv"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// within refuses what asks for more than one job may have in the pool. A job that says nothing of how long it runs may
// run for the most.
func (d Description) within(options []option) (Description, []option, error) {
	most := d.Defaults.Most
	for _, m := range []struct {
		key, field, unit string
		most             int64
		is               bool // a limit, also if it is 0
	}{
		{"request_cpus", "cpus", "", most.CPUs, most.CPUs > 0},
		{"request_gpus", "gpus", "", most.GPUs, most.GPUs > 0 || most.NoGPUs},
		{"request_memory", "memory", " MiB", most.Memory, most.Memory > 0},
		{"request_disk", "disk", " KiB", most.Disk, most.Disk > 0},
		{runLimit, "runDeadlineSeconds", " s", most.RunDeadline, most.RunDeadline > 0},
	} {
		asked, there := value(options, m.key)
		if !m.is || !there {
			continue
		}
		switch n, isNumber := units(option{m.key, asked}); {
		case !isNumber:
			return d, nil, condor.Refusal(
				"HTCPool %s allows a job at most %d%s of %s (max.%s), so expected a number, found %q",
				d.Tag.Pool,
				m.most,
				m.unit,
				m.key,
				m.field,
				condor.Clip(asked),
			)
		case n > float64(m.most):
			return d, nil, condor.Refusal(
				"HTCPool %s allows a job at most %d%s of %s (max.%s), found %.0f%s: ask for less, or name another pool",
				d.Tag.Pool,
				m.most,
				m.unit,
				m.key,
				m.field,
				n,
				m.unit,
			)
		}
	}
	if m := cmp.Or(d.JobOptions.MemoryRetry, d.Defaults.JobOptions.MemoryRetry); m != nil && most.Memory > 0 &&
		m.Most > most.Memory {
		return d, nil, condor.Refusal(
			"HTCPool %s allows a job at most %d MiB of memory (max.memory), found %d MiB in spec.memoryRetry.maxMemory: ask for less, or name another pool",
			d.Tag.Pool,
			most.Memory,
			m.Most,
		)
	}
	if most.RunDeadline == 0 {
		return d, options, nil
	}
	// What would only be held by a line of htcopts ends, too.
	d.JobOptions.RunDeadline = most.RunDeadline
	if asked, limited := value(options, runLimit); !limited {
		options = append(options, option{runLimit, strconv.FormatInt(most.RunDeadline, 10)})
	} else if n, _ := units(option{runLimit, asked}); n >= 1 {
		d.JobOptions.RunDeadline = int64(n)
	}
	return d, options, nil
}
