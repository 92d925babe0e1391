package submit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

func TestAJobAsksForNoMoreThanItsPoolAllows(t *testing.T) {
	most := Defaults{
		Most: JobOptions{
			CPUs:      8,
			NoGPUs:    true,
			Memory:    4096,
			Disk:      1 << 20,
			Deadlines: condor.Deadlines{RunDeadline: 3600},
		},
	}
	runs := func(seconds int64) JobOptions { return JobOptions{Deadlines: condor.Deadlines{RunDeadline: seconds}} }
	for name, c := range map[string]struct {
		htcopts string
		own     JobOptions
		words   string
	}{
		"nothing":                     {"", JobOptions{}, ""},
		"the most":                    {"request_memory = 4GB", JobOptions{CPUs: 8, Disk: 1 << 20}, ""},
		"a core too many":             {"", JobOptions{CPUs: 9}, "HTCPool grid allows a job at most 8 of request_cpus (max.cpus), found 9: ask for less, or name another pool"},
		"too much by a line":          {"Request_Memory = 5 GB", JobOptions{}, "HTCPool grid allows a job at most 4096 MiB of request_memory (max.memory), found 5120 MiB"},
		"the last line counts":        {"request_memory = 1GB\nrequest_memory = 5GB", JobOptions{}, "found 5120 MiB"},
		"a GPU where there are none":  {"request_gpus = 1", JobOptions{}, "at most 0 of request_gpus (max.gpus), found 1"},
		"no GPU, said":                {"", JobOptions{NoGPUs: true}, ""},
		"too much disk":               {"", JobOptions{Disk: 1<<20 + 1}, "at most 1048576 KiB of request_disk (max.disk), found 1048577 KiB"},
		"an amount that is not known": {"request_memory = RequestCpus * 9999", JobOptions{}, `so expected a number, found "RequestCpus * 9999"`},
		"more memory in the end":      {"", JobOptions{Memory: 1000, MemoryRetry: &MemoryRetry{Most: 5000, Times: 3}}, "at most 4096 MiB of memory (max.memory), found 5000 MiB in spec.memoryRetry.maxMemory"},
		"as long as there is":         {"", runs(3600), ""},
		"for too long":                {"", runs(3601), "at most 3600 s of allowed_execute_duration (max.runDeadlineSeconds), found 3601 s"},
		"for too long by a line":      {"allowed_execute_duration = 7200", JobOptions{}, "found 7200 s"},
		"for who knows how long":      {"allowed_execute_duration = 60 * 60", JobOptions{}, "expected a number"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := withPool(c.htcopts, c.own, most).Render()
			if c.words == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.words)
			require.Equal(t, condor.Refused, condor.KindOf(err))
		})
	}
	adjusted := most
	adjusted.Adjust = Adjust{CPUs: 200}
	require.Equal(
		t,
		[]string{"request_cpus = 16"},
		linesOf(t, withPool("", JobOptions{CPUs: 8}, adjusted), "request_cpus"),
	)
	require.ErrorContains(
		t,
		CheckDefaults("grid", Defaults{JobOptions: JobOptions{CPUs: 9}, Most: most.Most}, nil),
		"HTCPool grid allows a job at most 8",
	)
}

func TestAJobThatSaysNothingRunsForAsLongAsItsPoolAllows(t *testing.T) {
	most := Defaults{Most: JobOptions{Deadlines: condor.Deadlines{RunDeadline: 3600}}}
	for htcopts, want := range map[string]string{"": "3600", "allowed_execute_duration = 60": "60", "allowed_execute_duration = 0": "3600"} {
		d := withPool(htcopts, JobOptions{}, most)
		require.Equal(t, []string{"My.HTCJobRunDeadline = " + want}, linesOf(t, d, "My.HTCJobRunDeadline"))
		require.Len(t, linesOf(t, d, "allowed_execute_duration"), 1)
		require.Contains(t, linesOf(t, d, "periodic_remove")[0], "HoldReasonCode == 47")
	}
	s, err := withPool("", JobOptions{}, most).Render()
	require.NoError(t, err)
	require.EqualValues(t, 3600, s.Requests.RunDeadline, "status.effective says so")
}
