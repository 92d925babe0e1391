package kube

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"htc.cern.ch/htcd/internal/credential"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/krb"
)

// CredentialError says why no command can be run as the user. Its message holds no secret.
type CredentialError struct{ Reason, Message string }

func (e *CredentialError) Error() string { return e.Message }

const (
	reasonSecretUnreadable = "SecretUnreadable" // it is not known what Secrets there are
	reasonSecretMissing    = "SecretMissing"
)

// Proofs is what SecretCredentials asks for identities.
type Proofs interface {
	Proof(ctx context.Context, c credential.Credential) (credential.Proof, error)
}

// SecretOptions say where the Secrets are.
type SecretOptions struct {
	Namespace, Name string // of the Secret that all may use who have none of their own
	// PerNamespace lets a Secret of that name in an HTCJob's own namespace stand above it. Watched is the one namespace
	// where they are looked for; empty: all.
	PerNamespace bool
	Watched      string
	// Further are names of Secrets beside it that HTCJobs may name, in their own namespace.
	Further []string
	// Asked hears how every question for a ticket or a token ended: its expiry, zero for one without an end, or why
	// there is none: a *CredentialError. nil: nobody asks.
	Asked func(namespace, name string, expires time.Time, err error)
}

// Named lists the names that HTCJobs may name.
func (o SecretOptions) Named() []string {
	if !o.PerNamespace {
		return nil
	}
	return append([]string{o.Name}, slices.DeleteFunc(slices.Clone(o.Further), func(name string) bool { return name == o.Name })...)
}

// SecretCredentials makes identities of the Secrets of the accounts.
type SecretCredentials struct {
	o       SecretOptions
	client  kubernetes.Interface
	common  cache.SharedIndexInformer
	own     map[string]cache.SharedIndexInformer // the namespaces' own, by the Secrets' name; empty: nobody looks at them
	written map[string]cache.MutationCache       // the same, plus our own writes that the informers have not seen yet
	proofs  Proofs
}

// NewSecretCredentials watches Secrets of these names; nothing else is read.
func NewSecretCredentials(client kubernetes.Interface, o SecretOptions, proofs Proofs) *SecretCredentials {
	watch := func(namespace, name string) cache.SharedIndexInformer {
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
			informers.WithTweakListOptions(func(list *metav1.ListOptions) {
				list.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
			}))
		return factory.Core().V1().Secrets().Informer()
	}
	s := &SecretCredentials{
		o: o, client: client, common: watch(o.Namespace, o.Name), proofs: proofs,
		own: map[string]cache.SharedIndexInformer{}, written: map[string]cache.MutationCache{},
	}
	for _, name := range o.Named() {
		own := watch(o.Watched, name)
		s.own[name] = own
		s.written[name] = cache.NewIntegerResourceVersionMutationCache(klog.Background(), own.GetStore(), own.GetIndexer(), time.Minute, false)
	}
	return s
}

// Run watches until ctx ends. changed is called with the namespace of a Secret that comes, goes, or holds something else;
// touched when anything else of one is not what it was.
func (s *SecretCredentials) Run(ctx context.Context, changed, touched func(namespace string)) error {
	tell := func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			namespace, _, _ := cache.SplitMetaNamespaceKey(key) // of a key that was just made
			changed(namespace)
		}
	}
	var watching errgroup.Group
	for _, informer := range s.informers() {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: tell,
			UpdateFunc: func(before, after any) {
				was, is := before.(*corev1.Secret), after.(*corev1.Secret)
				switch {
				case !maps.EqualFunc(was.Data, is.Data, bytes.Equal):
					changed(is.Namespace)
				case was.ResourceVersion != is.ResourceVersion:
					touched(is.Namespace)
				}
			},
			DeleteFunc: tell,
		})
		if err != nil {
			return fmt.Errorf("watch secrets: %w", err)
		}
		watching.Go(func() error { informer.RunWithContext(ctx); return nil })
	}
	return watching.Wait()
}

func (s *SecretCredentials) informers() []cache.SharedIndexInformer {
	return append(slices.Collect(maps.Values(s.own)), s.common)
}

// HasSynced tells whether it is known what Secrets there are.
func (s *SecretCredentials) HasSynced() bool {
	return !slices.ContainsFunc(s.informers(), func(i cache.SharedIndexInformer) bool { return !i.HasSynced() })
}

// Identity returns a ticket or a token that is valid for a while yet: of the Secret of that name in the namespace, or where
// none is named of the namespace's own account where it has a Secret, else of the common one. A Secret that is named,
// cannot be used, or is not known yet, is never passed over in favour of the common one: the jobs would run as somebody else.
func (s *SecretCredentials) Identity(ctx context.Context, namespace, secret string) (schedd.Identity, error) {
	name := cmp.Or(secret, s.o.Name)
	own := s.own[name]
	switch {
	case own == nil && secret == "":
		return s.usual(ctx)
	case own == nil:
		return schedd.Identity{}, &CredentialError{reasonSecretUnreadable,
			fmt.Sprintf("htcd may no longer read the secrets %s of the namespaces (--namespace-secrets, --pool-secrets)", secret)}
	case !own.HasSynced():
		return schedd.Identity{}, &CredentialError{reasonSecretUnreadable,
			fmt.Sprintf("the secrets %s of the namespaces could not be read yet; with --namespace-secrets htcd needs list and watch on them (deploy/components/namespace-secrets)", name)}
	}
	object, found, err := own.GetStore().GetByKey(namespace + "/" + name)
	switch {
	case (err != nil || !found) && secret == "":
		return s.usual(ctx)
	case err != nil || !found:
		err := missing(namespace, name)
		s.tell(namespace, name, time.Time{}, err)
		return schedd.Identity{}, err
	}
	return s.identity(ctx, object.(*corev1.Secret))
}

func missing(namespace, name string) error {
	return &CredentialError{reasonSecretMissing,
		fmt.Sprintf("there is no secret %s in namespace %s: create it with the keys %s", name, namespace, credential.Keys)}
}

// usual is Common for an HTCJob that needs it: where every namespace has an account of its own nobody misses the common one.
func (s *SecretCredentials) usual(ctx context.Context) (schedd.Identity, error) {
	id, err := s.Common(ctx)
	if e, is := errors.AsType[*CredentialError](err); is && e.Reason == reasonSecretMissing {
		s.tell(s.o.Namespace, s.o.Name, time.Time{}, err)
	}
	return id, err
}

func (s *SecretCredentials) tell(namespace, name string, expires time.Time, err error) {
	if s.o.Asked != nil {
		s.o.Asked(namespace, name, expires, err)
	}
}

// Common is the identity of those who have none of their own.
func (s *SecretCredentials) Common(ctx context.Context) (schedd.Identity, error) {
	if !s.common.HasSynced() {
		return schedd.Identity{}, &CredentialError{reasonSecretUnreadable,
			fmt.Sprintf("secret %s/%s could not be read yet; htcd needs list and watch on it", s.o.Namespace, s.o.Name)}
	}
	object, found, err := s.common.GetStore().GetByKey(s.o.Namespace + "/" + s.o.Name)
	if err != nil || !found {
		return schedd.Identity{}, missing(s.o.Namespace, s.o.Name)
	}
	return s.identity(ctx, object.(*corev1.Secret))
}

// Any is the common identity, or where that does not work the first of the namespaces' own that does: for questions
// that the schedd answers to everybody.
func (s *SecretCredentials) Any(ctx context.Context) (schedd.Identity, error) {
	id, err := s.Common(ctx)
	own := s.own[s.o.Name]
	if err == nil || own == nil {
		return id, err
	}
	secrets := own.GetStore().List()
	slices.SortFunc(secrets, func(a, b any) int {
		return strings.Compare(a.(*corev1.Secret).Namespace, b.(*corev1.Secret).Namespace)
	})
	// Tickets first: a KDC has looked at their accounts, and at tokens nobody yet.
	for _, tokens := range []bool{false, true} {
		for _, object := range secrets {
			secret := object.(*corev1.Secret)
			if _, is := secret.Data["token"]; is != tokens {
				continue
			}
			found, another := s.identity(ctx, secret)
			if another == nil {
				return found, nil
			}
			if e, ok := errors.AsType[*CredentialError](another); ok && e.Reason == krb.KDCUnreachable.String() {
				err = another
				break // nor will it answer for the others
			}
		}
	}
	return id, err
}

func (s *SecretCredentials) identity(ctx context.Context, secret *corev1.Secret) (schedd.Identity, error) {
	cred, err := credential.Read(secret.Data)
	var proof credential.Proof
	if err == nil {
		proof, err = s.proofs.Proof(ctx, cred)
	}
	if err == nil {
		s.tell(secret.Namespace, secret.Name, proof.Expires, nil)
		return proof.Identity, nil
	}
	reason := krb.Unknown.String()
	if e, ok := errors.AsType[*credential.Error](err); ok {
		reason = e.Reason
	}
	e := &CredentialError{reason, fmt.Sprintf("secret %s/%s: %v", secret.Namespace, secret.Name, err)}
	if ctx.Err() == nil { // else it is whoever asked that did not wait
		s.tell(secret.Namespace, secret.Name, time.Time{}, e)
	}
	return schedd.Identity{}, e
}
