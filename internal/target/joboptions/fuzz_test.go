package joboptions_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/target/joboptions"
)

var exponent = regexp.MustCompile("[eE][+-]?[0-9]{3}")

// Whatever quantity is asked for, HTCondor is asked for as much, and for less than one unit more, or it is refused in
// one line.
func FuzzQuantity(f *testing.F) {
	for _, seed := range []string{"4Gi", "3000", "500m", "1e30", "-1", "0.1n", "9223372036854775807", "1Pi", "1048577", "1.5", ".5Gi", "1E", "0", "1e6"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if exponent.MatchString(text) {
			return // the CRDs refuse it, as to read 1e-50000000 takes minutes
		}
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return
		}
		enough := func(got, unit int64) {
			require.LessOrEqual(t, q.Cmp(*resource.NewQuantity(got*unit, resource.DecimalSI)), 0, text)
			require.Positive(t, q.Cmp(*resource.NewQuantity((got-1)*unit, resource.DecimalSI)), text)
		}
		for name, c := range map[string]struct {
			asked v1alpha1.HTCJobSpec
			check func(submit.JobOptions)
		}{
			"cpus":      {v1alpha1.HTCJobSpec{Resources: &v1alpha1.Resources{CPUs: &q}}, func(o submit.JobOptions) { enough(o.CPUs, 1) }},
			"memory":    {v1alpha1.HTCJobSpec{Resources: &v1alpha1.Resources{Memory: &q}}, func(o submit.JobOptions) { enough(o.Memory, 1<<20) }},
			"disk":      {v1alpha1.HTCJobSpec{Resources: &v1alpha1.Resources{Disk: &q}}, func(o submit.JobOptions) { enough(o.Disk, 1<<10) }},
			"gpus":      {v1alpha1.HTCJobSpec{Resources: &v1alpha1.Resources{GPUs: &q}}, func(o submit.JobOptions) { require.Zero(t, q.CmpInt64(o.GPUs), text) }},
			"maxMemory": {v1alpha1.HTCJobSpec{MemoryRetry: &v1alpha1.MemoryRetry{MaxMemory: q}}, func(o submit.JobOptions) { enough(o.MemoryRetry.Most, 1<<20) }},
		} {
			o, err := joboptions.Of(c.asked)
			if err == nil {
				c.check(o)
				continue
			}
			require.Equal(t, condor.Refused, condor.KindOf(err))
			require.Contains(t, err.Error(), name)
			require.False(t, strings.ContainsAny(err.Error(), "\n\r"))
		}
	})
}
