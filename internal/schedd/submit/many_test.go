package submit

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRenderingAMillionJobsTakesTheMemoryOfOne(t *testing.T) {
	allocated := func(queue int) uint64 {
		d := description()
		d.Queue, d.Parallelism = queue, queue
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := d.Render()
		runtime.ReadMemStats(&after)
		require.NoError(t, err)
		return after.TotalAlloc - before.TotalAlloc
	}
	allocated(1) // what is made once
	require.InDelta(t, allocated(1), allocated(1_000_000), 1<<20)
}
