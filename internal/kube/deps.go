package kube

import (
	"context"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

// Ledger is where runs and procs are remembered.
type Ledger interface {
	Read(ctx context.Context, fn func(*ledger.Tx) error) error
	Write(ctx context.Context, fn func(*ledger.Tx) error) error
}

// Objects changes HTCJobs in the apiserver.
type Objects interface {
	// AddFinalizer returns the object as it now stands in the apiserver, never from a cache.
	AddFinalizer(ctx context.Context, job *v1alpha1.HTCJob) (*v1alpha1.HTCJob, error)
	RemoveFinalizer(ctx context.Context, job *v1alpha1.HTCJob) error
	SetStatus(ctx context.Context, job *v1alpha1.HTCJob, status v1alpha1.HTCJobStatus) (*v1alpha1.HTCJob, error)
	// Delete deletes the object as it is at hand; it is a conflict when it has changed since.
	Delete(ctx context.Context, job *v1alpha1.HTCJob) error
	// Exists asks the apiserver whether the object with that UID is still there.
	Exists(ctx context.Context, namespace, name, uid string) (bool, error)
	// Each calls fn for every HTCJob of that namespace and name, either empty for any, as they stand in the apiserver.
	Each(ctx context.Context, namespace, name string, fn func(*v1alpha1.HTCJob) error) error
}

// Events tells the user what happened to an HTCJob.
type Events interface {
	Normal(job *v1alpha1.HTCJob, reason, message string)
	Warning(job *v1alpha1.HTCJob, reason, message string)
}
