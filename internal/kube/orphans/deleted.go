package orphans

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Deleted returns an object that an informer no longer has, nil if it is not known, and whether somebody deleted it, or
// could have without htcd's consent. One with our finalizer does not disappear at once.
func Deleted(object any, finalizer string) (o metav1.Object, was bool) {
	tombstone, missed := object.(cache.DeletedFinalStateUnknown)
	if missed {
		object = tombstone.Obj
	}
	o, is := object.(metav1.Object)
	return o, is && (o.GetDeletionTimestamp() != nil || !missed && !slices.Contains(o.GetFinalizers(), finalizer))
}
