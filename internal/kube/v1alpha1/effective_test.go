package v1alpha1_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
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
		"a thousand are listed one by one":        {1000, 1000, "9.999"},
		"a single one more is an id, not a range": {1001, 1001, "9.1000"},
		"the rest is one range":                   {10000, 1001, "9.1000-9999"},
		"the largest queue is one range longer":   {100000, 1001, "9.1000-99999"},
	} {
		t.Run(name, func(t *testing.T) {
			ids := v1alpha1.JobIDs(9, tc.procs)
			require.Len(t, ids, tc.length)
			require.Equal(t, "9.999", ids[999])
			require.Equal(t, tc.last, ids[len(ids)-1])
		})
	}
}

func TestCountsArePresentWhenZero(t *testing.T) {
	raw, err := json.Marshal(v1alpha1.HTCJobStatus{})
	require.NoError(t, err)
	require.JSONEq(t, `{"active":0,"succeeded":0,"failed":0,"idle":0,"running":0,"held":0}`, string(raw))
}
