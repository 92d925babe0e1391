package daemon

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/rs/zerolog"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/target/pool"
)

// pools knows the cluster's HTCPools, and the labels of its namespaces once a pool selects by them. It implements
// pool.Known.
type pools struct {
	o          Options
	log        zerolog.Logger
	informer   cache.SharedIndexInformer
	namespaces cache.SharedIndexInformer
	selected   chan struct{}                    // closed when a pool selects by labels
	first      atomic.Pointer[v1alpha1.HTCPool] // the default one
	HasSynced  func() bool                      // whether the pools are known
	changed    func(before, now *v1alpha1.HTCPool)
}

func (d *daemon) newPools() (*pools, error) {
	client, err := metadata.NewForConfig(d.config)
	if err != nil {
		return nil, fmt.Errorf("kubernetes client: %w", err)
	}
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	p := &pools{
		o: d.o, log: d.log,
		informer: cache.NewSharedIndexInformer(
			cache.ToListWatcherWithWatchListSemantics(listPools(d.jobs), noWatchList{}),
			&v1alpha1.HTCPool{},
			0,
			cache.Indexers{},
		),
		namespaces: metadatainformer.NewFilteredMetadataInformer(
			client,
			namespaces,
			metav1.NamespaceAll,
			0,
			cache.Indexers{},
			nil,
		).Informer(),
		selected: make(chan struct{}),
	}
	handler, err := p.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(now any) { p.turned(nil, now.(*v1alpha1.HTCPool)) },
		UpdateFunc: func(before, now any) { p.turned(before.(*v1alpha1.HTCPool), now.(*v1alpha1.HTCPool)) },
		DeleteFunc: func(object any) {
			if tombstone, missed := object.(cache.DeletedFinalStateUnknown); missed {
				object = tombstone.Obj
			}
			if before, is := object.(*v1alpha1.HTCPool); is {
				p.turned(before, nil)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch HTCPools: %w", err)
	}
	p.HasSynced = handler.HasSynced
	_, err = p.namespaces.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { p.changed(nil, nil) },
		UpdateFunc: func(before, now any) {
			if !equality.Semantic.DeepEqual(before.(metav1.Object).GetLabels(), now.(metav1.Object).GetLabels()) {
				p.changed(nil, nil)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch namespaces: %w", err)
	}
	return p, nil
}

// listPools finds no pools in a cluster that does not have the resource, and asks again whether it has.
func listPools(client *v1alpha1.Client) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			list, err := client.Pools().List(ctx, opts)
			if apierrors.IsNotFound(err) {
				return &v1alpha1.HTCPoolList{}, nil
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			return client.Pools().Watch(ctx, opts)
		},
	}
}

// noWatchList makes the informer list first: without the resource, a stream of what there is would only fail.
type noWatchList struct{}

func (noWatchList) IsWatchListSemanticsUnSupported() bool { return true }

// Run watches until ctx ends.
func (p *pools) Run(ctx context.Context) {
	go func() {
		select {
		case <-ctx.Done():
		case <-p.selected:
			p.namespaces.RunWithContext(ctx)
		}
	}()
	p.informer.RunWithContext(ctx)
}

// turned is called with what a pool was and what it is; nil: it was not, or is no longer, there.
func (p *pools) turned(before, now *v1alpha1.HTCPool) {
	if before != nil && now != nil && before.UID == now.UID && before.Generation == now.Generation {
		return // its status
	}
	if now != nil && now.Spec.NamespaceSelector != nil {
		select {
		case <-p.selected:
		default:
			close(p.selected)
		}
	}
	if now != nil {
		if flags := p.o.replacedBy(now.Spec); len(flags) > 0 {
			p.log.Info().Str(
				"pool",
				now.Name,
			).Strs(
				"flags",
				flags,
			).Msg(
				"these flags do not count for the HTCJobs of this HTCPool, which has settings of its own",
			)
		}
	}
	p.first.Store(pool.OldestDefault(p.List()))
	p.changed(before, now)
}

// List returns all of them, in no particular order. They are shared: copy before changing.
func (p *pools) List() []*v1alpha1.HTCPool {
	var all []*v1alpha1.HTCPool
	for _, object := range p.informer.GetStore().List() {
		all = append(all, object.(*v1alpha1.HTCPool))
	}
	return all
}

// Get implements pool.Known.
func (p *pools) Get(name string) *v1alpha1.HTCPool {
	object, found, err := p.informer.GetStore().GetByKey(name)
	if err != nil || !found {
		return nil
	}
	return object.(*v1alpha1.HTCPool)
}

// Default implements pool.Known.
func (p *pools) Default() *v1alpha1.HTCPool { return p.first.Load() }

// Labels implements pool.Known.
func (p *pools) Labels(namespace string) (labels.Set, bool) {
	object, found, err := p.namespaces.GetStore().GetByKey(namespace)
	if err != nil || !found {
		return nil, false
	}
	return object.(metav1.Object).GetLabels(), true
}

// replacedBy lists the flags that do not count for the HTCJobs of a pool.
func (o Options) replacedBy(s v1alpha1.HTCPoolSpec) []string {
	elsewhere := s.Schedd != "" || len(s.Schedds) > 0
	var flags []string
	for _, f := range []struct {
		name     string
		replaced bool
	}{
		{"--schedd", o.Schedd != "" && elsewhere}, {"--schedd-command", o.ScheddCommand != "" && elsewhere}, {"--collector", o.Collector != "" && s.Collector != ""},
		{"--max-queue", o.MaxQueue > 0}, {"--max-open-per-namespace", o.MaxOpen > 0},
	} {
		if f.replaced {
			flags = append(flags, f.name)
		}
	}
	return flags
}
