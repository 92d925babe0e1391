package outage

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/test/trial"
)

// Without the apiserver the Lease cannot be renewed: after 10 s another htcd might lead, so this one stops everything
// and begins anew, as the same process.
func TestWithoutKubernetesCallbacksAreDurableAndTheStatusFollows(t *testing.T) {
	for _, part := range []string{"apiserver", "etcd"} {
		t.Run(part, func(t *testing.T) {
			o := begin(t)
			o.Create("running", "sleep 12\n", trial.Queue(2))
			o.Create("late", "sleep 25\n")
			o.running("running")
			o.running("late")
			job := o.Get("running")
			pid := o.status("htcd").Pid

			o.do(o.part(part).Stop)
			o.Eventually(func() bool {
				return o.sql(fmt.Sprintf("SELECT count(*) FROM htcjobs WHERE jobId LIKE '%d.%%' AND status = 4", job.Status.ClusterID)) == "2"
			}, func() string { return "its callbacks never reached the ledger" })
			o.Eventually(func() bool { return strings.Contains(o.log(), "beginning anew") },
				func() string { return "the lease was never lost" })
			o.do(o.part(part).Start)

			o.succeeded("running", "late")
			require.Equal(t, pid, o.status("htcd").Pid)
			o.gone()
		})
	}
}
