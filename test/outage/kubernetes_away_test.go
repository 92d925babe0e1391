package outage

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// Without the apiserver the Lease cannot be renewed: after 5 s another htcd might lead, so this one stops everything
// and starts over, as the same process.
func TestWithoutKubernetesCallbacksAreDurableAndTheStatusFollows(t *testing.T) {
	for _, part := range []string{"apiserver", "etcd"} {
		t.Run(part, func(t *testing.T) {
			o := begin(t)
			// A job ends every second: before the outage, while htcd still works, and while it stands by.
			o.Create("one-by-one", "sleep $(( $1 + 1 ))\n", trial.Queue(40))
			job := o.Until("one-by-one", "begun to end", func(job *v1alpha1.HTCJob) bool { return job.Status.Succeeded > 0 })
			pid := o.status("htcd").Pid
			ended := func() int {
				n, err := strconv.Atoi(
					o.SQL(fmt.Sprintf("SELECT count(*) FROM htcjobs WHERE jobId LIKE '%d.%%' AND status = 4", job.Status.ClusterID)),
				)
				require.NoError(t, err)
				return n
			}

			// Stopping may take longer than the Lease lasts.
			o.do(o.part(part).Kill)
			before := ended()
			o.Eventually(func() bool { return ended() > before }, func() string { return "no callback reached the ledger" })
			o.Eventually(func() bool { return strings.Contains(o.log(), "this process must not continue") },
				func() string { return "the lease was never lost" })
			o.do(o.part(part).Start)

			o.succeeded("one-by-one")
			require.Equal(t, pid, o.status("htcd").Pid)
			o.gone()
		})
	}
}
