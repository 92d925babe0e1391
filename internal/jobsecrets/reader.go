// Package jobsecrets reads Secrets whose owners have marked them for jobs. RBAC cannot select by label, so htcd may read
// Secrets only in namespaces whose owners bound the ClusterRole htcd-job-secrets, and of those it uses only marked ones.
package jobsecrets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Label marks a Secret for jobs, with the value "true".
const Label = "htc.cern.ch/jobs"

// The reasons of an Unusable.
const (
	ReasonNotFound  = "SecretNotFound"
	ReasonNotMarked = "SecretNotMarked"
	ReasonNoKey     = "SecretKeyNotFound"
	ReasonTooLarge  = "SecretTooLarge"
	ReasonForbidden = "SecretForbidden"
	ReasonAccount   = "SecretOfAccount"
)

// Unusable is the error for a Secret that a job cannot have now. Its owner can change that, except for ReasonAccount.
type Unusable struct{ Reason, Message string }

func (e *Unusable) Error() string { return e.Message }

const (
	// fresh is how long an answer is used again: jobs that run ask far more often than Secrets change.
	fresh = 15 * time.Second
	// patience is how long the apiserver may take to answer.
	patience = 10 * time.Second
)

// Reader reads Secrets; it is safe for concurrent use. Answers are up to 15 s old.
type Reader struct {
	client   typedcorev1.SecretsGetter
	accounts []string
	now      func() time.Time

	asking singleflight.Group
	mu     sync.Mutex
	known  map[string]answer // by namespace/name
}

type answer struct {
	asked time.Time
	data  map[string][]byte
	err   error
}

// NewReader returns a Reader. accounts are the names of Secrets that hold accounts: they are never read, whatever their label.
func NewReader(client typedcorev1.SecretsGetter, accounts []string) *Reader {
	return &Reader{client: client, accounts: accounts, now: time.Now, known: map[string]answer{}}
}

// Read returns the value of a key, of at most that many bytes. What the user can change is an *Unusable.
func (r *Reader) Read(ctx context.Context, namespace, name, key string, most int) ([]byte, error) {
	if err := r.MayName(name); err != nil {
		return nil, err
	}
	data, err := r.secret(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	value, ok := data[key]
	switch {
	case !ok:
		return nil, unusable(ReasonNoKey, "the Secret %s has no key %s", name, key)
	case len(value) > most:
		return nil, unusable(ReasonTooLarge, "the key %s of the Secret %s has %d bytes, and at most %d are allowed", key, name, len(value), most)
	}
	return value, nil
}

// MayName refuses the names of Secrets that hold accounts.
func (r *Reader) MayName(name string) error {
	if slices.Contains(r.accounts, name) {
		return unusable(ReasonAccount, "the Secret %s holds an account of the pool, which no job may have: name another one", name)
	}
	return nil
}

// secret returns the data of a marked Secret. Several askers share one request.
func (r *Reader) secret(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	id := namespace + "/" + name
	r.mu.Lock()
	a, ok := r.known[id]
	r.mu.Unlock()
	if ok && r.now().Sub(a.asked) < fresh {
		return a.data, a.err
	}
	// Of a context of its own, as it also answers others.
	asked := r.asking.DoChan(id, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		a := answer{asked: r.now()}
		a.data, a.err = r.ask(ctx, namespace, name)
		r.remember(id, a)
		return a, nil
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case result := <-asked:
		a := result.Val.(answer)
		return a.data, a.err
	}
}

// remember keeps answers, but no failures to ask, and forgets the old ones.
func (r *Reader) remember(id string, a answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for other, old := range r.known {
		if a.asked.Sub(old.asked) >= fresh {
			delete(r.known, other)
		}
	}
	if _, told := errors.AsType[*Unusable](a.err); a.err == nil || told {
		r.known[id] = a
	}
}

func (r *Reader) ask(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	secret, err := r.client.Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, unusable(ReasonNotFound, "there is no Secret %s in this namespace", name)
	case apierrors.IsForbidden(err):
		return nil, unusable(ReasonForbidden, "htcd may not read Secrets in this namespace: its owner binds the ClusterRole htcd-job-secrets to htcd's ServiceAccount here")
	case err != nil:
		return nil, fmt.Errorf("read the Secret %s: %w", name, err)
	case !marked(secret):
		return nil, unusable(ReasonNotMarked, "the Secret %s is not marked for jobs: kubectl label secret %s %s=true", name, name, Label)
	}
	return secret.Data, nil
}

func marked(secret *corev1.Secret) bool { return secret.Labels[Label] == "true" }

func unusable(reason, format string, args ...any) error {
	return &Unusable{reason, fmt.Sprintf(format, args...)}
}
