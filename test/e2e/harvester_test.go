//go:build !releases

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// The queue and the HTCPool of examples/pools, side by side in docs/from-harvester.md, say the same.
func TestTheExampleOfAHarvesterQueueIsAPool(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	text, err := os.ReadFile("../../examples/pools/panda_queueconfig.json")
	require.NoError(t, err)
	var queues map[string]struct {
		QueueStatus                                                                                           string
		NQueueLimitWorkerRatio, NQueueLimitWorkerMin, NQueueLimitWorkerMax, MaxWorkers, MaxNewWorkersPerCycle int32
		Submitter                                                                                             struct {
			CondorSchedd, CondorPool []string
			NCore, MinRAMCount       int64
		}
		Monitor struct{ HeldTimeout int64 }
	}
	require.NoError(t, json.Unmarshal(text, &queues))
	queue := queues["GRID_8CORE"]

	b.Apply("pools/htcpool.yaml")
	t.Cleanup(func() {
		_, err := b.Lab.Run(context.WithoutCancel(t.Context()), "kubectl", "delete", "htcpool", "grid-8core")
		require.NoError(t, err)
	})
	var pool v1alpha1.HTCPool
	b.Eventually(func() bool {
		require.NoError(t, json.Unmarshal([]byte(b.Kubectl("get", "htcpool", "grid-8core", "-o", "json")), &pool))
		return meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.PoolAccepting) != nil
	}, func() string { return "the pool has no status" })
	accepting := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.PoolAccepting)
	require.NotEqual(t, "PoolInvalid", accepting.Reason, accepting.Message)

	s := pool.Spec
	require.Equal(t, "online", queue.QueueStatus)
	require.Equal(t, v1alpha1.PoolOnline, s.State)
	require.Equal(t, v1alpha1.PoolLimits{
		MaxOpen: &queue.MaxWorkers, NewPerMinute: &queue.MaxNewWorkersPerCycle, MaxHeld: new(int32(100)),
		IdlePercentOfRunning: &v1alpha1.IdlePercent{
			Percent: queue.NQueueLimitWorkerRatio,
			Min:     &queue.NQueueLimitWorkerMin,
			Max:     &queue.NQueueLimitWorkerMax,
		},
	}, *s.Limits)
	for i, name := range s.Schedds {
		require.Equal(t, queue.Submitter.CondorSchedd[i], string(name))
		require.Equal(t, queue.Submitter.CondorPool[i], s.Collector)
	}
	require.Equal(t, queue.Submitter.NCore, s.Defaults.Resources.CPUs.Value())
	require.Equal(t, queue.Submitter.MinRAMCount, s.Defaults.Resources.Memory.Value()>>20)
	require.Equal(t, queue.Monitor.HeldTimeout, *s.Defaults.HeldDeadlineSeconds)

	b.Apply("pools/htcjob.yaml")
	job := b.Until(
		"pilot",
		"known to htcd",
		func(job *v1alpha1.HTCJob) bool { return job.Status.ObservedGeneration > 0 },
	)
	require.NotEqual(
		t,
		metav1.ConditionTrue,
		b.Condition(job, v1alpha1.ConditionSubmitted).Status,
		"the schedds do not exist",
	)
	require.False(t, job.Status.Phase.Terminal(), job.Status)
}
