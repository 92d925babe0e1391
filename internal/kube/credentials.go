package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/krb"
)

// CredentialError says why no command can be run as the user. Its message holds no secret.
type CredentialError struct{ Reason, Message string }

func (e *CredentialError) Error() string { return e.Message }

// Tickets is what SecretCredentials asks of Kerberos.
type Tickets interface {
	Ticket(ctx context.Context, c krb.Credential) (krb.Ticket, error)
}

// SecretOptions say where the Secrets are.
type SecretOptions struct {
	Namespace, Name string // of the Secret that all may use who have none of their own
	// PerNamespace lets a Secret of that name in an HTCJob's own namespace stand above it. Watched is the one namespace
	// where they are looked for; empty: all.
	PerNamespace bool
	Watched      string
}

// SecretCredentials takes name and password, or keytab, of the accounts from Secrets and keeps tickets for them.
type SecretCredentials struct {
	o       SecretOptions
	common  cache.SharedIndexInformer
	own     cache.SharedIndexInformer // the namespaces' own; nil: nobody looks at them
	tickets Tickets
}

// NewSecretCredentials watches Secrets of the one name; nothing else is read.
func NewSecretCredentials(client kubernetes.Interface, o SecretOptions, tickets Tickets) *SecretCredentials {
	watch := func(namespace string) cache.SharedIndexInformer {
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
			informers.WithTweakListOptions(func(list *metav1.ListOptions) {
				list.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, o.Name).String()
			}))
		return factory.Core().V1().Secrets().Informer()
	}
	s := &SecretCredentials{o: o, common: watch(o.Namespace), tickets: tickets}
	if o.PerNamespace {
		s.own = watch(o.Watched)
	}
	return s
}

// Run watches until ctx ends. changed is called whenever a Secret is not what it was.
func (s *SecretCredentials) Run(ctx context.Context, changed func()) error {
	var watching errgroup.Group
	for _, informer := range s.informers() {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { changed() },
			UpdateFunc: func(before, after any) {
				if before.(*corev1.Secret).ResourceVersion != after.(*corev1.Secret).ResourceVersion {
					changed()
				}
			},
			DeleteFunc: func(any) { changed() },
		})
		if err != nil {
			return fmt.Errorf("watch secrets %s: %w", s.o.Name, err)
		}
		watching.Go(func() error { informer.RunWithContext(ctx); return nil })
	}
	return watching.Wait()
}

func (s *SecretCredentials) informers() []cache.SharedIndexInformer {
	if s.own == nil {
		return []cache.SharedIndexInformer{s.common}
	}
	return []cache.SharedIndexInformer{s.common, s.own}
}

// HasSynced tells whether it is known what Secrets there are.
func (s *SecretCredentials) HasSynced() bool {
	return !slices.ContainsFunc(s.informers(), func(i cache.SharedIndexInformer) bool { return !i.HasSynced() })
}

// Identity returns a ticket cache that is valid for a while yet: of the namespace's own account where it has a Secret,
// else of the common one. A Secret that cannot be used, or is not known yet, is never passed over in favour of the
// common one: the jobs would run as somebody else.
func (s *SecretCredentials) Identity(ctx context.Context, namespace string) (schedd.Identity, error) {
	if s.own == nil {
		return s.Common(ctx)
	}
	if !s.own.HasSynced() {
		return schedd.Identity{}, &CredentialError{"SecretUnreadable",
			fmt.Sprintf("the secrets %s of the namespaces could not be read yet; with --namespace-secrets htcd needs list and watch on them (deploy/components/namespace-secrets)", s.o.Name)}
	}
	object, found, err := s.own.GetStore().GetByKey(namespace + "/" + s.o.Name)
	if err != nil || !found {
		return s.Common(ctx)
	}
	return s.identity(ctx, object.(*corev1.Secret))
}

// Common is the identity of those who have none of their own.
func (s *SecretCredentials) Common(ctx context.Context) (schedd.Identity, error) {
	if !s.common.HasSynced() {
		return schedd.Identity{}, &CredentialError{"SecretUnreadable",
			fmt.Sprintf("secret %s/%s could not be read yet; htcd needs list and watch on it", s.o.Namespace, s.o.Name)}
	}
	object, found, err := s.common.GetStore().GetByKey(s.o.Namespace + "/" + s.o.Name)
	if err != nil || !found {
		return schedd.Identity{}, &CredentialError{"SecretMissing",
			fmt.Sprintf("there is no secret %s in namespace %s: create it with the keys username and password (or keytab)", s.o.Name, s.o.Namespace)}
	}
	return s.identity(ctx, object.(*corev1.Secret))
}

// Any is the common identity, or where that does not work the first of the namespaces' own that does: for questions
// that the schedd answers to everybody.
func (s *SecretCredentials) Any(ctx context.Context) (schedd.Identity, error) {
	id, err := s.Common(ctx)
	if err == nil || s.own == nil {
		return id, err
	}
	secrets := s.own.GetStore().List()
	slices.SortFunc(secrets, func(a, b any) int {
		return strings.Compare(a.(*corev1.Secret).Namespace, b.(*corev1.Secret).Namespace)
	})
	for _, object := range secrets {
		id, another := s.identity(ctx, object.(*corev1.Secret))
		if another == nil {
			return id, nil
		}
		if e, ok := errors.AsType[*CredentialError](another); ok && e.Reason == krb.KDCUnreachable.String() {
			return id, another // nor will it answer for the others
		}
	}
	return id, err
}

func (s *SecretCredentials) identity(ctx context.Context, secret *corev1.Secret) (schedd.Identity, error) {
	ticket, err := s.tickets.Ticket(ctx, krb.Credential{
		Username: string(secret.Data["username"]), Password: string(secret.Data["password"]), Keytab: secret.Data["keytab"],
	})
	if err != nil {
		reason := krb.Unknown.String()
		if e, ok := errors.AsType[*krb.Error](err); ok {
			reason = e.Kind.String()
		}
		return schedd.Identity{}, &CredentialError{reason,
			fmt.Sprintf("no Kerberos ticket with secret %s/%s: %v", secret.Namespace, secret.Name, err)}
	}
	return schedd.Identity{CCache: ticket.CCache}, nil
}
