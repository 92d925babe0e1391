// Package joboptions converts the fields of a spec that correspond to submit commands.
package joboptions

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

// Of returns what a spec says about its jobs' resources, retries and deadlines, in HTCondor's units. Its errors are of
// kind schedd.Refused.
func Of(spec v1alpha1.HTCJobSpec) (submit.JobOptions, error) {
	o := submit.JobOptions{AccountingGroup: spec.AccountingGroup, Requirements: spec.Requirements}
	for _, code := range spec.SuccessExitCodes {
		o.SuccessCodes = append(o.SuccessCodes, int(code))
	}
	if spec.Priority != nil {
		o.Priority = new(int(*spec.Priority))
	}
	if spec.Retries != nil {
		o.Retries = new(int(*spec.Retries))
	}
	seconds := func(n *int64) int64 {
		if n == nil {
			return 0
		}
		return *n
	}
	o.Deadlines = condor.Deadlines{
		HeldDeadline: seconds(
			spec.HeldDeadlineSeconds,
		), IdleDeadline: seconds(spec.IdleDeadlineSeconds), RunDeadline: seconds(spec.RunDeadlineSeconds),
	}
	var err error
	if r := spec.Resources; r != nil {
		for _, ask := range []struct {
			to    *int64
			field string
			asked *resource.Quantity
			unit  int64
			in    span
		}{
			{&o.CPUs, "spec.resources.cpus", r.CPUs, 1, cores},
			{&o.Memory, "spec.resources.memory", r.Memory, 1 << 20, bytes},
			{&o.Disk, "spec.resources.disk", r.Disk, 1 << 10, bytes},
		} {
			if ask.asked == nil {
				continue
			}
			if *ask.to, err = units(ask.field, *ask.asked, ask.unit, ask.in); err != nil {
				return o, err
			}
		}
		if r.GPUs != nil {
			if o.GPUs, err = gpus(*r.GPUs); err != nil {
				return o, err
			}
			o.NoGPUs = o.GPUs == 0
		}
	}
	if m := spec.MemoryRetry; m != nil {
		o.MemoryRetry = &submit.MemoryRetry{Times: int(m.MaxRetries)}
		o.MemoryRetry.Most, err = units("spec.memoryRetry.maxMemory", m.MaxMemory, 1<<20, bytes)
	}
	return o, err
}

// span is what may be asked for.
type span struct{ least, most, words string }

var (
	cores = span{"1n", "1M", "more than 0 and at most 1M"}
	// bytes is for memory and disk. Who asks for less means another unit: 3000 are 3000 bytes to Kubernetes and 3000
	// MiB to HTCondor.
	bytes = span{"1Mi", "1Pi", "1Mi to 1Pi"}
)

// units rounds a quantity up to whole units.
func units(field string, asked resource.Quantity, unit int64, in span) (int64, error) {
	if vast(asked) {
		return 0, condor.Refusal("%s: expected %s, found %s", field, in.words, asked.String())
	}
	least := resource.MustParse(in.least)
	if asked.Cmp(least) >= 0 && asked.Cmp(resource.MustParse(in.most)) <= 0 {
		return (asked.Value() + unit - 1) / unit, nil
	}
	hint := ""
	if n, whole := asked.AsInt64(); whole && n > 0 && asked.Cmp(least) < 0 {
		hint = fmt.Sprintf(", which are %d bytes: for MiB write %dMi", n, n)
	}
	return 0, condor.Refusal("%s: expected %s, found %s%s", field, in.words, asked.String(), hint)
}

// vast reports whether a quantity has an exponent with which it takes up to minutes to compare. The CRDs refuse it,
// too.
func vast(asked resource.Quantity) bool { return asked.AsDec().Scale() < -99 }

// gpus returns a whole number; 0 asks for none.
func gpus(asked resource.Quantity) (int64, error) {
	if vast(asked) {
		return 0, condor.Refusal(
			"spec.resources.gpus: expected a whole number, at least 0 and at most 1M, found %s",
			asked.String(),
		)
	}
	n := asked.Value()
	if asked.Sign() < 0 || asked.Cmp(resource.MustParse("1M")) > 0 ||
		asked.Cmp(*resource.NewQuantity(n, resource.DecimalSI)) != 0 {
		return 0, condor.Refusal(
			"spec.resources.gpus: expected a whole number, at least 0 and at most 1M, found %s",
			asked.String(),
		)
	}
	return n, nil
}
