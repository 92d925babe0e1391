// Package joboptions converts the fields of a spec that correspond to submit commands.
package joboptions

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd"
)

// Of returns what a spec says about its jobs' resources, retries and deadlines, in HTCondor's units. Its errors are of kind
// schedd.Refused.
func Of(spec v1alpha1.HTCJobSpec) (schedd.JobOptions, error) {
	o := schedd.JobOptions{AccountingGroup: spec.AccountingGroup, Requirements: spec.Requirements}
	for _, code := range spec.SuccessExitCodes {
		o.SuccessCodes = append(o.SuccessCodes, int(code))
	}
	if spec.Priority != nil {
		o.Priority = new(int(*spec.Priority))
	}
	if spec.Retries != nil {
		o.Retries = new(int(*spec.Retries))
	}
	if spec.HeldDeadlineSeconds != nil {
		o.HeldDeadline = *spec.HeldDeadlineSeconds
	}
	if spec.IdleDeadlineSeconds != nil {
		o.IdleDeadline = *spec.IdleDeadlineSeconds
	}
	var err error
	if r := spec.Resources; r != nil {
		for _, ask := range []struct {
			to    *int64
			field string
			asked *resource.Quantity
			unit  int64
			most  string
		}{
			{&o.CPUs, "spec.resources.cpus", r.CPUs, 1, "1M"},
			{&o.Memory, "spec.resources.memory", r.Memory, 1 << 20, "1Pi"},
			{&o.Disk, "spec.resources.disk", r.Disk, 1 << 10, "1Pi"},
		} {
			if ask.asked == nil {
				continue
			}
			if *ask.to, err = units(ask.field, *ask.asked, ask.unit, ask.most); err != nil {
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
		o.MemoryRetry = &schedd.MemoryRetry{Times: int(m.MaxRetries)}
		o.MemoryRetry.Most, err = units("spec.memoryRetry.maxMemory", m.MaxMemory, 1<<20, "1Pi")
	}
	return o, err
}

// units rounds a quantity up to whole units.
func units(field string, asked resource.Quantity, unit int64, most string) (int64, error) {
	if asked.Sign() <= 0 || asked.Cmp(resource.MustParse(most)) > 0 {
		return 0, schedd.Refusal("%s: expected more than 0 and at most %s, found %s", field, most, asked.String())
	}
	return (asked.Value() + unit - 1) / unit, nil
}

// gpus returns a whole number; 0 asks for none.
func gpus(asked resource.Quantity) (int64, error) {
	n := asked.Value()
	if asked.Sign() < 0 || asked.Cmp(resource.MustParse("1M")) > 0 || asked.Cmp(*resource.NewQuantity(n, resource.DecimalSI)) != 0 {
		return 0, schedd.Refusal("spec.resources.gpus: expected a whole number, at least 0 and at most 1M, found %s", asked.String())
	}
	return n, nil
}
