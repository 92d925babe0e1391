package v1alpha1

import (
	"context"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Client reaches the objects of every namespace. A generated clientset would
// be four packages for each kind; this is the part of it that is used.
//
// +kubebuilder:object:generate=false
type Client struct {
	rest  rest.Interface
	codec runtime.ParameterCodec
}

// Interface is what Client.HTCJobs offers for one namespace. Update never
// touches the status and UpdateStatus nothing else: the status is a
// subresource.
//
// +kubebuilder:object:generate=false
type Interface interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*HTCJob, error)
	List(ctx context.Context, opts metav1.ListOptions) (*HTCJobList, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
	Create(ctx context.Context, job *HTCJob, opts metav1.CreateOptions) (*HTCJob, error)
	Update(ctx context.Context, job *HTCJob, opts metav1.UpdateOptions) (*HTCJob, error)
	UpdateStatus(ctx context.Context, job *HTCJob, opts metav1.UpdateOptions) (*HTCJob, error)
	Patch(
		ctx context.Context,
		name string,
		kind types.PatchType,
		data []byte,
		opts metav1.PatchOptions,
		subresources ...string,
	) (*HTCJob, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
}

// NewClient returns a client for the apiserver that config names. It leaves
// config as it is.
func NewClient(config *rest.Config) (*Client, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", Resource, err)
	}
	return NewClientForHTTP(config, httpClient)
}

// NewClientForHTTP is NewClient over connections that other clients use too.
func NewClientForHTTP(config *rest.Config, httpClient *http.Client) (*Client, error) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("client for %s: %w", Resource, err)
	}
	c := rest.CopyConfig(config)
	c.GroupVersion = &GroupVersion
	c.APIPath = "/apis"
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.ContentType = runtime.ContentTypeJSON // custom resources have no protobuf form
	c.AcceptContentTypes = runtime.ContentTypeJSON
	if c.UserAgent == "" {
		c.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	restClient, err := rest.RESTClientForConfigAndClient(c, httpClient)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", Resource, err)
	}
	return &Client{rest: restClient, codec: runtime.NewParameterCodec(scheme)}, nil
}

// HTCJobs returns the client of one namespace; "" lists and watches them all.
func (c *Client) HTCJobs(namespace string) Interface {
	return gentype.NewClientWithList(Resource, c.rest, c.codec, namespace,
		func() *HTCJob { return &HTCJob{} },
		func() *HTCJobList { return &HTCJobList{} })
}

// NewInformer returns an informer over the HTCJobs of a namespace, "" for all, indexed by namespace. It is not started.
// asked is told how each of its questions to the apiserver was answered: nil where it lists or watches. It has the
// objects that keep says, such as Ours; all with nil.
func (c *Client) NewInformer(
	namespace string,
	resync time.Duration,
	asked func(error),
	keep func(runtime.Object) bool,
) cache.SharedIndexInformer {
	return newInformer(c.HTCJobs(namespace), &HTCJob{}, resync, asked, keep)
}

// NewLabelledInformer is NewInformer for the HTCJobs that have a label.
func (c *Client) NewLabelledInformer(
	namespace, label string,
	resync time.Duration,
	keep func(runtime.Object) bool,
) cache.SharedIndexInformer {
	return newInformer(labelled[*HTCJobList]{c.HTCJobs(namespace), label}, &HTCJob{}, resync, func(error) {}, keep)
}

// labelled are those of the objects that have a label.
type labelled[L runtime.Object] struct {
	watched[L]
	label string
}

func (l labelled[L]) List(ctx context.Context, opts metav1.ListOptions) (L, error) {
	opts.LabelSelector = l.label
	return l.watched.List(ctx, opts)
}

func (l labelled[L]) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	opts.LabelSelector = l.label
	return l.watched.Watch(ctx, opts)
}

// Workflows returns the client of the HTCWorkflows of one namespace; "" lists and watches them all.
func (c *Client) Workflows(namespace string) *gentype.ClientWithList[*HTCWorkflow, *HTCWorkflowList] {
	return gentype.NewClientWithList(WorkflowResource, c.rest, c.codec, namespace,
		func() *HTCWorkflow { return &HTCWorkflow{} },
		func() *HTCWorkflowList { return &HTCWorkflowList{} })
}

// NewWorkflowInformer is NewInformer for HTCWorkflows.
func (c *Client) NewWorkflowInformer(
	namespace string,
	resync time.Duration,
	asked func(error),
	keep func(runtime.Object) bool,
) cache.SharedIndexInformer {
	return newInformer(c.Workflows(namespace), &HTCWorkflow{}, resync, asked, keep)
}

// watched is what an informer asks a client for.
type watched[L runtime.Object] interface {
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

func newInformer[L runtime.Object](
	objects watched[L],
	example runtime.Object,
	resync time.Duration,
	asked func(error),
	keep func(runtime.Object) bool,
) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformerWithOptions(
		&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
				list, err := objects.List(ctx, opts)
				asked(err)
				if err != nil || keep == nil {
					return list, err
				}
				return list, dropped(list, keep)
			},
			WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
				stream, err := objects.Watch(ctx, opts)
				asked(err)
				if err != nil || keep == nil {
					return stream, err
				}
				return filtered(stream, keep), nil
			},
		},
		example,
		cache.SharedIndexInformerOptions{
			ResyncPeriod: resync,
			Indexers:     cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
		})
}

// Pools returns the client of HTCPools.
func (c *Client) Pools() *gentype.ClientWithList[*HTCPool, *HTCPoolList] {
	return gentype.NewClientWithList(PoolResource, c.rest, c.codec, "",
		func() *HTCPool { return &HTCPool{} },
		func() *HTCPoolList { return &HTCPoolList{} })
}

// NewPoolInformer is NewInformer for HTCPools.
func (c *Client) NewPoolInformer(resync time.Duration, asked func(error)) cache.SharedIndexInformer {
	return newInformer(c.Pools(), &HTCPool{}, resync, asked, nil)
}
