package submit

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Defaults are what the administrator of a pool has decided for what an HTCJob does not say, and for what it asks.
type Defaults struct {
	Options     string // submit commands, as htcopts
	JobOptions  JobOptions
	Environment map[string]string
	// that one job may ask for, in CPUs, GPUs, Memory, Disk and RunDeadline; what is not said has no limit
	Most   JobOptions
	Adjust Adjust
}

// Adjust changes what is asked for: percent first, then the extra. The zero value changes nothing.
type Adjust struct {
	CPUs, Memory, Disk int64 // percent; 0: 100
	MemoryExtra        int64 // MiB
}

// CheckDefaults returns what is wrong with a pool's defaults, whatever an HTCJob says. allow is that of Description.
func CheckDefaults(pool string, defaults Defaults, allow []string, attributes ...string) error {
	if err := checkEnvironment(defaults.Environment); err != nil {
		return err
	}
	if err := defaults.JobOptions.check(); err != nil {
		return err
	}
	d := Description{
		Options:     defaults.Options,
		Allow:       allow,
		Attributes:  attributes,
		JobOptions:  defaults.JobOptions,
		Environment: defaults.Environment,
		Defaults:    defaults,
	}
	d.Tag.Pool = pool
	own, err := d.own()
	if err != nil {
		return err
	}
	if _, own, err = d.within(own); err != nil {
		return err
	}
	_, err = defaults.Adjust.apply(own, "the pool")
	return err
}

// withDefaults completes a description, and its own lines, with what they do not say. A line counts as said, whether
// htcopts or a field says it.
func (d Description) withDefaults(own []option) (Description, []option, error) {
	defaults, err := Description{
		Options:    d.Defaults.Options,
		Allow:      d.Allow,
		Attributes: d.Attributes,
		JobOptions: d.Defaults.JobOptions,
	}.own()
	if err != nil {
		return d, nil, err
	}
	said := d.says(own)
	for _, o := range defaults {
		if !said[subject(o.key)] {
			own = append(own, o)
		}
	}
	if key, err := tooLong(own); err != nil {
		return d, nil, condor.Refusal(
			"with the defaults of HTCPool %s, %s: %w",
			d.Tag.Pool,
			strings.TrimPrefix(key, "My."),
			err,
		)
	}
	if !said["environment"] || len(d.Environment) > 0 {
		all := maps.Clone(d.Defaults.Environment)
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, d.Environment)
		if err := checkEnvironment(all); err != nil {
			return d, nil, condor.Refusal("with the defaults of HTCPool %s, %w", d.Tag.Pool, err)
		}
		d.Environment = all
	}
	deadlines := d.Defaults.JobOptions.Deadlines
	if said[runLimit] {
		deadlines.RunDeadline = 0
	}
	d.JobOptions.Deadlines = d.JobOptions.Or(deadlines)
	if d, own, err = d.within(own); err != nil {
		return d, nil, err
	}
	if own, err = d.Defaults.Adjust.apply(own, "HTCPool "+d.Tag.Pool); err != nil {
		return d, nil, err
	}
	if m := d.Defaults.JobOptions.MemoryRetry; m != nil && d.JobOptions.MemoryRetry == nil {
		asked, _ := value(own, "request_memory")
		if n, isNumber := units(option{"request_memory", asked}); isNumber && n >= 1 && n < float64(m.Most) {
			d.JobOptions.MemoryRetry = m
		}
	}
	return d, own, nil
}

// says returns the subjects about which a description says something itself.
func (d Description) says(own []option) map[string]bool {
	said := map[string]bool{}
	for _, o := range own {
		said[subject(o.key)] = true
	}
	for about, is := range map[string]bool{
		"environment": len(d.Environment) > 0, "request_gpus": d.JobOptions.NoGPUs, "success_exit_code": len(d.JobOptions.SuccessCodes) > 0,
		"transfer_output_files": len(d.Outputs) > 0,
		"max_retries":           said["on_exit_remove"], // which says itself when a job runs again
	} {
		said[about] = said[about] || is
	}
	return said
}

// subject returns the command by which lines are known that say the same, or of which only one can be there.
func subject(key string) string {
	switch key = strings.ToLower(key); key {
	case "my.accountinggroup", "nice_user":
		return "accounting_group"
	case "preferences":
		return "rank"
	case "concurrency_limits_expr":
		return "concurrency_limits"
	case "env":
		return "environment"
	case "transfer_output_remaps":
		return "transfer_output_files"
	case "my.maxruntime": // a flavour is a name for a run time
		return "my.jobflavour"
	}
	return key
}

// apply changes the requests that are numbers; expressions stay as they are.
func (a Adjust) apply(options []option, pool string) ([]option, error) {
	for _, r := range []struct {
		key            string
		percent, extra int64
		most           float64
	}{
		{"request_cpus", a.CPUs, 0, mostCount},
		{"request_memory", a.Memory, a.MemoryExtra, mostMemory},
		{"request_disk", a.Disk, 0, mostDisk},
	} {
		asked, there := value(options, r.key)
		n, isNumber := units(option{r.key, asked})
		if !there || !isNumber || (r.percent == 0 || r.percent == 100) && r.extra == 0 {
			continue
		}
		if r.percent > 0 {
			n = n * float64(r.percent) / 100
		}
		if n = math.Ceil(n + float64(r.extra)); n > r.most {
			return nil, condor.Refusal(
				"%s = %s, with the adjustments of %s, is more than the %.0f that can be asked for: ask for less",
				r.key,
				asked,
				pool,
				r.most,
			)
		}
		options = replace(options, r.key, strconv.FormatFloat(n, 'f', 0, 64))
	}
	return options, nil
}

// Requests are what jobs ask for in the end, as far as it is a number; 0: nothing, or an expression.
type Requests struct {
	CPUs, GPUs      int64
	Memory          int64 // MiB
	Disk            int64 // KiB
	Retries         *int
	AccountingGroup string
	condor.Deadlines
}

// requests returns those of a completed description, on all nodes together.
func (d Description) requests(options []option) Requests {
	number := func(key string, most float64) int64 {
		text, _ := value(options, key)
		n, isNumber := units(option{key, text})
		if !isNumber || n > most {
			return 0
		}
		return int64(math.Ceil(n))
	}
	nodes := int64(max(d.Nodes, 1))
	r := Requests{
		CPUs: nodes * number("request_cpus", mostCount), GPUs: nodes * number("request_gpus", mostCount),
		Memory: nodes * number("request_memory", mostMemory), Disk: nodes * number("request_disk", mostDisk),
		Deadlines: d.JobOptions.Deadlines,
	}
	if text, there := value(options, "max_retries"); there {
		if n, err := strconv.Atoi(text); err == nil {
			r.Retries = &n
		}
	}
	for _, o := range slices.Backward(options) {
		if subject(o.key) == "accounting_group" && o.key != "nice_user" {
			r.AccountingGroup = strings.Trim(o.value, `"`)
			break
		}
	}
	return r
}
