package submit

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Whatever the fields contain beside whatever htcopts, the description is refused, or has one line per command and ends
// with our tag; an environment variable appears only in its file.
func FuzzJobOptions(f *testing.F) {
	f.Add("request_memory = 2GB", "Memory > 1", "group", "A", "x", int64(2048), int64(4096), 3, 5, int64(60))
	f.Add(
		"periodic_remove = error\nretry_until = 7\nmax_retries = 3",
		"a\n|| b",
		"a.b",
		"PATH",
		"$(id)",
		int64(1),
		int64(1<<30),
		0,
		255,
		int64(1),
	)
	f.Add("request_memory = 0.5K", "\"\\", "x..y", "LD_PRELOAD", "\x7f", int64(-1), int64(0), -1, -1, int64(-1))
	f.Add(
		"periodic_remove = Owner == \"x\\\"",
		`'$ENV\50PATH)' =!= '\33[2J' || x`,
		"x",
		"_",
		"",
		int64(1),
		int64(2),
		1,
		2,
		int64(3),
	)
	f.Add(
		"periodic_remove = 'odd name'",
		`'odd\40name' =!= 'MY'.'\122ank' || x`,
		"x",
		"_",
		"",
		int64(1),
		int64(2),
		1,
		2,
		int64(3),
	)
	f.Fuzz(
		func(t *testing.T, options, requirements, group, name, value string, memory, most int64, retries, code int,
			deadline int64) {
			d := description()
			d.Options, d.Environment = options, map[string]string{name: value}
			d.JobOptions = JobOptions{
				CPUs:            memory,
				Memory:          memory,
				Disk:            most,
				Requirements:    requirements,
				AccountingGroup: group,
				Retries:         &retries,
				SuccessCodes:    []int{code, 0},
				Deadlines: condor.Deadlines{
					HeldDeadline: deadline,
					IdleDeadline: deadline,
					RunDeadline:  deadline,
				},
				MemoryRetry: &MemoryRetry{Most: most, Times: 2},
			}
			var s Sandbox
			var err error
			frugal(t, func() { s, err = d.Render() })
			if err != nil {
				require.Equal(t, condor.Refused, condor.KindOf(err))
				require.NotContains(t, err.Error(), "of the submit description", "found too late to say where")
				return
			}
			require.True(t, s.Deferred)
			text := textOf(s, FileSubmit)
			require.Equal(t, name+"="+value+"\n", environmentFile(d.Environment))
			require.Equal(t, 1, strings.Count(environmentFile(d.Environment), "\n"))
			lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
			for _, l := range lines {
				require.Regexp(t, keyOfLine, l)
				require.False(t, strings.HasSuffix(l, `\`), l)
				key, value, _ := strings.Cut(l, " = ")
				if key == "request_memory" || strings.HasPrefix(key, "periodic_re") || key == "retry_until" ||
					key == "requirements" {
					_, err := classad.ParseExpr(value)
					require.NoError(t, err, l)
				}
			}
			times := func(key string) int { return strings.Count("\n"+text, "\n"+key+" = ") }
			for _, once := range []string{"request_memory", "periodic_release", "retry_until", "My.HTCJobSuccessCodes"} {
				require.Equal(t, 1, times(once), once)
			}
			if deadline > 0 || times("periodic_remove") > 0 {
				require.Equal(t, 1, times("periodic_remove"), "periodic_remove")
			}
			require.Equal(t, "queue 1", lines[len(lines)-1])
			require.Equal(t, `My.HTCJobName = "zero"`, lines[len(lines)-2])
		},
	)
}
