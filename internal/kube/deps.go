package kube

import (
	"context"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

// Schedd is what the loop asks of HTCondor.
type Schedd interface {
	Submit(ctx context.Context, id schedd.Identity, dir string) (schedd.Cluster, error)
	Queue(ctx context.Context, id schedd.Identity, constraint string, fn func(schedd.Job) error) error
	History(ctx context.Context, id schedd.Identity, constraint string, b schedd.HistoryBounds, fn func(schedd.Job) error) error
	Remove(ctx context.Context, id schedd.Identity, constraint, reason string) error
	// Answers is the smallest question that only a schedd which answers can answer.
	Answers(ctx context.Context, id schedd.Identity) error
	// ScheddName is where new jobs of an identity go when nobody says where.
	ScheddName(ctx context.Context, id schedd.Identity) (string, error)
	Account(ctx context.Context, id schedd.Identity) (string, error)
	// Transfer brings the output of completed jobs, each to dir/<proc>; Release lets them leave the queue.
	Transfer(ctx context.Context, id schedd.Identity, procs schedd.Procs, dir string) error
	Release(ctx context.Context, id schedd.Identity, procs schedd.Procs) error
}

// Ledger is where runs and procs are remembered.
type Ledger interface {
	Read(ctx context.Context, fn func(*ledger.Tx) error) error
	Write(ctx context.Context, fn func(*ledger.Tx) error) error
}

// Credentials gives the identities that HTCondor's commands run as. Its errors are *CredentialError.
type Credentials interface {
	// Identity is the one that the HTCJobs of a namespace are sent as: that of a Secret which they name, else the
	// namespace's own, else the common one.
	Identity(ctx context.Context, namespace, secret string) (schedd.Identity, error)
	// Common is the identity of all namespaces that have none of their own.
	Common(ctx context.Context) (schedd.Identity, error)
	// Any is whichever works, for questions about everybody's jobs.
	Any(ctx context.Context) (schedd.Identity, error)
	// Own lists the Secrets of that namespace that HTCJobs there are sent with; the common one is not among them.
	Own(namespace string) []OwnSecret
	// Hold puts our finalizer on a Secret of that list, LetGo takes it off.
	Hold(ctx context.Context, s OwnSecret) error
	LetGo(ctx context.Context, s OwnSecret) error
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
