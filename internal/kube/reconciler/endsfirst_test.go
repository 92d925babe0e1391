package reconciler

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
)

func TestASubmissionWaitsForEndsToBeToldButNotForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Reconciler[*v1alpha1.HTCJob, v1alpha1.HTCJobStatus, struct{}]{Ended: NewQueue()}
		defer r.Ended.ShutDown()
		took := func() time.Duration {
			began := time.Now()
			r.endsFirst(t.Context())
			return time.Since(began)
		}
		require.Zero(t, took())
		r.Ended.Add("default/one")
		require.Equal(t, mostYielded, took())
		time.AfterFunc(4*betweenLooks+betweenLooks/2, func() { r.Ended.Get() })
		require.Equal(t, 5*betweenLooks, took())
		r.ending.Add(1)
		require.Equal(t, mostYielded, took(), "its status is being written")
	})
}
