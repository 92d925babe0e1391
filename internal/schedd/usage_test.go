package schedd

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/usage"
)

func TestWhatAJobHasUsed(t *testing.T) {
	const ad = `ClusterId = 7
ProcId = 0
JobStatus = 4
JobStartDate = 900
JobCurrentStartDate = 1000
EnteredCurrentStatus = 1010
CompletionDate = 1010
RemoteUserCpu = 3.0
RemoteSysCpu = 0.5
ResidentSetSize = 125000
MemoryUsage = ((ResidentSetSize + 1023) / 1024)
DiskUsage = 30000
RequestCpus = 2
RequestMemory = 200
RequestDisk = DiskUsage
MemoryProvisioned = 256
`
	read := func(ad string) Job {
		parsed, err := classad.ParseAd(ad)
		require.NoError(t, err)
		j, err := newJob(parsed)
		require.NoError(t, err)
		return j
	}
	now := time.Unix(2000, 0)
	full := usage.Use{CPU: 3500, Wall: 10, Memory: 123, Disk: 30000, AskedCPUs: 2, AskedMemory: 200}
	for what, c := range map[string]struct {
		change func(*Job)
		want   func(*usage.Use)
	}{
		"of its last execution":                               {func(*Job) {}, func(*usage.Use) {}},
		"until now, if it runs":                               {func(j *Job) { j.Status, j.CompletionDate = Running, 0 }, func(u *usage.Use) { u.Wall = 1000 }},
		"memory that the starter has measured":                {func(j *Job) { j.MemoryUsage = 99 }, func(u *usage.Use) { u.Memory = 99 }},
		"a request for memory that is an expression":          {func(j *Job) { j.RequestMemory = 0 }, func(u *usage.Use) { u.AskedMemory = 256 }},
		"a completed one that was removed":                    {func(j *Job) { j.Status, j.LastStatus, j.EnteredCurrentStatus = Removed, Completed, 1500 }, func(*usage.Use) {}},
		"nothing, if it never started":                        {func(j *Job) { j.JobStartDate = 0 }, func(u *usage.Use) { *u = usage.Use{} }},
		"no less than nothing, whatever its owner has edited": {func(j *Job) { j.UserCPU, j.CompletionDate = -8, 3 }, func(u *usage.Use) { u.CPU, u.Wall = 0, 0 }},
		"no more than can be written":                         {func(j *Job) { j.UserCPU, j.RequestDisk = math.MaxFloat64, math.MaxInt64 }, func(u *usage.Use) { u.CPU, u.AskedDisk = usage.Most, usage.Most }},
	} {
		t.Run(what, func(t *testing.T) {
			j, want := read(ad), full
			c.change(&j)
			c.want(&want)
			require.Equal(t, want, j.Use(now))
			require.Equal(t, want, usage.Parse(j.Use(now).String()))
		})
	}
}
