package v1alpha1_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
)

func TestQueue(t *testing.T) {
	three, five := int32(3), int32(5)
	for name, tc := range map[string]struct {
		outer, inner *int32
		want         int
	}{
		"absent means one job":                        {nil, nil, 1},
		"the number in the script counts":             {nil, &three, 3},
		"the number in its older place counts":        {&five, nil, 5},
		"the same number in both places is fine":      {&three, &three, 3},
		"should both get through, script.queue is it": {&five, &three, 3},
	} {
		t.Run(name, func(t *testing.T) {
			job := v1alpha1.HTCJob{Spec: v1alpha1.HTCJobSpec{Queue: tc.outer, Script: v1alpha1.Script{Queue: tc.inner}}}
			require.Equal(t, tc.want, job.Queue())
		})
	}
}

func TestBatchName(t *testing.T) {
	job := v1alpha1.HTCJob{ObjectMeta: metav1.ObjectMeta{Name: "fit-42"}}
	require.Equal(t, "fit-42", job.BatchName())
	job.Spec.Name = "the fit"
	require.Equal(t, "the fit", job.BatchName())
}

func TestJobIDs(t *testing.T) {
	require.Empty(t, v1alpha1.JobIDs(7, 0))
	require.Equal(t, []string{"884426.0"}, v1alpha1.JobIDs(884426, 1))
	require.Equal(t, []string{"9.0", "9.1", "9.2"}, v1alpha1.JobIDs(9, 3))

	for name, tc := range map[string]struct {
		procs, length int
		last          string
	}{
		"a thousand are listed one by one": {1000, 1000, "9.999"},
		"of one more a hundred are":        {1001, 101, "9.100-1000"},
		"of the largest queue, too":        {1000000, 101, "9.100-999999"},
	} {
		t.Run(name, func(t *testing.T) {
			ids := v1alpha1.JobIDs(9, tc.procs)
			require.Len(t, ids, tc.length)
			require.Equal(t, "9.99", ids[99])
			require.Equal(t, tc.last, ids[len(ids)-1])
		})
	}
}

func TestCountsArePresentWhenZero(t *testing.T) {
	raw, err := json.Marshal(v1alpha1.HTCJobStatus{})
	require.NoError(t, err)
	require.JSONEq(
		t,
		`{"active":0,"succeeded":0,"failed":0,"idle":0,"running":0,"held":0,"outputFetched":false}`,
		string(raw),
	)
}

func TestHowManyJobsThereAre(t *testing.T) {
	value := func(n int) v1alpha1.Parameter { return make(v1alpha1.Parameter, n) }
	for name, c := range map[string]struct {
		spec        v1alpha1.HTCJobSpec
		status      v1alpha1.HTCJobStatus
		queue, jobs int
	}{
		"one by default":                    {queue: 1, jobs: 1},
		"one for each item":                 {spec: v1alpha1.HTCJobSpec{Items: make([]v1alpha1.Item, 7)}, queue: 7, jobs: 7},
		"one for each combination":          {spec: v1alpha1.HTCJobSpec{Parameters: map[string]v1alpha1.Parameter{"A": value(2), "B": value(3)}}, queue: 6, jobs: 6},
		"a table that was not read":         {spec: v1alpha1.HTCJobSpec{ItemsFrom: &v1alpha1.ItemsFrom{}}, queue: 0, jobs: 1},
		"a table of which jobs were sent":   {spec: v1alpha1.HTCJobSpec{ItemsFrom: &v1alpha1.ItemsFrom{}}, status: v1alpha1.HTCJobStatus{JobID: v1alpha1.JobIDs(9, 12), Active: 3}, queue: 0, jobs: 12},
		"a table of which many were sent":   {spec: v1alpha1.HTCJobSpec{ItemsFrom: &v1alpha1.ItemsFrom{}}, status: v1alpha1.HTCJobStatus{JobID: v1alpha1.JobIDs(9, 4000)}, queue: 0, jobs: 4000},
		"a table of which one more is sent": {spec: v1alpha1.HTCJobSpec{ItemsFrom: &v1alpha1.ItemsFrom{}}, status: v1alpha1.HTCJobStatus{JobID: v1alpha1.JobIDs(9, 1001)}, queue: 0, jobs: 1001},
		"a table that is being sent":        {spec: v1alpha1.HTCJobSpec{ItemsFrom: &v1alpha1.ItemsFrom{}}, status: v1alpha1.HTCJobStatus{Active: 5}, queue: 0, jobs: 5},
	} {
		job := &v1alpha1.HTCJob{Spec: c.spec, Status: c.status}
		require.Equal(t, c.queue, job.Queue(), name)
		require.Equal(t, c.jobs, job.Jobs(), name)
	}
}
