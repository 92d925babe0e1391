package site

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/target/pool"
)

func quantity(s string) *resource.Quantity { return new(resource.MustParse(s)) }

func TestAnAttemptIsAFactoryByItsSpecOrItsSize(t *testing.T) {
	for name, tc := range map[string]struct {
		spec        *int32
		jobs, above int
		want        int
	}{
		"few jobs are a cluster":                {nil, 1000, 1000, 0},
		"one more is a factory without a limit": {nil, 1001, 1000, 1001},
		"unless the site wants none":            {nil, 100_000, 0, 0},
		"the spec says so":                      {new(int32(7)), 10, 1000, 7},
		"and how many":                          {new(int32(7)), 100_000, 1000, 7},
	} {
		require.Equal(
			t,
			tc.want,
			AtOnce(v1alpha1.HTCJobSpec{Handling: v1alpha1.Handling{Parallelism: tc.spec}}, tc.jobs, tc.above),
			name,
		)
	}
}

func TestMoreJobsThanAQueueTakesAtOnceNeedAFactory(t *testing.T) {
	job := &v1alpha1.HTCJob{Spec: v1alpha1.HTCJobSpec{
		Script: v1alpha1.Script{
			Program: v1alpha1.Program{Image: "centos", Command: "bash", Source: "echo A"},
			Queue:   new(int32(100_001)),
		},
	}}
	job.UID, job.Namespace, job.Name = "u-1", "default", "zero"
	_, err := Site{}.RenderSome(job, pool.Pool{}, 1, nil, nil)
	require.ErrorContains(
		t,
		err,
		"queue 100001 is more than 100000, and htcd makes factories only of HTCJobs with spec.parallelism here",
	)
	_, err = Site{FactoryAbove: 1000}.RenderSome(job, pool.Pool{}, 1, nil, nil)
	require.NoError(t, err)
}

func TestEveryFieldOfASpecComesIntoTheDescription(t *testing.T) {
	job := &v1alpha1.HTCJob{}
	job.UID, job.Namespace, job.Name = "u-1", "default", "zero"
	job.Spec = v1alpha1.HTCJobSpec{
		Script: v1alpha1.Script{Program: v1alpha1.Program{Image: "centos", Command: "bash", Source: "echo A"}},
		Environment: map[string]v1alpha1.EnvironmentValue{
			"A": "1",
		}, AccountingGroup: "a", Requirements: "x", Retries: new(int32(2)), SuccessExitCodes: []int32{0, 3},
		Resources: &v1alpha1.Resources{
			CPUs:   quantity("2"),
			Memory: quantity("1Gi"),
			Disk:   quantity("1Gi"),
			GPUs:   quantity("1"),
		},
		MemoryRetry: &v1alpha1.MemoryRetry{MaxMemory: *quantity("4Gi"), MaxRetries: 3},
		Deadlines: v1alpha1.Deadlines{
			HeldDeadlineSeconds: new(int64(60)),
			IdleDeadlineSeconds: new(int64(70)),
			RunDeadlineSeconds:  new(int64(80)),
		},
	}
	d, err := Site{}.Describe(job, pool.Pool{}, 1, nil)
	require.NoError(t, err)
	s, err := d.Render()
	require.NoError(t, err)
	require.True(t, s.Deferred)
	require.Equal(t, map[string]string{"A": "1"}, d.Environment)
	require.Equal(t, submit.JobOptions{
		CPUs:            2,
		Memory:          1024,
		Disk:            1 << 20,
		GPUs:            1,
		AccountingGroup: "a",
		Requirements:    "x",
		Retries:         new(2),
		SuccessCodes:    []int{0, 3},
		MemoryRetry: &submit.MemoryRetry{
			Most:  4096,
			Times: 3,
		},
		Deadlines: condor.Deadlines{HeldDeadline: 60, IdleDeadline: 70, RunDeadline: 80},
	}, d.JobOptions)

	none := job.DeepCopy()
	none.Spec.Resources.GPUs, none.Spec.HTCOpts = quantity("0"), "request_gpus = 1\n"
	_, err = Site{}.Render(none, pool.Pool{}, 1, nil)
	require.EqualError(
		t,
		err,
		"htcopts, line 1, column 1: request_gpus in htcopts and spec.resources.gpus do not say the same: write it once",
	)

	job.Spec.HTCOpts = "request_cpus = 3\n"
	_, err = Site{}.Render(job, pool.Pool{}, 1, nil)
	require.EqualError(
		t,
		err,
		"htcopts, line 1, column 1: request_cpus in htcopts and spec.resources.cpus do not say the same (request_cpus = 3 is 3 in htcopts, and 2 in the spec): write it once",
	)
}
