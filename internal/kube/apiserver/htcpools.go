package apiserver

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// HTCPools changes HTCPools in the apiserver.
type HTCPools struct{ Client *v1alpha1.Client }

// SetStatus replaces the whole status of exactly that object. htcd is its only writer, so the version does not matter.
func (o HTCPools) SetStatus(ctx context.Context, pool *v1alpha1.HTCPool, status v1alpha1.HTCPoolStatus) error {
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": pool.UID},
		{"op": "add", "path": "/status", "value": status},
	})
	if err != nil {
		return err
	}
	_, err = o.Client.Pools().Patch(ctx, pool.Name, types.JSONPatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
