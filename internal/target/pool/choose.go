package pool

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// Known is what is known of the cluster's HTCPools.
type Known interface {
	// Get returns the pool of that name; nil: there is none.
	Get(name string) *v1alpha1.HTCPool
	// Default returns the oldest of those with spec.default; nil: there is none.
	Default() *v1alpha1.HTCPool
	// Labels returns those of a namespace; false: they are not known yet.
	Labels(namespace string) (labels.Set, bool)
}

// The reasons of an Unusable.
const (
	ReasonMissing    = "PoolMissing"    // there is no pool of that name
	ReasonNotAllowed = "PoolNotAllowed" // the HTCJob's namespace may not use it
	ReasonInvalid    = "PoolInvalid"    // its administrator has to mend it
)

// Unusable is why an HTCJob cannot be sent by its pool as things are. It waits.
type Unusable struct{ Reason, Message string }

func (u *Unusable) Error() string { return u.Message }

// Waits reports whether a reason is one of those for which an HTCJob waits for its pool.
func Waits(reason string) bool {
	return reason == ReasonMissing || reason == ReasonNotAllowed || reason == ReasonInvalid
}

// find returns the HTCPool of an HTCJob: the one that it names, else the default one if its namespace may use that; nil
// if htcd's flags alone decide. Its errors are *Unusable.
func find(job *v1alpha1.HTCJob, known Known) (*v1alpha1.HTCPool, error) {
	if known == nil {
		return nil, nil
	}
	if name := named(job); name != "" {
		p := known.Get(name)
		if p == nil {
			return nil, &Unusable{
				ReasonMissing,
				fmt.Sprintf(
					"there is no HTCPool %s (spec.pool.name): kubectl get htcpools lists those that there are",
					name,
				),
			}
		}
		may, err := usable(p, job.Namespace, known)
		if err == nil && !may {
			err = &Unusable{
				ReasonNotAllowed,
				fmt.Sprintf(
					"HTCPool %s is not for namespace %s: its administrator decides by labels of the namespace which may use it (namespaceSelector: %s)",
					name,
					job.Namespace,
					metav1.FormatLabelSelector(p.Spec.NamespaceSelector),
				),
			}
		}
		return p, err
	}
	p := known.Default()
	if p == nil {
		return nil, nil
	}
	if may, err := usable(p, job.Namespace, known); err != nil || may {
		return p, err
	}
	return nil, nil
}

// Choose is find for an attempt that begins now.
func Choose(job *v1alpha1.HTCJob, known Known) (Pool, error) {
	p, err := find(job, known)
	if err != nil || p == nil {
		return Pool{}, err
	}
	return of(p), nil
}

// present returns the pool of that name as it is now, and whether there is one. Without a name it is htcd's flags.
func present(name string, known Known) (Pool, bool) {
	if name == "" || known == nil {
		return Pool{}, name == ""
	}
	p := known.Get(name)
	if p == nil {
		return Pool{}, false
	}
	return of(p), true
}

// OldestDefault returns the oldest of those pools that say that they are the default; nil if none does.
func OldestDefault(pools []*v1alpha1.HTCPool) *v1alpha1.HTCPool {
	var oldest *v1alpha1.HTCPool
	for _, p := range pools {
		if p.Spec.Default &&
			(oldest == nil || cmp.Or(p.CreationTimestamp.Compare(oldest.CreationTimestamp.Time),
				cmp.Compare(p.Name, oldest.Name)) < 0) {
			oldest = p
		}
	}
	return oldest
}

func named(job *v1alpha1.HTCJob) string {
	if job.Spec.Pool == nil {
		return ""
	}
	return job.Spec.Pool.Name
}

// usable reports whether the HTCJobs of a namespace may use a pool.
func usable(p *v1alpha1.HTCPool, namespace string, known Known) (bool, error) {
	if p.Spec.NamespaceSelector == nil {
		return true, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(p.Spec.NamespaceSelector)
	if err != nil {
		return false, invalid(p.Name, fmt.Errorf("namespaceSelector: %w", err))
	}
	if selector.Empty() {
		return true, nil
	}
	set, there := known.Labels(namespace)
	if !there {
		return false, &Unusable{
			ReasonNotAllowed,
			fmt.Sprintf(
				"the labels of namespace %s, by which HTCPool %s says who may use it, are not known yet: htcd needs list and watch on namespaces",
				namespace,
				p.Name,
			),
		}
	}
	return selector.Matches(set), nil
}
