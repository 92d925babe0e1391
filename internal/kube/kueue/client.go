package kueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
)

// Of implements reconciler.Quota, as does Keep. Nil: it names no queue, or there is no Kueue.
func (k *Kueue) Of(job *v1alpha1.HTCJob, demand func() lifecycle.Demand) *lifecycle.Quota {
	queue := job.Labels[QueueLabel]
	if queue == "" {
		return nil
	}
	at, known := k.state()
	waits := &lifecycle.Quota{
		Waits:   true,
		Reason:  lifecycle.ReasonQuotaAwaited,
		Message: "it is about to get into Kueue's queue " + queue,
	}
	switch {
	case !known:
		waits.Message = "whether Kueue is there is not known yet"
		return waits
	case at == nil:
		return nil
	}
	d := demand()
	if d.Over {
		return &lifecycle.Quota{}
	}
	name := nameOf(job, d)
	for _, w := range at.of(job) {
		switch {
		case w.Name != name:
		case prebuilt(job) != "":
			return verdictOfPrebuilt(w, job)
		default:
			return verdict(w, queue)
		}
	}
	if why := k.refusal(job.UID); why != "" {
		waits.Message = fmt.Sprintf("it cannot get into Kueue's queue %s: %s", queue, why)
	}
	return waits
}

// Keep makes the Workload, has it say what is needed no more, and deletes those of what is no longer to be run. What is
// suspended waits for nothing.
func (k *Kueue) Keep(ctx context.Context, job *v1alpha1.HTCJob, d lifecycle.Demand) error {
	at, _ := k.state()
	if at == nil {
		return nil
	}
	name := ""
	if job.Labels[QueueLabel] != "" && (d.Alive || d.Over || !job.Spec.Suspend) {
		name = nameOf(job, d)
	}
	var ours *workload
	var failures []error
	for _, w := range at.of(job) {
		if w.Name == name {
			ours = w
			continue
		}
		if !metav1.IsControlledBy(w, job) {
			continue
		}
		uid := w.UID
		err := at.workloads.Namespace(
			w.Namespace,
		).Delete(
			ctx,
			w.Name,
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}},
		)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			failures = append(failures, fmt.Errorf("delete Workload %s: %w", w.Name, err))
		}
	}
	may, suspend := true, job.Spec.Suspend && d.Alive
	if ours != nil && (job.Spec.Elsewhere() || prebuilt(job) != "") {
		d, may = heard(ours, d)
	}
	switch {
	case name == "", !may:
	case ours != nil && !metav1.IsControlledBy(ours, job):
		failures = append(failures, at.adopt(ctx, ours, job))
	case job.Spec.Elsewhere() && ours != nil && ours.suspended() != suspend:
		failures = append(failures, at.suspend(ctx, ours, suspend))
	case ours != nil:
		failures = append(failures, k.update(ctx, at, ours, d))
	case !d.Over:
		err := k.create(ctx, at, job, d)
		k.refused(job.UID, err)
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// adopt makes an HTCJob the owner of the Workload that has come with it.
func (a *api) adopt(ctx context.Context, w *workload, job *v1alpha1.HTCJob) error {
	return a.patch(ctx, w, map[string]any{"metadata": map[string]any{
		"resourceVersion": w.ResourceVersion,
		"ownerReferences": owners(job),
		"labels":          map[string]string{uidLabel: string(job.UID)},
	}})
}

// suspend has MultiKueue take back an HTCJob from the cluster where it runs, or lets it be sent again.
func (a *api) suspend(ctx context.Context, w *workload, is bool) error {
	return a.patch(ctx, w, map[string]any{
		"metadata": map[string]any{
			"resourceVersion": w.ResourceVersion,
			"annotations":     map[string]string{suspendedKey: strconv.FormatBool(is)},
		},
		"spec": map[string]any{"active": !is},
	})
}

// patch merges a change into a Workload, unless it has changed since it was read: Kueue writes it, too.
func (a *api) patch(ctx context.Context, w *workload, change map[string]any, subresource ...string) error {
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = a.workloads.Namespace(w.Namespace).Patch(
		ctx, w.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager}, subresource...)
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // its news follow
	}
	return fmt.Errorf("write Workload %s: %w", w.Name, err)
}

func (k *Kueue) create(ctx context.Context, at *api, job *v1alpha1.HTCJob, d lifecycle.Demand) error {
	if name := prebuilt(job); name != "" {
		return fmt.Errorf("the annotation %s names the Workload %s, which is not there", prebuiltKey, name)
	}
	priority, err := at.priorityOf(ctx, job)
	if err != nil {
		return err
	}
	w, err := newWorkload(at.version.String(), job, d, priority)
	if err != nil {
		return err
	}
	_, err = at.workloads.Namespace(job.Namespace).Create(ctx, w, metav1.CreateOptions{FieldManager: manager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create Workload %s: %w", w.GetName(), err)
	}
	return nil
}

// manager is htcd's name in managedFields.
const manager = "htcd-kueue"

// update writes the status of a Workload.
func (k *Kueue) update(ctx context.Context, at *api, w *workload, d lifecycle.Demand) error {
	status := next(w, d, metav1.NewTime(k.Now()))
	if status == nil || onlyReclaims(status) && !k.may(w.UID) {
		return nil
	}
	return at.patch(
		ctx,
		w,
		map[string]any{"metadata": map[string]any{"resourceVersion": w.ResourceVersion}, "status": status},
		"status",
	)
}

// onlyReclaims reports whether a status has nothing new but jobs that have ended.
func onlyReclaims(status map[string]any) bool {
	_, is := status["reclaimablePods"]
	return is && len(status) == 1
}

// priorityOf returns the value of the WorkloadPriorityClass that an HTCJob names, 0 if it names none.
func (a *api) priorityOf(ctx context.Context, job *v1alpha1.HTCJob) (int32, error) {
	class := job.Labels[PriorityLabel]
	if class == "" {
		return 0, nil
	}
	object, err := a.classes.Get(ctx, class, metav1.GetOptions{})
	if err != nil {
		return 0, fmt.Errorf("read WorkloadPriorityClass %s: %w", class, err)
	}
	value, _, err := unstructured.NestedInt64(object.Object, "value")
	return int32(value), err // #nosec G115 -- Kueue's own is an int32
}
