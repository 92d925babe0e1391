package ports

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/rs/zerolog"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// mostAtOnce is how many connections there may be in a namespace: as many as htcd grants one account.
const mostAtOnce = 32

// Forwarder forwards the ports of a namespace's jobs.
type Forwarder struct {
	Namespace string
	HTCJobs   cache.SharedIndexInformer // of the namespace
	Services  typedcorev1.ServiceInterface
	// Connect connects conn with a port of a job until either side closes.
	Connect func(ctx context.Context, job string, port v1alpha1.JobPort, conn net.Conn) error
	// Warn is told what to tell about an HTCJob.
	Warn func(job *v1alpha1.HTCJob, reason, message string)
	// Ready is called once all Services lead to where they should.
	Ready func()
	Log   zerolog.Logger

	opened map[string]*opened // by the HTCJob's name
	old    map[string]bool    // the names of Services that an earlier process has left
	room   chan struct{}
}

// opened are the ports that listen for an HTCJob.
type opened struct {
	uid   types.UID
	ports []v1alpha1.JobPort
	here  []int32
	close func()
}

// stripped leaves of an HTCJob only what is needed of it here: a namespace may have thousands.
func stripped(object any) (any, error) {
	job, is := object.(*v1alpha1.HTCJob)
	if !is {
		return object, nil
	}
	small := &v1alpha1.HTCJob{
		TypeMeta: job.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: job.Name, UID: job.UID, Generation: job.Generation,
			ResourceVersion: job.ResourceVersion, DeletionTimestamp: job.DeletionTimestamp,
		},
	}
	small.Spec.Ports = job.Spec.Ports
	small.Status.Phase, small.Status.ObservedGeneration = job.Status.Phase, job.Status.ObservedGeneration
	return small, nil
}

// Run works until ctx ends.
func (f *Forwarder) Run(ctx context.Context) error {
	f.opened, f.old, f.room = map[string]*opened{}, map[string]bool{}, make(chan struct{}, mostAtOnce)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	defer context.AfterFunc(ctx, queue.ShutDown)()
	if err := f.HTCJobs.SetTransform(stripped); err != nil {
		return err
	}
	add := func(object any) {
		if gone, is := object.(cache.DeletedFinalStateUnknown); is {
			object = gone.Obj
		}
		if job, is := object.(*v1alpha1.HTCJob); is && len(job.Spec.Ports) > 0 {
			queue.Add(job.Name)
		}
	}
	if _, err := f.HTCJobs.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(before, after any) { add(before); add(after) }, DeleteFunc: add,
	}); err != nil {
		return err
	}
	go f.HTCJobs.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), f.HTCJobs.HasSynced) {
		return nil
	}
	// Those of HTCJobs that have ended meanwhile must not lead to ports that are another's now.
	old, err := f.Services.List(ctx, metav1.ListOptions{LabelSelector: managedBy + "=" + Name})
	if err != nil {
		return fmt.Errorf("list the Services: %w", err)
	}
	for _, s := range old.Items {
		f.old[s.Name] = true
		queue.Add(s.Name)
	}
	for ready := false; ; {
		if !ready && queue.Len() == 0 {
			ready = true
			f.Ready()
		}
		name, stop := queue.Get()
		if stop {
			return nil
		}
		if err := f.reach(ctx, name); err != nil && ctx.Err() == nil {
			f.Log.Warn().Err(err).Str("job", name).Msg("its Service is not as it should be")
			queue.AddRateLimited(name)
		} else {
			queue.Forget(name)
		}
		queue.Done(name)
	}
}

// reach makes the ports here and the Service what an HTCJob wants.
func (f *Forwarder) reach(ctx context.Context, name string) error {
	object, _, err := f.HTCJobs.GetStore().GetByKey(f.Namespace + "/" + name)
	if err != nil {
		return err
	}
	job, _ := object.(*v1alpha1.HTCJob)
	ports := wanted(job)
	if len(ports) == 0 && f.opened[name] == nil && !f.old[name] {
		return nil
	}
	is, err := f.Services.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		is, err = nil, nil
	}
	if err != nil {
		return err
	}
	if o := f.opened[name]; o != nil && (job == nil || o.uid != job.UID || !slices.Equal(o.ports, ports)) {
		o.close()
		delete(f.opened, name)
	}
	ours := is != nil && is.Labels[managedBy] == Name
	if ours && (len(ports) == 0 || !metav1.IsControlledBy(is, job)) { // or of an HTCJob that had this name
		if err := f.remove(ctx, is); err != nil {
			return err
		}
		is = nil
	}
	delete(f.old, name)
	switch {
	case len(ports) == 0:
		return nil
	case is != nil && !metav1.IsControlledBy(is, job):
		err := fmt.Errorf("there is a Service %s that is not this HTCJob's; it is left as it is", name)
		f.Warn(job, "ServiceNameTaken", err.Error())
		return err
	}
	if f.opened[name] == nil {
		if f.opened[name], err = f.open(ctx, job, ports); err != nil {
			return err
		}
	}
	want := service(job, ports, f.opened[name].here)
	switch {
	case is == nil:
		if _, err = f.Services.Create(ctx, want, metav1.CreateOptions{}); err != nil {
			f.Warn(job, "NoService", err.Error())
		}
	case !equality.Semantic.DeepEqual(is.Spec.Ports, want.Spec.Ports):
		is.Spec.Ports = want.Spec.Ports
		_, err = f.Services.Update(ctx, is, metav1.UpdateOptions{})
	}
	return err
}

// remove deletes this Service, and no younger one of its name.
func (f *Forwarder) remove(ctx context.Context, s *corev1.Service) error {
	err := f.Services.Delete(ctx, s.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &s.UID}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// open listens for an HTCJob's ports.
func (f *Forwarder) open(ctx context.Context, job *v1alpha1.HTCJob, ports []v1alpha1.JobPort) (*opened, error) {
	ctx, stop := context.WithCancel(ctx)
	o := &opened{uid: job.UID, ports: ports, close: stop}
	for _, p := range ports {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ":0")
		if err != nil {
			stop()
			return nil, err
		}
		_, number, _ := net.SplitHostPort(l.Addr().String())
		here, err := strconv.ParseInt(number, 10, 32)
		if err != nil {
			stop()
			return nil, err
		}
		o.here = append(o.here, int32(here))
		go Accept(ctx, l, func(ctx context.Context, conn net.Conn) { f.serve(ctx, job, p, conn) })
	}
	return o, nil
}

func (f *Forwarder) serve(ctx context.Context, job *v1alpha1.HTCJob, p v1alpha1.JobPort, conn net.Conn) {
	err := fmt.Errorf("there are %d connections to jobs of this namespace already", mostAtOnce)
	select {
	case f.room <- struct{}{}:
		err = f.Connect(ctx, job.Name, p, conn)
		<-f.room
	default:
	}
	if err != nil && ctx.Err() == nil {
		f.Log.Info().Err(err).Str("job", job.Name).Int32("port", p.Port).Msg("not connected")
		f.Warn(job, "PortNotReached", fmt.Sprintf("port %d of job %d is not reached: %v", p.Port, p.Proc, err))
	}
}
