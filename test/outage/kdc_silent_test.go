package outage

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab"
)

// htcd hands out a ticket until two minutes before its expiry (package krb): these last 30 s,
// in which one is submitted after the KDC has stopped.
const ticketLifetime = "150s"

func TestWithoutAKDCATicketIsUsedToItsEnd(t *testing.T) {
	o := begin(t, "--krb5-config="+shortTickets(t))
	kdc := o.part("kdc")
	o.Create("before", "exit 0\n")
	o.succeeded("before")

	o.do(kdc.Freeze)
	o.Create("with-a-ticket", "exit 0\n")
	o.Until("with-a-ticket", "submitted", func(job *v1alpha1.HTCJob) bool { return len(job.Status.JobID) > 0 })

	// The ticket expires: from then on HTCJobs wait.
	names := []string{"with-a-ticket"}
	try := func() *v1alpha1.HTCJob {
		name := fmt.Sprintf("try-%d", len(names))
		names = append(names, name)
		o.Create(name, "exit 0\n")
		return o.Until(name, "submitted or waiting", func(job *v1alpha1.HTCJob) bool {
			return len(job.Status.JobID) > 0 || denied(job)
		})
	}
	o.Eventually(func() bool { return denied(try()) }, func() string { return "the ticket never ended" })
	o.do(kdc.Kill) // now its port is closed too
	waiting := try()
	require.Equal(t, "KDCUnreachable", o.Condition(waiting, v1alpha1.ConditionCredentials).Reason)
	require.False(
		t,
		meta.IsStatusConditionFalse(waiting.Status.Conditions, v1alpha1.ConditionBackendReachable),
		"the schedd is well",
	)
	require.Zero(t, waiting.Status.Failed)

	o.do(kdc.Start)
	o.succeeded(names...)
	o.gone()
}

func denied(job *v1alpha1.HTCJob) bool {
	return meta.IsStatusConditionPresentAndEqual(
		job.Status.Conditions,
		v1alpha1.ConditionCredentials,
		metav1.ConditionFalse,
	)
}

// shortTickets returns the lab's krb5.conf with another lifetime.
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
