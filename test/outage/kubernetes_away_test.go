package outage

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// Without the apiserver the Lease cannot be renewed: after 5 s another htcd might lead, so this one stops everything
// and starts over, as the same process.
func TestWhatEndsWithoutKubernetesIsInTheStatusAfterwards(t *testing.T) {
	for _, part := range []string{"apiserver", "etcd"} {
		t.Run(part, func(t *testing.T) {
			o := begin(t)
			// A job ends every three seconds: before the outage, and while htcd stands by.
			o.Create("one-by-one", "sleep $(( 3 * ($1 + 1) ))\n", trial.Queue(10))
			o.Until("one-by-one", "begun to end", func(job *v1alpha1.HTCJob) bool { return job.Status.Succeeded > 0 })
			pid := o.status("htcd").Pid
			// Not Stop, which may take longer than the Lease lasts.
			o.do(o.part(part).Kill)
			o.Eventually(func() bool { return strings.Contains(o.log(), "this process must not continue") },
				func() string { return "the lease was never lost" })
			o.do(o.part(part).Start)

			o.succeeded("one-by-one")
			require.Equal(t, pid, o.status("htcd").Pid)
			o.gone()
		})
	}
}
