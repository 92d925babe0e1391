package plugin

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
)

func TestWhereTheTimeOfAnHTCJobWent(t *testing.T) {
	begun := time.Date(2026, 11, 20, 12, 0, 0, 0, time.Local)
	after := func(seconds int) metav1.Time { return metav1.NewTime(begun.Add(time.Duration(seconds) * time.Second)) }
	job := &v1alpha1.HTCJob{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: after(0), Generation: 1}}
	told := func(now int) []string {
		var b strings.Builder
		require.NoError(t, showMoments(&b, objectOf(job), after(now).Time))
		return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	}
	job.Status.Message = "waits for its turn"
	require.Equal(
		t,
		[]string{"2026-11-20 12:00:00       +0s  created", "2026-11-20 12:00:07       +7s  now: waits for its turn"},
		told(7),
	)

	job.Status = v1alpha1.HTCJobStatus{
		Phase:              v1alpha1.PhaseSucceeded,
		ObservedGeneration: 1,
		Attempt:            2,
		ClusterID:          5,
		Schedd:             "s",
		StartTime:          new(after(20)),
		StartedAt:          new(after(50)),
		Duration:           "10s",
		CompletionTime:     new(after(61)),
		Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionOutputFetched, Status: metav1.ConditionTrue, LastTransitionTime: after(90)},
		},
	}
	require.Equal(t, []string{
		"2026-11-20 12:00:00       +0s  created",
		"2026-11-20 12:00:20      +20s  attempt 2 sent: cluster 5 at s",
		"2026-11-20 12:00:50      +30s  first job started",
		"2026-11-20 12:01:00      +10s  last job ended",
		"2026-11-20 12:01:01       +1s  the end was known",
		"2026-11-20 12:01:30      +29s  the output was here",
	}, told(1000))
}
