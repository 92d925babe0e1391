package daemon

import (
	"context"
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// leadsLabel is on the pod of the active htcd, and the Services select it. So a standby can be ready too, and a rollout
// of two replicas ends.
const leadsLabel = "htc.cern.ch/leads"

// label sets or removes the label of htcd's own pod, and reports whether it did; it did not if ctx ended first. Until
// then this htcd is not ready. Without --pod-name there is nothing to do.
func (d *daemon) label(ctx context.Context, leads bool) bool {
	if d.o.PodName == "" {
		return true
	}
	d.labelling.Lock()
	defer d.labelling.Unlock()
	for ctx.Err() == nil {
		// Not cancelled: it might reach the apiserver after the next one.
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTime)
		_, err := d.core.CoreV1().Pods(
			d.o.OwnSpace,
		).Patch(
			bound,
			d.o.PodName,
			types.MergePatchType,
			labelPatch(d.o.PodUID, leads),
			metav1.PatchOptions{},
		)
		cancel()
		if err == nil {
			return true
		}
		d.health.unready(
			"the label " + leadsLabel + " of htcd's own pod cannot be set (deploy/base/rbac): " + err.Error(),
		)
		d.log.Warn().Err(
			err,
		).Str(
			"pod",
			d.o.PodName,
		).Bool(
			"leads",
			leads,
		).Msg(
			"the label by which Services find the active htcd is not set, trying again",
		)
		select {
		case <-ctx.Done():
		case <-time.After(retryPeriod):
		}
	}
	return false
}

// labelPatch is a merge patch, which the apiserver refuses for a pod with another UID.
func labelPatch(uid string, leads bool) []byte {
	var value *string // nil removes it
	if leads {
		value = new("true")
	}
	metadata := map[string]any{"labels": map[string]*string{leadsLabel: value}}
	if uid != "" {
		metadata["uid"] = uid
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		panic(err) // maps of strings
	}
	return patch
}

// standBy reports that another htcd works. It may be called late, when this one already works itself.
func (d *daemon) standBy(ctx context.Context, holder string) {
	if ctx.Err() != nil {
		return
	}
	words := "standing by: " + holder + " holds the lease " + d.o.OwnSpace + "/" + d.o.LeaseName
	if d.o.PodName == "" {
		d.health.unready(words)
	} else if d.label(ctx, false) && ctx.Err() == nil {
		d.health.ready(words)
	}
}
