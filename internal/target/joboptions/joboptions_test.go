package joboptions_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/joboptions"
)

func quantity(s string) *resource.Quantity { return new(resource.MustParse(s)) }

func TestQuantitiesAreRoundedUpToHTCondorsUnits(t *testing.T) {
	for asked, want := range map[string][3]int64{ // cpus, MiB, KiB; 0: not asked for
		"1":           {1, 0, 0},
		"500m":        {1, 0, 0},
		"1500m":       {2, 0, 0},
		"1048577":     {0, 2, 1025},
		"2Gi":         {0, 2048, 2 << 20},
		"2G":          {0, 1908, 1953125},
		"1.5Gi":       {0, 1536, 1536 << 10},
		"1Pi":         {0, 1 << 30, 1 << 40},
		"0.000000001": {1, 0, 0},
	} {
		r := v1alpha1.Resources{}
		if want[0] > 0 {
			r.CPUs = quantity(asked)
		}
		if want[1] > 0 {
			r.Memory, r.Disk = quantity(asked), quantity(asked)
		}
		got, err := joboptions.Of(v1alpha1.HTCJobSpec{Resources: &r})
		require.NoError(t, err, asked)
		require.Equal(t, want, [3]int64{got.CPUs, got.Memory, got.Disk}, asked)
	}
}

func TestQuantitiesThatNoMachineHasAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spec  v1alpha1.HTCJobSpec
		words string
	}{
		"no cpus":                        {v1alpha1.HTCJobSpec{Resources: &v1alpha1.Resources{CPUs: quantity("0")}}, "spec.resources.cpus: expected more than 0 and at most 1M, found 0"},
		"too many cpus":                  {v1alpha1.HTCJobSpec{Resources: &v1alpha1.Resources{CPUs: quantity("1000001")}}, "spec.resources.cpus: expected more than 0"},
		"less memory than none":          {v1alpha1.HTCJobSpec{Resources: &v1alpha1.Resources{Memory: quantity("-1Gi")}}, "spec.resources.memory: expected 1Mi to 1Pi, found -1Gi"},
		"memory of bytes":                {v1alpha1.HTCJobSpec{Resources: &v1alpha1.Resources{Memory: quantity("3000")}}, "spec.resources.memory: expected 1Mi to 1Pi, found 3k, which are 3000 bytes: for MiB write 3000Mi"},
		"memory beyond 64 bits":          {v1alpha1.HTCJobSpec{Resources: &v1alpha1.Resources{Memory: quantity("1e30")}}, "spec.resources.memory"},
		"memory that cannot be compared": {v1alpha1.HTCJobSpec{Resources: &v1alpha1.Resources{Memory: quantity("1e50000000")}}, "spec.resources.memory: expected 1Mi to 1Pi, found 100e49999998"},
		"gpus that cannot be compared":   {v1alpha1.HTCJobSpec{Resources: &v1alpha1.Resources{GPUs: quantity("1e50000000")}}, "spec.resources.gpus"},
		"disk beyond 64 bits":            {v1alpha1.HTCJobSpec{Resources: &v1alpha1.Resources{Disk: quantity("9223372036854775807")}}, "spec.resources.disk"},
		"half a gpu":                     {v1alpha1.HTCJobSpec{Resources: &v1alpha1.Resources{GPUs: quantity("500m")}}, "spec.resources.gpus: expected a whole number, at least 0 and at most 1M, found 500m"},
		"fewer gpus than none":           {v1alpha1.HTCJobSpec{Resources: &v1alpha1.Resources{GPUs: quantity("-1")}}, "spec.resources.gpus"},
		"gpus beyond 64 bits":            {v1alpha1.HTCJobSpec{Resources: &v1alpha1.Resources{GPUs: quantity("1e30")}}, "spec.resources.gpus"},
		"more memory, but no memory":     {v1alpha1.HTCJobSpec{MemoryRetry: &v1alpha1.MemoryRetry{MaxMemory: *quantity("0")}}, "spec.memoryRetry.maxMemory"},
	} {
		_, err := joboptions.Of(c.spec)
		require.ErrorContains(t, err, c.words, name)
		require.Equal(t, condor.Refused, condor.KindOf(err), name)
	}
}
