package site

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"htc.cern.ch/htcd/api/items"
	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/inputs"
)

type tables string

func (t tables) ConfigMap(context.Context, string, string) (*corev1.ConfigMap, error) {
	return &corev1.ConfigMap{Data: map[string]string{"key": string(t)}}, nil
}

func TestATableMayHaveMoreRowsThanAWorkflowHasNodes(t *testing.T) {
	job := &v1alpha1.HTCJob{}
	job.Spec.ItemsFrom = &v1alpha1.ItemsFrom{ConfigMapKeyRef: v1alpha1.KeyRef{Name: "table", Key: "key"}}
	rows := strings.Repeat("1\n", items.MostNodes+1)
	read, err := ReadItems(t.Context(), job, inputs.Bringer{ConfigMaps: tables("A\n" + rows), Max: 1 << 20})
	require.NoError(t, err)
	require.Len(t, read.Each, items.MostNodes+1)
}
