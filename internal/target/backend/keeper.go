package backend

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"htc.cern.ch/htcd/internal/target/secrets"
)

const reasonSecretDeleting = "SecretBeingDeleted"

// OwnSecrets gives access to the namespaces' own Secrets.
type OwnSecrets interface {
	// Own lists the Secrets of a namespace that HTCJobs there are sent with, without the common one.
	Own(namespace string) []secrets.Own
	// Unseen asks whether a namespace has a Secret of the usual name that Own does not list yet.
	Unseen(ctx context.Context, namespace string) (bool, error)
	// Hold adds htcd's finalizer to a Secret of that list, LetGo removes it.
	Hold(ctx context.Context, s secrets.Own) error
	LetGo(ctx context.Context, s secrets.Own) error
}

// Keeper keeps htcd's finalizer on a namespace's own Secret from before the first attempt is sent with it until no
// HTCJob or HTCWorkflow sent with it is left. Kubernetes deletes a namespace's objects in no particular order: without
// the finalizer the Secret might go first, and the jobs, which only its account may remove, would block the deletion of
// the HTCJobs and the namespace for good. Set its fields before its first use.
type Keeper struct {
	Secrets OwnSecrets
	// Needed report whether an object that still exists sent anything with the Secret: one for each kind.
	Needed []func(ctx context.Context, s secrets.Own) (bool, error)
	// Denied is called once if an earlier release's rules do not let htcd patch Secrets.
	Denied func(s secrets.Own, err error)

	// prevents a Secret's release between the check of its finalizer and the intent of a run that needs it
	using  sync.RWMutex
	denied atomic.Bool // it was reported
}

// MayBegin returns an error if that account's Secret is being deleted, or is so new that the common account would be
// taken in its place. It is to be asked before the identity. Runs that were, or may have been, sent with the Secret go
// on.
func (k *Keeper) MayBegin(ctx context.Context, a Account) error {
	own, found := k.of(a)
	switch {
	case found && own.Deleting:
		return &CredentialError{
			reasonSecretDeleting,
			fmt.Sprintf(
				"secret %s/%s is being deleted: it is kept (finalizer %s) until the HTCJobs that were sent with it "+
					"are deleted, and nothing new is sent with it",
				own.Namespace,
				own.Name,
				secrets.Finalizer,
			),
		}
	case found || a.Namespace == "" || a.Secret != "":
		return nil
	}
	there, err := k.Secrets.Unseen(ctx, a.Namespace)
	if err == nil && there {
		err = &CredentialError{
			reasonSecretUnreadable,
			fmt.Sprintf(
				"namespace %s has had a secret of its own since just now, and htcd has not read it yet",
				a.Namespace,
			),
		}
	}
	return err
}

// of returns an account's Secret, unless it is the common one.
func (k *Keeper) of(a Account) (secrets.Own, bool) {
	own := k.Secrets.Own(a.Namespace)
	i := slices.IndexFunc(own, func(s secrets.Own) bool { return s.Sends(a.Secret) })
	if i < 0 {
		return secrets.Own{}, false
	}
	return own[i], true
}

// Hold ensures the finalizer before a run is recorded. None is removed until leave is called.
func (k *Keeper) Hold(ctx context.Context, a Account) (leave func(), err error) {
	k.using.RLock()
	if own, found := k.of(a); found && due(own, true) {
		err = k.allowed(k.Secrets.Hold(ctx, own), own)
	}
	if err != nil {
		k.using.RUnlock()
		return nil, err
	}
	return k.using.RUnlock, nil
}

// due reports whether the finalizer must be added to a Secret, or removed from it.
func due(s secrets.Own, needed bool) bool {
	if needed {
		return !s.Held && !s.Deleting // Kubernetes refuses to add one to an object being deleted
	}
	return s.Held
}

// allowed ignores an apiserver's refusal to let htcd patch the Secret: HTCJobs matter more than their deletion.
func (k *Keeper) allowed(err error, own secrets.Own) error {
	if err == nil {
		k.denied.Store(false)
	}
	if !apierrors.IsForbidden(err) {
		return err
	}
	if !k.denied.Swap(true) {
		k.Denied(own, err)
	}
	return nil
}

// Tend adds the finalizer to a namespace's Secrets or removes it, as currently needed.
func (k *Keeper) Tend(ctx context.Context, namespace string) error {
	if len(k.Secrets.Own(namespace)) == 0 {
		return nil
	}
	k.using.Lock()
	defer k.using.Unlock()
	for _, own := range k.Secrets.Own(namespace) {
		needed, err := k.needed(ctx, own)
		if err != nil {
			return err
		}
		switch {
		case !due(own, needed):
		case needed:
			err = k.allowed(k.Secrets.Hold(ctx, own), own)
		default:
			err = k.Secrets.LetGo(ctx, own)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

func (k *Keeper) needed(ctx context.Context, own secrets.Own) (bool, error) {
	for _, of := range k.Needed {
		if needed, err := of(ctx, own); needed || err != nil {
			return needed, err
		}
	}
	return false, nil
}
