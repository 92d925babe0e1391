package backend

import (
	"context"
	"errors"
	"fmt"
	"time"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/krb"
	"htc.cern.ch/htcd/internal/target/credential"
	"htc.cern.ch/htcd/internal/target/secrets"
)

const (
	reasonSecretUnreadable = "SecretUnreadable" // it is unknown which Secrets exist
	reasonSecretMissing    = "SecretMissing"
)

// Secrets looks up the accounts' Secrets.
type Secrets interface {
	// Common returns the Secret for all namespaces without their own.
	Common() secrets.Secret
	// Find returns the Secret of that name in a namespace itself; the usual one if name is empty.
	Find(namespace, name string) secrets.Secret
	// Usual lists the namespaces' own Secrets of the usual name.
	Usual() []secrets.Secret
}

// Proofs makes identities from the contents of Secrets.
type Proofs interface {
	Proof(ctx context.Context, c credential.Credential) (credential.Proof, error)
}

// SecretCredentials are Credentials from the accounts' Secrets.
type SecretCredentials struct {
	Secrets Secrets
	Proofs  Proofs
	// Asked receives the result of every request for a ticket or a token: its expiry, zero if it has none, or a
	// *CredentialError that says why there is none. May be nil.
	Asked func(namespace, name string, expires time.Time, err error)
}

// Identity returns a ticket or a token that remains valid for a while: of the named Secret in the namespace, or if none
// is named of the namespace's own account if it has a Secret, else of the common one. A Secret that is named, unusable,
// or not known yet is never passed over in favour of the common one: the jobs would run as somebody else.
func (s *SecretCredentials) Identity(ctx context.Context, t Target) (schedd.Identity, error) {
	own := s.Secrets.Find(t.Namespace, t.Secret)
	switch {
	case t.Secret == "" && (own.State == secrets.Unwatched || own.State == secrets.Missing):
		return s.usual(ctx, t.Endpoint)
	case own.State == secrets.Unwatched:
		return schedd.Identity{}, &CredentialError{reasonSecretUnreadable,
			fmt.Sprintf(
				"htcd may no longer read the secrets %s of the namespaces (--namespace-secrets, --pool-secrets)",
				own.Name,
			)}
	case own.State == secrets.Unread:
		return schedd.Identity{}, &CredentialError{
			reasonSecretUnreadable,
			fmt.Sprintf(
				"the secrets %s of the namespaces could not be read yet; with --namespace-secrets htcd needs list and watch on them (deploy/components/namespace-secrets)",
				own.Name,
			),
		}
	case own.State == secrets.Missing:
		err := missing(own)
		s.tell(own, time.Time{}, err)
		return schedd.Identity{}, err
	}
	return s.identity(ctx, own, t.Endpoint)
}

// place says in messages where an account is: a Secret without a namespace is a directory (--credential-dir).
func place(secret secrets.Secret) string {
	if secret.Namespace == "" {
		return "directory /" + secret.Name
	}
	return "secret " + secret.Namespace + "/" + secret.Name
}

func missing(secret secrets.Secret) error {
	if secret.Namespace == "" {
		return &CredentialError{
			reasonSecretMissing,
			fmt.Sprintf("%s has no credentials: it must have files named %s", place(secret), credential.Keys),
		}
	}
	return &CredentialError{reasonSecretMissing,
		fmt.Sprintf(
			"there is no secret %s in namespace %s: create it with the keys %s",
			secret.Name,
			secret.Namespace,
			credential.Keys,
		)}
}

// usual is Common for an HTCJob that needs it: if every namespace has its own account, nobody misses the common one.
func (s *SecretCredentials) usual(ctx context.Context, endpoint schedd.Endpoint) (schedd.Identity, error) {
	id, err := s.Common(ctx, endpoint)
	if e, is := errors.AsType[*CredentialError](err); is && e.Reason == reasonSecretMissing {
		s.tell(s.Secrets.Common(), time.Time{}, err)
	}
	return id, err
}

func (s *SecretCredentials) tell(secret secrets.Secret, expires time.Time, err error) {
	if s.Asked != nil {
		s.Asked(secret.Namespace, secret.Name, expires, err)
	}
}

// Common returns the identity of namespaces without their own.
func (s *SecretCredentials) Common(ctx context.Context, endpoint schedd.Endpoint) (schedd.Identity, error) {
	common := s.Secrets.Common()
	switch common.State {
	case secrets.Present:
		return s.identity(ctx, common, endpoint)
	case secrets.Missing:
		return schedd.Identity{}, missing(common)
	}
	why := "htcd needs list and watch on it"
	if common.Namespace == "" {
		why = "htcd needs to read its files (--credential-dir)"
	}
	return schedd.Identity{}, &CredentialError{
		reasonSecretUnreadable,
		fmt.Sprintf("%s could not be read yet; %s", place(common), why),
	}
}

// Any returns the common identity, or if that does not work, the first of the namespaces' own that does: for questions
// that the schedd answers for everybody.
func (s *SecretCredentials) Any(ctx context.Context, endpoint schedd.Endpoint) (schedd.Identity, error) {
	id, err := s.Common(ctx, endpoint)
	if err == nil {
		return id, nil
	}
	own := s.Secrets.Usual()
	// Tickets first: a KDC has checked their accounts; nobody has checked tokens yet.
	for _, tokens := range []bool{false, true} {
		for _, secret := range own {
			if _, is := secret.Data["token"]; is != tokens {
				continue
			}
			found, another := s.identity(ctx, secret, endpoint)
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

func (s *SecretCredentials) identity(
	ctx context.Context,
	secret secrets.Secret,
	endpoint schedd.Endpoint,
) (schedd.Identity, error) {
	cred, err := credential.Read(secret.Data)
	var proof credential.Proof
	if err == nil {
		proof, err = s.Proofs.Proof(ctx, cred)
	}
	if err == nil {
		s.tell(secret, proof.Expires, nil)
		return proof.Identity.At(endpoint), nil
	}
	reason := krb.Unknown.String()
	if e, ok := errors.AsType[*credential.Error](err); ok {
		reason = e.Reason
	}
	e := &CredentialError{reason, fmt.Sprintf("%s: %v", place(secret), err)}
	if ctx.Err() == nil { // otherwise the caller did not wait
		s.tell(secret, time.Time{}, e)
	}
	return schedd.Identity{}, e
}
