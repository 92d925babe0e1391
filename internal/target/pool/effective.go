package pool

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

// Effective returns what holds for an attempt that is sent by the pool and asks for so much; nil without a pool. Of the
// deadline for all of it, it holds the pool's default only: the HTCJob's own may be edited at any time.
func (p Pool) Effective(asked submit.Requests) *v1alpha1.Effective {
	if p.None() {
		return nil
	}
	e := &v1alpha1.Effective{Pool: p.Name, AccountingGroup: asked.AccountingGroup}
	quantity := func(n, unit int64, format resource.Format) *resource.Quantity {
		if n == 0 {
			return nil
		}
		return resource.NewQuantity(n*unit, format)
	}
	r := v1alpha1.Resources{
		CPUs: quantity(asked.CPUs, 1, resource.DecimalSI), GPUs: quantity(asked.GPUs, 1, resource.DecimalSI),
		Memory: quantity(asked.Memory, 1<<20, resource.BinarySI), Disk: quantity(asked.Disk, 1<<10, resource.BinarySI),
	}
	if r != (v1alpha1.Resources{}) {
		e.Resources = &r
	}
	if asked.Retries != nil {
		e.Retries = new(int32(*asked.Retries))
	}
	for _, d := range []struct {
		to      **int64
		seconds int64
	}{{&e.HeldDeadlineSeconds, asked.HeldDeadline}, {&e.IdleDeadlineSeconds, asked.IdleDeadline},
		{&e.RunDeadlineSeconds, asked.RunDeadline}} {
		if d.seconds > 0 {
			*d.to = new(d.seconds)
		}
	}
	if d := p.Spec.Defaults; d != nil {
		e.ActiveDeadlineSeconds = d.ActiveDeadlineSeconds
	}
	return e
}

// Write returns what holds for an attempt as the ledger keeps it.
func Write(e *v1alpha1.Effective) string {
	if e == nil {
		return ""
	}
	text, err := json.Marshal(e)
	if err != nil {
		// No value of the type can do that.
		panic(fmt.Sprintf("what holds for an attempt cannot be written as JSON: %v", err))
	}
	return string(text)
}

// ReadEffective returns what Write has written, for a run that was sent by that pool; nil without one.
func ReadEffective(name, text string) *v1alpha1.Effective {
	if name == "" {
		return nil
	}
	e := &v1alpha1.Effective{}
	_ = json.Unmarshal([]byte(text), e) // an unreadable one says nothing but the pool's name
	e.Pool = name
	return e
}
