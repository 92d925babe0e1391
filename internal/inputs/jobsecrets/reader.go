// Package jobsecrets reads Secrets whose owners have marked them for jobs. RBAC cannot select by label, so htcd may
// read Secrets only in namespaces whose owners bound the ClusterRole htcd-job-secrets, and of those it uses only marked
// ones.
package jobsecrets

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
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
	// mostKnown is how many bytes of Secrets are kept for being used again.
	mostKnown = 64 << 20
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

	version string
}

// NewReader returns a Reader. accounts are the names of Secrets that hold accounts: they are never read, whatever their
// label.
func NewReader(client typedcorev1.SecretsGetter, accounts []string) *Reader {
	return &Reader{client: client, accounts: accounts, now: time.Now, known: map[string]answer{}}
}

// Read returns the value of a key, of at most that many bytes. What the user can change is an *Unusable.
func (r *Reader) Read(ctx context.Context, namespace, name, key string, most int) ([]byte, error) {
	if err := r.MayName(name); err != nil {
		return nil, err
	}
	a := r.secret(ctx, namespace, name)
	if a.err != nil {
		return nil, a.err
	}
	value, ok := a.data[key]
	switch {
	case !ok:
		return nil, unusable(ReasonNoKey, "the Secret %s has no key %s", name, key)
	case len(value) > most:
		return nil, unusable(
			ReasonTooLarge,
			"the key %s of the Secret %s has %d bytes, and at most %d are allowed",
			key,
			name,
			len(value),
			most,
		)
	}
	return value, nil
}

// Version identifies the content of a Secret without telling anything about it.
func (r *Reader) Version(ctx context.Context, namespace, name string) (string, error) {
	if err := r.MayName(name); err != nil {
		return "", err
	}
	a := r.secret(ctx, namespace, name)
	return a.version, a.err
}

// MayName refuses the names of Secrets that hold accounts.
func (r *Reader) MayName(name string) error {
	if slices.Contains(r.accounts, name) {
		return unusable(
			ReasonAccount,
			"the Secret %s holds an account of the pool, which no job may have: name another one",
			name,
		)
	}
	return nil
}

// secret returns what is known of a marked Secret. Several askers share one request.
func (r *Reader) secret(ctx context.Context, namespace, name string) answer {
	id := namespace + "/" + name
	r.mu.Lock()
	a, ok := r.known[id]
	r.mu.Unlock()
	if ok && r.now().Sub(a.asked) < fresh {
		return a
	}
	// Of a context of its own, as it also answers others.
	asked := r.asking.DoChan(id, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		a := r.ask(ctx, namespace, name)
		r.remember(id, a)
		return a, nil
	})
	select {
	case <-ctx.Done():
		return answer{err: ctx.Err()}
	case result := <-asked:
		return result.Val.(answer)
	}
}

// remember keeps answers, but no failures to ask, and forgets the old ones.
func (r *Reader) remember(id string, a answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := a.size()
	for other, old := range r.known {
		if other == id || a.asked.Sub(old.asked) >= fresh {
			delete(r.known, other)
		} else {
			held += old.size()
		}
	}
	if _, told := errors.AsType[*Unusable](a.err); (a.err == nil || told) && held <= mostKnown {
		r.known[id] = a
	}
}

func (a answer) size() (n int) {
	for _, value := range a.data {
		n += len(value)
	}
	return n
}

func (r *Reader) ask(ctx context.Context, namespace, name string) (a answer) {
	a.asked = r.now()
	secret, err := r.client.Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		a.err = unusable(ReasonNotFound, "there is no Secret %s in this namespace", name)
	case apierrors.IsForbidden(err):
		a.err = unusable(ReasonForbidden, "htcd may not read Secrets in this namespace; its owner can allow it: "+
			"kubectl -n %s create rolebinding htcd-job-secrets --clusterrole=htcd-job-secrets --user=%s", namespace, userIn(err))
	case err != nil:
		a.err = fmt.Errorf("read the Secret %s: %w", name, err)
	case secret.Labels[Label] != "true":
		a.err = unusable(
			ReasonNotMarked,
			"the Secret %s is not marked for jobs: kubectl -n %s label secret %s %s=true",
			name,
			namespace,
			name,
			Label,
		)
	default:
		a.data, a.version = secret.Data, string(secret.UID)+"/"+secret.ResourceVersion
	}
	return a
}

var userRE = regexp.MustCompile(`User "([A-Za-z0-9:._@-]+)"`)

// userIn returns who htcd is to the apiserver, which says so when it refuses something.
func userIn(err error) string {
	if m := userRE.FindStringSubmatch(err.Error()); m != nil {
		return m[1]
	}
	return "system:serviceaccount:htcd:htcd"
}

func unusable(reason, format string, args ...any) error {
	return &Unusable{reason, fmt.Sprintf(format, args...)}
}
