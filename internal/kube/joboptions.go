package kube

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd"
)

// jobOptions converts the fields of a spec that correspond to submit commands to HTCondor's units. Its errors are of kind
// schedd.Refused.
func jobOptions(spec v1alpha1.HTCJobSpec) (schedd.JobOptions, error) {
	t := schedd.JobOptions{AccountingGroup: spec.AccountingGroup, Requirements: spec.Requirements}
	for _, code := range spec.SuccessExitCodes {
		t.SuccessCodes = append(t.SuccessCodes, int(code))
	}
	if spec.Retries != nil {
		t.Retries = new(int(*spec.Retries))
	}
	if spec.HeldDeadlineSeconds != nil {
		t.HeldDeadline = *spec.HeldDeadlineSeconds
	}
	if spec.IdleDeadlineSeconds != nil {
		t.IdleDeadline = *spec.IdleDeadlineSeconds
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
			{&t.CPUs, "spec.resources.cpus", r.CPUs, 1, "1M"},
			{&t.Memory, "spec.resources.memory", r.Memory, 1 << 20, "1Pi"},
			{&t.Disk, "spec.resources.disk", r.Disk, 1 << 10, "1Pi"},
		} {
			if ask.asked == nil {
				continue
			}
			if *ask.to, err = units(ask.field, *ask.asked, ask.unit, ask.most); err != nil {
				return t, err
			}
		}
		if r.GPUs != nil {
			if t.GPUs, err = gpus(*r.GPUs); err != nil {
				return t, err
			}
			t.NoGPUs = t.GPUs == 0
		}
	}
	if m := spec.MemoryRetry; m != nil {
		t.MemoryRetry = &schedd.MemoryRetry{Times: int(m.MaxRetries)}
		t.MemoryRetry.Most, err = units("spec.memoryRetry.maxMemory", m.MaxMemory, 1<<20, "1Pi")
	}
	return t, err
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
