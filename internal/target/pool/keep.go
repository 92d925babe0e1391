package pool

import (
	"fmt"
	"math"
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// Keep returns how many seconds an HTCJob is kept after its end in that phase, nil for as long as nobody deletes it.
// own is what its spec says, keep what its pool says.
func Keep(own *int32, keep *v1alpha1.PoolKeep, phase v1alpha1.Phase) *int32 {
	if keep == nil {
		return own
	}
	ttl := own
	if ttl == nil {
		ttl = seconds(map[v1alpha1.Phase]*v1alpha1.PoolDuration{
			v1alpha1.PhaseSucceeded: keep.Succeeded, v1alpha1.PhaseFailed: keep.Failed,
			v1alpha1.PhaseRemoved: keep.Removed,
		}[phase])
	}
	most := seconds(keep.Most)
	if most != nil && (ttl == nil || *ttl > *most) {
		ttl = most
	}
	return ttl
}

// seconds returns a duration in whole seconds; nil for none, and for one that cannot be read, which Check has refused.
func seconds(d *v1alpha1.PoolDuration) *int32 {
	if d == nil {
		return nil
	}
	t, err := time.ParseDuration(string(*d))
	if err != nil {
		return nil
	}
	return new(int32(min(int64(t/time.Second), math.MaxInt32)))
}

func checkKeep(keep *v1alpha1.PoolKeep) error {
	if keep == nil {
		return nil
	}
	for field, d := range map[string]*v1alpha1.PoolDuration{"succeeded": keep.Succeeded, "failed": keep.Failed, "removed": keep.Removed, "most": keep.Most} {
		if d == nil {
			continue
		}
		if _, err := time.ParseDuration(string(*d)); err != nil {
			return fmt.Errorf("keep.%s: found %q, expected a time such as 90s, 30m, 1h or 1h30m", field, *d)
		}
	}
	return nil
}
