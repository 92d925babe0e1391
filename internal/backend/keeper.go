package backend

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"htc.cern.ch/htcd/internal/secrets"
)

const reasonSecretDeleting = "SecretBeingDeleted"

// OwnSecrets are the Secrets of namespaces' own.
type OwnSecrets interface {
	// Own lists those of a namespace that HTCJobs there are sent with; the common one is not among them.
	Own(namespace string) []secrets.Own
	// Hold puts our finalizer on a Secret of that list, LetGo takes it off.
	Hold(ctx context.Context, s secrets.Own) error
	LetGo(ctx context.Context, s secrets.Own) error
}

// Keeper sees to it that a namespace's own Secret has our finalizer from before the first attempt that is sent with it until no
// HTCJob is left that was. Kubernetes deletes a namespace's objects in no order: without the finalizer the Secret is gone first,
// and the jobs, which only its account may remove, keep the HTCJobs, and so the namespace, from ever going. Its fields are set
// before its first use.
type Keeper struct {
	Secrets OwnSecrets
	// Needed reports whether anything was sent with the Secret by an HTCJob that is not gone.
	Needed func(ctx context.Context, s secrets.Own) (bool, error)
	// Denied hears, once, that the rules of an earlier release do not let htcd patch Secrets.
	Denied func(s secrets.Own, err error)

	using  sync.RWMutex // keeps a Secret from being let go between the look at its finalizer and the intent of a run that needs it
	denied atomic.Bool  // it was said
}

// MayBegin returns an error when the Secret of that account is being deleted. What has been sent with it, or perhaps, goes on.
func (k *Keeper) MayBegin(a Account) error {
	own, found := k.of(a)
	if !found || !own.Deleting {
		return nil
	}
	return &CredentialError{reasonSecretDeleting, fmt.Sprintf("secret %s/%s is being deleted: it is kept (finalizer %s) until the HTCJobs that were sent with it "+
		"are deleted, and nothing new is sent with it", own.Namespace, own.Name, secrets.Finalizer)}
}

// of is the Secret of an account, unless it is the common one.
func (k *Keeper) of(a Account) (secrets.Own, bool) {
	own := k.Secrets.Own(a.Namespace)
	i := slices.IndexFunc(own, func(s secrets.Own) bool { return s.Sends(a.Secret) })
	if i < 0 {
		return secrets.Own{}, false
	}
	return own[i], true
}

// Hold sees to the finalizer before a run is written down. Until leave is called, none is taken off.
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

// due reports whether the finalizer is to be put on a Secret, or taken off.
func due(s secrets.Own, needed bool) bool {
	if needed {
		return !s.Held && !s.Deleting // Kubernetes lets nobody add one to what is being deleted
	}
	return s.Held
}

// allowed makes no error of an apiserver that does not let htcd patch the Secret: HTCJobs are more than their deletion.
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

// Tend puts the finalizer on a namespace's Secrets, or takes it off, as they are needed now.
func (k *Keeper) Tend(ctx context.Context, namespace string) error {
	if len(k.Secrets.Own(namespace)) == 0 {
		return nil
	}
	k.using.Lock()
	defer k.using.Unlock()
	for _, own := range k.Secrets.Own(namespace) {
		needed, err := k.Needed(ctx, own)
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
