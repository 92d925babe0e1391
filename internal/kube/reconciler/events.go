package reconciler

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/orphans"
)

// Handler queues what the informer reports. Changes go to a queue of their own: however many objects there are, a
// change does not wait for the pass over all of them at the start or at a resync. A resync looks only at what has not
// ended.
func (r *Reconciler[O, S, K]) Handler() cache.ResourceEventHandler {
	var none O
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initially bool) {
			now := object.(O)
			if initially {
				r.Routine.Add(keyOf(now))
				return
			}
			r.Changed.Add(keyOf(now))
			r.o.Kind.Seen(none, now)
		},
		UpdateFunc: func(before, object any) {
			was, now := before.(O), object.(O)
			switch {
			case was.GetResourceVersion() != now.GetResourceVersion():
				r.Changed.Add(keyOf(now))
				r.o.Kind.Seen(was, now)
			case !r.o.Kind.Ended(now) || now.GetDeletionTimestamp() != nil:
				r.Routine.Add(keyOf(now))
			}
		},
		DeleteFunc: func(object any) {
			gone, deleted := orphans.Deleted(object, v1alpha1.Finalizer)
			if deleted { // before its sync, which forgets it if nothing is left
				r.Orphans.Deletions.Note(keyOf(gone), string(gone.GetUID()))
			}
			if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
				r.Changed.Add(key)
			}
			if before, is := gone.(O); is {
				r.o.Kind.Seen(before, none)
			}
		},
	}
}

func keyOf(object metav1.Object) string { return cache.MetaObjectToName(object).String() }
