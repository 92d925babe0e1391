package kube

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"k8s.io/client-go/informers"

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

// SecretCredentials takes the user's name and password, or keytab, from one Secret and keeps a ticket for them.
type SecretCredentials struct {
	namespace, name string
	informer        cache.SharedIndexInformer
	tickets         Tickets
}

// NewSecretCredentials watches the one Secret; nothing else in the namespace is read.
func NewSecretCredentials(client kubernetes.Interface, namespace, name string, tickets Tickets) *SecretCredentials {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		}))
	return &SecretCredentials{
		namespace: namespace, name: name, tickets: tickets,
		informer: factory.Core().V1().Secrets().Informer(),
	}
}

// Run watches until ctx ends. changed is called whenever the Secret is not what it was.
func (s *SecretCredentials) Run(ctx context.Context, changed func()) error {
	_, err := s.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() },
		UpdateFunc: func(before, after any) {
			if before.(*corev1.Secret).ResourceVersion != after.(*corev1.Secret).ResourceVersion {
				changed()
			}
		},
		DeleteFunc: func(any) { changed() },
	})
	if err != nil {
		return fmt.Errorf("watch secret %s/%s: %w", s.namespace, s.name, err)
	}
	s.informer.RunWithContext(ctx)
	return nil
}

// HasSynced tells whether it is known what Secret there is.
func (s *SecretCredentials) HasSynced() bool { return s.informer.HasSynced() }

// Identity returns a ticket cache that is valid for a while yet.
func (s *SecretCredentials) Identity(ctx context.Context) (schedd.Identity, error) {
	if !s.informer.HasSynced() {
		return schedd.Identity{}, &CredentialError{"SecretUnreadable",
			fmt.Sprintf("secret %s/%s could not be read yet; htcd needs get, list and watch on it", s.namespace, s.name)}
	}
	object, found, err := s.informer.GetStore().GetByKey(s.namespace + "/" + s.name)
	if err != nil || !found {
		return schedd.Identity{}, &CredentialError{"SecretMissing",
			fmt.Sprintf("there is no secret %s in namespace %s: create it with the keys username and password (or keytab)", s.name, s.namespace)}
	}
	data := object.(*corev1.Secret).Data
	ticket, err := s.tickets.Ticket(ctx, krb.Credential{
		Username: string(data["username"]), Password: string(data["password"]), Keytab: data["keytab"],
	})
	if err != nil {
		reason := krb.Unknown.String()
		if e, ok := errors.AsType[*krb.Error](err); ok {
			reason = e.Kind.String()
		}
		return schedd.Identity{}, &CredentialError{reason,
			fmt.Sprintf("no Kerberos ticket with secret %s/%s: %v", s.namespace, s.name, err)}
	}
	return schedd.Identity{CCache: ticket.CCache}, nil
}
