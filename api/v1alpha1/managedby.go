package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Manager is htcd as spec.managedBy names it.
const Manager = "htc.cern.ch/htcd"

// MultiKueue is Kueue as spec.managedBy names it where it sends to other clusters.
const MultiKueue = "kueue.x-k8s.io/multikueue"

// Runner says which controller runs an HTCJob or an HTCWorkflow.
type Runner struct {
	// ManagedBy names the controller that runs this, htcd when absent or htc.cern.ch/htcd. What names another one, such
	// as kueue.x-k8s.io/multikueue, htcd leaves alone: it sets no finalizer, sends nothing and writes no status. It
	// cannot change.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?/[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$')",message="managedBy must be a domain and a path, such as example.org/controller"
	ManagedBy string `json:"managedBy,omitempty"`
}

// Elsewhere reports whether another controller than htcd runs it.
func (r Runner) Elsewhere() bool { return r.ManagedBy != "" && r.ManagedBy != Manager }

// Ours reports whether an object is not one that another controller runs.
func Ours(object runtime.Object) bool {
	switch o := object.(type) {
	case *HTCJob:
		return !o.Spec.Elsewhere()
	case *HTCWorkflow:
		return !o.Spec.Elsewhere()
	}
	return true
}

// dropped takes those out of a list that are not to be kept.
func dropped(list runtime.Object, keep func(runtime.Object) bool) error {
	all, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	kept := make([]runtime.Object, 0, len(all))
	for _, object := range all {
		if keep(object) {
			kept = append(kept, object)
		}
	}
	if len(kept) == len(all) {
		return nil
	}
	return meta.SetList(list, kept)
}

// filtered is a stream without the events of objects that are not to be kept; bookmarks and errors are of none. As the
// field never changes, an object is either always in it or never.
func filtered(stream watch.Interface, keep func(runtime.Object) bool) watch.Interface {
	return watch.Filter(stream, func(e watch.Event) (watch.Event, bool) {
		return e, e.Type == watch.Bookmark || e.Type == watch.Error || keep(e.Object)
	})
}
