package outage

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/test/lab"
)

// htcd hands out a ticket until two minutes before its end (package krb): these last 10 s.
const ticketLifetime = "130s"

func TestWithoutAKDCATicketIsUsedToItsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		away, back func(lab.Part, context.Context) error
	}{
		"silent": {lab.Part.Freeze, lab.Part.Thaw},
		"down":   {lab.Part.Stop, lab.Part.Start},
	} {
		t.Run(name, func(t *testing.T) {
			o := begin(t, "--krb5-config="+shortTickets(t))
			o.Create("before", "exit 0\n")
			o.succeeded("before")

			kdc := o.part("kdc")
			require.NoError(t, c.away(kdc, t.Context()))
			o.Create("with-a-ticket", "exit 0\n")
			o.succeeded("with-a-ticket")

			// The ticket ends: from then on HTCJobs wait.
			var names []string
			o.Eventually(func() bool {
				names = append(names, "try-"+strings.Repeat("i", len(names)+1))
				last := names[len(names)-1]
				o.Create(last, "exit 0\n")
				job := o.Until(last, "submitted or waiting", func(job *v1alpha1.HTCJob) bool {
					return len(job.Status.JobID) > 0 || denied(job)
				})
				return denied(job)
			}, func() string { return "the ticket never ended" })
			job := o.Get(names[len(names)-1])
			require.Equal(t, "KDCUnreachable", o.Condition(job, v1alpha1.ConditionCredentials).Reason)
			require.False(t, meta.IsStatusConditionFalse(job.Status.Conditions, v1alpha1.ConditionBackendReachable), "the schedd is well")
			require.Zero(t, job.Status.Failed)

			require.NoError(t, c.back(kdc, t.Context()))
			o.succeeded(names...)
			o.gone()
		})
	}
}

func denied(job *v1alpha1.HTCJob) bool {
	return meta.IsStatusConditionPresentAndEqual(job.Status.Conditions, v1alpha1.ConditionCredentials, metav1.ConditionFalse)
}

// shortTickets is the lab's krb5.conf with another lifetime.
func shortTickets(t *testing.T) string {
	t.Helper()
	running, err := lab.Find()
	require.NoError(t, err)
	text, err := os.ReadFile(running.Path("krb", "krb5.conf"))
	require.NoError(t, err)
	short := strings.Replace(string(text), "ticket_lifetime = 24h", "ticket_lifetime = "+ticketLifetime, 1)
	require.NotEqual(t, string(text), short)
	file := running.Path("krb", "short.conf")
	require.NoError(t, os.WriteFile(file, []byte(short), 0o644))
	return file
}
