package outage

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/test/trial"
)

// Twenty jobs with a megabyte each are fetched in about a second. htcd is killed three times meanwhile: each time
// everything not yet in place is fetched again.
func TestHtcdKilledInTheMiddleOfAFetchLosesNothing(t *testing.T) {
	o := begin(t)
	const procs = 20
	o.Script("many", "echo \"I am $1\"; head -c 1000000 /dev/zero > big; echo \"end $1\" > end\n", trial.Queue(procs))
	fetches := o.Lab.Path("htcd", "data", "out", ".incoming", "fetch-*")
	for range 3 {
		var seen []string
		o.Eventually(func() bool {
			seen, _ = filepath.Glob(filepath.Join(fetches, "*", "big")) // the pattern is well-formed
			return len(seen) > 0 || o.Get("many").Status.Phase.Terminal() && o.kept("many") == procs
		}, func() string { return "nothing was ever fetched" })
		o.killHtcd()
		o.do(o.part("htcd").Start)
	}
	job := o.Fetched("many")
	for proc := range procs {
		require.Equal(t, fmt.Sprintf("I am %d\n", proc), o.Output(job, proc))
		require.Equal(t, fmt.Sprintf("end %d\n", proc), o.File(job, proc, "end"))
		require.Len(t, o.File(job, proc, "big"), 1000000)
	}
	o.Eventually(func() bool { return len(o.Condor("condor_q", trial.Tagged(job))) == 0 },
		func() string {
			return strings.Join(o.Condor("condor_q", trial.Tagged(job), "JobStatus", "HTCJobFetched"), "\n")
		})
	left, err := filepath.Glob(fetches)
	require.NoError(t, err)
	require.Empty(t, left)
	require.Equal(
		t,
		strconv.Itoa(procs),
		o.SQL(
			"SELECT count(*) FROM htcjobs WHERE fetched = 1 AND run = (SELECT id FROM runs WHERE uid = '"+string(job.UID)+"')",
		),
	)
	o.gone()
	require.NoDirExists(t, filepath.Dir(o.Kept(job)))
}

// kept returns how many procs' output is in place.
func (o outage) kept(name string) int {
	o.T.Helper()
	dirs, err := os.ReadDir(o.Kept(o.Get(name)))
	if err != nil {
		return 0
	}
	return len(dirs)
}
