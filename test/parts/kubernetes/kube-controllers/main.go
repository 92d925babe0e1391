// Command kube-controllers runs those of Kubernetes' controllers that a lab without a node needs: they collect garbage,
// empty namespaces that are deleted, give namespaces their service account and the apiserver's certificate, and fill
// the roles view, edit and admin. kube-controller-manager has some forty more, whose packages take ten times as long to
// compile.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	cacheddiscovery "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "file that says how to reach the apiserver as its administrator")
	rootCA := flag.String("root-ca-file", "", "file by which pods recognise the apiserver")
	listen := flag.String("listen", "127.0.0.1:10257", "address that answers at /healthz")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *rootCA, *listen); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, kubeconfig, rootCA, listen string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 400, 3000
	ca, err := os.ReadFile(rootCA)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	// kube-controller-manager's, too: how often all is looked at again.
	factory := informers.NewSharedInformerFactory(client, 12*time.Hour)
	if err := namespaces(ctx, objects, client, factory, ca); err != nil {
		return err
	}
	if err := garbage(ctx, objects, client, factory); err != nil {
		return err
	}
	factory.Start(ctx.Done())

	http.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	server := &http.Server{Addr: listen}
	context.AfterFunc(ctx, func() { server.Close() })
	if err := server.ListenAndServe(); ctx.Err() == nil {
		return err
	}
	return nil
}

// namespaces starts the controllers of what each namespace has, and that of the roles.
func namespaces(
	ctx context.Context,
	objects metadata.Interface,
	client kubernetes.Interface,
	factory informers.SharedInformerFactory,
	ca []byte,
) error {
	core := factory.Core().V1()
	emptied := namespace.NewNamespaceController(
		ctx,
		client,
		objects,
		client.Discovery().ServerPreferredNamespacedResources,
		core.Namespaces(),
		5*time.Minute,
		v1.FinalizerKubernetes,
	)
	accounts, err := serviceaccount.NewServiceAccountsController(
		klog.FromContext(ctx),
		core.ServiceAccounts(),
		core.Namespaces(),
		client,
		serviceaccount.DefaultServiceAccountsControllerOptions(),
	)
	if err != nil {
		return err
	}
	certificates, err := rootcacertpublisher.NewPublisher(core.ConfigMaps(), core.Namespaces(), client, ca)
	if err != nil {
		return err
	}
	roles := clusterroleaggregation.NewClusterRoleAggregation(factory.Rbac().V1().ClusterRoles(), client.RbacV1())
	go emptied.Run(ctx, 10)
	go accounts.Run(ctx, 1)
	go certificates.Run(ctx, 1)
	go roles.Run(ctx, 1)
	return nil
}

// garbage starts the garbage collector, which learns of new kinds every 30 s as kube-controller-manager's does.
func garbage(
	ctx context.Context,
	objects metadata.Interface,
	client kubernetes.Interface,
	factory informers.SharedInformerFactory,
) error {
	kinds := restmapper.NewDeferredDiscoveryRESTMapper(cacheddiscovery.NewMemCacheClient(client.Discovery()))
	go wait.Until(kinds.Reset, 30*time.Second, ctx.Done())
	started := make(chan struct{})
	shared := informerfactory.NewInformerFactory(
		factory,
		metadatainformer.NewSharedInformerFactory(objects, 12*time.Hour),
	)
	collector, err := garbagecollector.NewGarbageCollector(ctx, client, objects, meta.ResettableRESTMapper(kinds),
		garbagecollector.DefaultIgnoredResources(), shared, started)
	if err != nil {
		return err
	}
	close(started)
	go collector.Run(ctx, 20, 30*time.Second)
	go collector.Sync(ctx, client.Discovery(), 30*time.Second)
	return nil
}
