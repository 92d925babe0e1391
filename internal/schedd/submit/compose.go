package submit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// own returns the submit lines of htcopts and of the job options, which must agree.
func (d Description) own() ([]option, error) {
	options, err := parseOptions(d.Options, d.allowances())
	if err != nil {
		return nil, err
	}
	all, err := d.JobOptions.said()
	if err != nil {
		return nil, err
	}
	if err := d.agree(all); err != nil {
		return nil, err
	}
	for _, s := range all {
		if _, there := value(options, s.key); !there {
			options = append(options, s.option)
		}
	}
	if err := d.chained(options); err != nil {
		return nil, err
	}
	return options, d.checkInteractive(options)
}

// complete adds what follows from the job options as a whole.
func (d Description) complete(options []option) (_ []option, err error) {
	for _, more := range []func([]option) ([]option, error){d.keepPoolHold, d.place, d.JobOptions.moreMemory,
		d.JobOptions.keepDeadlines, d.JobOptions.success, d.onNodesWithPlugins} {
		if options, err = more(options); err != nil {
			return nil, err
		}
	}
	return options, nil
}

// value returns the last value of a command, which is the effective one.
func value(options []option, key string) (string, bool) {
	for _, o := range slices.Backward(options) {
		if o.key == key {
			return o.value, true
		}
	}
	return "", false
}

// replace sets a command to one value, dropping all others.
func replace(options []option, key, value string) []option {
	options = slices.DeleteFunc(options, func(o option) bool { return o.key == key })
	return append(options, option{key, value})
}

// keepPoolHold makes users' conditions pass over a job while its pool is suspended: they shall neither end that hold
// nor count it.
func (d Description) keepPoolHold(options []option) ([]option, error) {
	if d.Tag.Pool == "" {
		return options, nil
	}
	for _, key := range []string{"periodic_release", "periodic_remove"} {
		before, there := value(options, key)
		if !there {
			continue
		}
		condition, err := joined("&&", condor.PoolNotHeld, before)
		if err != nil {
			return nil, condor.Refusal("%s: %w", key, err)
		}
		options = replace(options, key, condition)
	}
	return options, nil
}

// orElse adds an alternative to a command that is a condition. It comes first: the user's condition may be undefined,
// and then nothing after it would count.
func orElse(options []option, key, condition string) ([]option, error) {
	if before, there := value(options, key); there {
		both, err := joined("||", condition, before)
		if err != nil {
			return nil, condor.Refusal("%s: %w", key, err)
		}
		condition = both
	}
	return replace(options, key, condition), nil
}

// orUntil is orElse for retry_until, which may be a code alone.
func orUntil(options []option, condition string) ([]option, error) {
	if code, _ := value(options, "retry_until"); wholeRE.MatchString(code) {
		options = replace(options, "retry_until", "ExitCode =?= "+code)
	}
	return orElse(options, "retry_until", condition)
}

// memoryHolds counts how often a job was held for its memory. The starter's own hold is JobOutOfResources; a machine's
// or a schedd's policy may also hold for other reasons, and then the count is one too high.
const memoryHolds = "((NumHoldsByReason.JobOutOfResources ?: 0) + (NumHoldsByReason.StartdHeldJob ?: 0) + (NumHoldsByReason.SystemPolicy ?: 0))"

// memoryHeld is true for a job held for its memory: code 34 by the starter, 21 by a machine's policy and 26 by the
// schedd's, with the subcode of HTCondor's own policies.
const memoryHeld = "JobStatus == 5 && (HoldReasonCode == 34 || (HoldReasonCode == 21 || HoldReasonCode == 26) && HoldReasonSubCode == 102)"

// moreMemory doubles the request at each such hold, and releases the job while that helps. A schedd before 9.2 does not
// count holds: there the job stays held instead of being released repeatedly with the same memory.
func (o JobOptions) moreMemory(options []option) ([]option, error) {
	m := o.MemoryRetry
	if m == nil {
		return options, nil
	}
	first, there := value(options, "request_memory")
	if !there {
		return nil, condor.Refusal(
			"spec.memoryRetry: expected spec.resources.memory beside it, or a default for it of an HTCPool, which it doubles",
		)
	}
	asked, isNumber := units(option{"request_memory", first})
	switch {
	case !isNumber:
		return nil, condor.Refusal(
			"spec.memoryRetry: expected a number in spec.resources.memory, which it doubles, found request_memory = %s in htcopts",
			first,
		)
	case asked < 1:
		return nil, condor.Refusal(
			"spec.memoryRetry: expected a first request above 0, which it doubles, found request_memory = %s in htcopts",
			first,
		)
	case float64(m.Most) <= asked:
		return nil, condor.Refusal(
			"spec.memoryRetry.maxMemory: expected more than the %.0f MiB of the first request, found %d MiB",
			asked,
			m.Most,
		)
	}
	steps := 0
	for most := asked; most < float64(m.Most); most *= 2 {
		steps++
	}
	options = replace(
		options,
		"request_memory",
		fmt.Sprintf("%s < %d ? %.0f << %s : %d", memoryHolds, steps, asked, memoryHolds, m.Most),
	)
	return orElse(
		options,
		"periodic_release",
		fmt.Sprintf("%s && %s >= 1 && %s <= %d", memoryHeld, memoryHolds, memoryHolds, min(m.Times, steps)),
	)
}

// success ends the retries at every success code, and, where 0 is none, not at 0. It does so without success_exit_code:
// of a job that has this and ends with another code HTCondor brings nothing back. Without retries HTCondor need not
// know these codes, and any of its commands for them would cause retries.
func (o JobOptions) success(options []option) ([]option, error) {
	tried := slices.ContainsFunc(options, func(o option) bool {
		return o.key == "max_retries" || o.key == "retry_until" || o.key == "success_exit_code"
	})
	if len(o.SuccessCodes) == 0 || !tried {
		return options, nil
	}
	options = slices.DeleteFunc(options, func(o option) bool { return o.key == "success_exit_code" })
	var ends []string
	for _, code := range o.SuccessCodes {
		ends = append(ends, fmt.Sprintf("ExitCode =?= %d", code))
	}
	options, err := orUntil(options, strings.Join(ends, " || "))
	if err != nil || slices.Contains(o.SuccessCodes, 0) {
		return options, err
	}
	end := "NumJobCompletions > JobMaxRetries"
	for _, key := range []string{"retry_until", "on_exit_remove"} {
		condition, there := value(options, key)
		if !there {
			continue
		}
		if end, err = joined("||", end, condition); err != nil {
			return nil, condor.Refusal("%s: %w", key, err)
		}
	}
	return append(options, option{"My.OnExitRemove", end}), nil
}

// attributes returns what Job.Outcome needs of the job options.
func (o JobOptions) attributes() []option {
	var all []option
	if len(o.SuccessCodes) > 0 {
		var codes []string
		for _, code := range o.SuccessCodes {
			codes = append(codes, strconv.Itoa(code))
		}
		all = append(all, option{"My." + condor.AttrSuccess, classad.Quote(strings.Join(codes, ","))})
	}
	return append(all, deadlineAttributes(o.Deadlines)...)
}
