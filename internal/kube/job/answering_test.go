package job

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

func TestADeadlineOfOneUsersCommandIsNobodyElsesOutage(t *testing.T) {
	slow := &condor.Error{
		Kind:    condor.Timeout,
		Command: "condor_submit",
		Stderr:  "no answer within 1m0s; it was killed",
	}
	w := newWorldWithOutput(t)
	w.apply(htcjob("open"))
	for _, command := range []string{scheddtest.Submit, scheddtest.Transfer, scheddtest.Queue, scheddtest.History,
		scheddtest.Remove} {
		w.schedd.Down(slow, command)
	}
	w.apply(htcjob("large"))
	w.schedd.Complete(1, 0, 0)
	require.NoError(t, w.callback("open", 0, 0))
	for range 3 {
		w.later(time.Minute)
	}
	for _, name := range []string{"open", "large"} {
		require.Equal(t, metav1.ConditionTrue, condition(w.job(name), v1alpha1.ConditionBackendReachable).Status, name)
	}
	require.Equal(t, "Timeout", condition(w.job("large"), v1alpha1.ConditionSubmitted).Reason)

	w.schedd.Down(slow, scheddtest.Answers)
	w.later(time.Minute)
	require.Equal(
		t,
		metav1.ConditionFalse,
		condition(w.job("large"), v1alpha1.ConditionBackendReachable).Status,
		"now it is an outage",
	)
}

// strict is a schedd that answers only the common account. For others it returns what HTCondor's tools print when the
// collector refuses them.
type strict struct{ *scheddtest.Schedd }

func (s strict) Ping(ctx context.Context, id schedd.Identity, p schedd.Permission) (string, error) {
	if p == schedd.Reading && id.CCache != scheddtest.Robot {
		return "", errUnreachable
	}
	return s.Schedd.Ping(ctx, id, p)
}

func (s strict) Submit(ctx context.Context, id schedd.Identity, dir string) (condor.Cluster, error) {
	if id.CCache != scheddtest.Robot {
		return condor.Cluster{}, errUnreachable
	}
	return s.Schedd.Submit(ctx, id, dir)
}

func TestOneNamespacesAccountDoesNotMakeAScheddSeemAway(t *testing.T) {
	w := newWorld(t)
	w.accounts["default"] = "alice"
	w.asks(strict{w.schedd})
	job := w.apply(htcjob("one"))
	require.NotEqual(t, metav1.ConditionFalse, condition(job, v1alpha1.ConditionBackendReachable).Status)
	require.Equal(t, "Unreachable", condition(job, v1alpha1.ConditionSubmitted).Reason)
}
