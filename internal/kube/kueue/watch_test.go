package kueue

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/api/v1alpha1"
)

var errRefused = errors.New("htcd may not do that")

func TestKueueMayGoBeforeItsWorkloadsCouldBeListed(t *testing.T) {
	handlers := utilruntime.ErrorHandlers // one of them sleeps by another clock
	utilruntime.ErrorHandlers = nil
	t.Cleanup(func() { utilruntime.ErrorHandlers = handlers })
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{versions[0].WithResource("workloads"): "WorkloadList"})
		client.PrependReactor("list", "workloads", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errRefused
		})
		client.PrependWatchReactor("workloads", func(clienttesting.Action) (bool, watch.Interface, error) {
			return true, nil, errRefused
		})
		served := &atomic.Bool{}
		served.Store(true)
		k := &Kueue{
			Discovery: kinds{served: served}, Client: client, Now: time.Now, Log: zerolog.Nop(),
			Changed: func(_, _ string) {},
			Elsewhere: cache.NewSharedIndexInformer(&cache.ListWatch{
				ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
					return nil, errRefused
				},
				WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
					return nil, errRefused
				},
			}, &v1alpha1.HTCJob{}, 0, cache.Indexers{}),
		}
		ended := make(chan struct{})
		go func() { k.Run(ctx); close(ended) }()
		time.Sleep(5 * time.Minute)
		_, known := k.state()
		require.False(t, known)
		served.Store(false)
		time.Sleep(3 * lookAgain)
		at, known := k.state()
		require.True(t, known, "nothing waits for a Kueue that is gone")
		require.Nil(t, at)
		stop()
		<-ended
		time.Sleep(time.Hour)
	})
}

// kinds is a discovery that finds Kueue's API while that is served.
type kinds struct {
	discovery.DiscoveryInterface
	served *atomic.Bool
}

func (k kinds) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	if !k.served.Load() || version != versions[0].String() {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, version)
	}
	return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "workloads"}}}, nil
}
