// Package secrets watches the Secrets that hold HTCondor accounts, and marks those of namespaces that are in use.
package secrets

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Options say where the Secrets are.
type Options struct {
	Namespace, Name string // of the Secret for all namespaces without their own
	// Directory has the content of that Secret in files; empty: it is in Kubernetes.
	Directory string
	// PerNamespace lets a Secret of that name in an HTCJob's own namespace take precedence. Watched is the only
	// namespace searched for them; empty: all.
	PerNamespace bool
	Watched      string
	// Further names additional Secrets that HTCJobs may name, in their own namespace.
	Further []string
}

// Named lists the names that HTCJobs may name.
func (o Options) Named() []string {
	if !o.PerNamespace {
		return nil
	}
	return append(
		[]string{o.Name},
		slices.DeleteFunc(slices.Clone(o.Further), func(name string) bool { return name == o.Name })...)
}

// Names lists the names of all Secrets that hold accounts.
func (o Options) Names() []string { return append([]string{o.Name}, o.Further...) }

// Watcher knows the Secrets.
type Watcher struct {
	o       Options
	client  kubernetes.Interface
	common  cache.SharedIndexInformer            // nil: it is in files
	files   *directory                           // nil: it is not
	own     map[string]cache.SharedIndexInformer // the namespaces' own, by the Secrets' name; empty: not watched
	written map[string]cache.MutationCache       // the same, plus our own writes that the informers have not seen yet
}

// NewWatcher watches Secrets of these names; nothing else is read.
func NewWatcher(client kubernetes.Interface, o Options) *Watcher {
	watch := func(namespace, name string) cache.SharedIndexInformer {
		factory := informers.NewSharedInformerFactoryWithOptions(
			client,
			0,
			informers.WithNamespace(namespace),
			informers.WithTweakListOptions(
				func(list *metav1.ListOptions) { list.FieldSelector = ofName(name).FieldSelector },
			),
		)
		return factory.Core().V1().Secrets().Informer()
	}
	w := &Watcher{
		o: o, client: client,
		own: map[string]cache.SharedIndexInformer{}, written: map[string]cache.MutationCache{},
	}
	if o.Directory != "" {
		w.files = newDirectory(o.Directory)
	} else {
		w.common = watch(o.Namespace, o.Name)
	}
	for _, name := range o.Named() {
		own := watch(o.Watched, name)
		w.own[name] = own
		w.written[name] = cache.NewIntegerResourceVersionMutationCache(
			klog.Background(),
			own.GetStore(),
			own.GetIndexer(),
			time.Minute,
			false,
		)
	}
	return w
}

func ofName(name string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()}
}

// Run watches until ctx ends. changed is called with the namespace of a Secret that is added, is deleted, or has new
// contents; touched when anything else about one changes.
func (w *Watcher) Run(ctx context.Context, changed, touched func(namespace string)) error {
	tell := func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			namespace, _, _ := cache.SplitMetaNamespaceKey(key) // of a key that was just made
			changed(namespace)
		}
	}
	var watching errgroup.Group
	for _, informer := range w.informers() {
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
	if w.files != nil {
		watching.Go(func() error { w.files.run(ctx, func() { changed(w.o.Namespace) }); return nil })
	}
	return watching.Wait()
}

func (w *Watcher) informers() []cache.SharedIndexInformer {
	all := slices.Collect(maps.Values(w.own))
	if w.common != nil {
		all = append(all, w.common)
	}
	return all
}

// HasSynced reports whether it is known which Secrets exist.
func (w *Watcher) HasSynced() bool {
	if w.files != nil && w.files.current().State == Unread {
		return false
	}
	return !slices.ContainsFunc(w.informers(), func(i cache.SharedIndexInformer) bool { return !i.HasSynced() })
}

// State is what is known of a Secret.
type State int

// The states of a Secret.
const (
	Unwatched State = iota // none of that name is read
	Unread                 // not known yet
	Missing
	Present
)

// Secret is the result of a look-up.
type Secret struct {
	Namespace, Name string // files have no namespace, and their path without its first slash as name
	State           State
	Data            map[string][]byte // if Present
}

// Common returns the Secret for all namespaces without their own.
func (w *Watcher) Common() Secret {
	if w.files != nil {
		return w.files.current()
	}
	return find(w.common, w.o.Namespace, w.o.Name)
}

// Find returns the Secret of that name in a namespace itself; the usual one if name is empty.
func (w *Watcher) Find(namespace, name string) Secret {
	name = cmp.Or(name, w.o.Name)
	return find(w.own[name], namespace, name)
}

func find(in cache.SharedIndexInformer, namespace, name string) Secret {
	s := Secret{Namespace: namespace, Name: name}
	switch {
	case in == nil:
		return s
	case !in.HasSynced():
		s.State = Unread
		return s
	}
	s.State = Missing
	if object, found, err := in.GetStore().GetByKey(namespace + "/" + name); err == nil && found {
		s.State, s.Data = Present, object.(*corev1.Secret).Data
	}
	return s
}

// Usual lists the namespaces' own Secrets of the usual name, in the order of the namespaces.
func (w *Watcher) Usual() []Secret {
	own := w.own[w.o.Name]
	if own == nil {
		return nil
	}
	var all []Secret
	for _, object := range own.GetStore().List() {
		s := object.(*corev1.Secret)
		all = append(all, Secret{s.Namespace, s.Name, Present, s.Data})
	}
	slices.SortFunc(all, func(a, b Secret) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return all
}
