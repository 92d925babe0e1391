package kueue

import (
	"context"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/api/v1alpha1"
)

func TestAnHTCJobElsewhereWithoutAQueueGivesBackItsQuota(t *testing.T) {
	job := &v1alpha1.HTCJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: "n", Name: "j", UID: "u", Labels: map[string]string{QueueLabel: "team"},
	}}
	job.Spec.ManagedBy, job.Spec.Script.Queue = v1alpha1.MultiKueue, new(int32(3))
	news := watch.NewFake()
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{versions[0].WithResource("workloads"): "WorkloadList"})
	k := &Kueue{
		Discovery: always{}, Client: client, Now: time.Now, Log: zerolog.Nop(), Changed: func(_, _ string) {},
		Warn: func(*v1alpha1.HTCJob, string, string) {},
		Elsewhere: cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				return &v1alpha1.HTCJobList{}, nil
			},
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				return news, nil
			},
		}, always{}), &v1alpha1.HTCJob{}, 0, cache.Indexers{}),
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { k.Run(ctx); close(ended) }()
	workloads := func() int {
		list, err := client.Resource(versions[0].WithResource("workloads")).List(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		return len(list.Items)
	}
	news.Add(job)
	require.Eventually(t, func() bool { return workloads() == 1 }, 10*time.Second, 10*time.Millisecond)
	at, _ := k.state()
	require.Eventually(t, func() bool { return len(at.of(job)) == 1 }, 10*time.Second, 10*time.Millisecond)
	news.Delete(job) // what a watch by labels tells of one without
	require.Eventually(t, func() bool { return workloads() == 0 }, 10*time.Second, 10*time.Millisecond)
	news.Add(job)
	require.Eventually(t, func() bool { return workloads() == 1 }, 10*time.Second, 10*time.Millisecond)
	stop()
	<-ended
}

// always is a discovery that finds Kueue's API, and a client that lists before it watches.
type always struct{ discovery.DiscoveryInterface }

func (always) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "workloads"}}}, nil
}

func (always) IsWatchListSemanticsUnSupported() bool { return true }
