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
	Namespace             string
	HTCJobs, HTCWorkflows cache.SharedIndexInformer // of the namespace
	Services              typedcorev1.ServiceInterface
	// Connect connects conn with a port of a job until either side closes.
	Connect func(ctx context.Context, to Target, conn net.Conn) error
	// Warn is told what to tell about an HTCJob or HTCWorkflow.
	Warn func(about *corev1.ObjectReference, reason, message string)
	// Ready is called once all Services lead to where they should.
	Ready func()
	Log   zerolog.Logger

	queue  workqueue.TypedRateLimitingInterface[key]
	opened map[key]*opened
	old    map[string]bool // the names of Services that an earlier process has left
	room   chan struct{}
}

// opened are the ports that listen for an owner.
type opened struct {
	uid   types.UID
	ports []Target
	here  []int32
	close func()
}

// Run works until ctx ends.
func (f *Forwarder) Run(ctx context.Context) error {
	f.opened, f.old, f.room = map[key]*opened{}, map[string]bool{}, make(chan struct{}, mostAtOnce)
	f.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[key]())
	defer context.AfterFunc(ctx, f.queue.ShutDown)()
	var seen []cache.InformerSynced
	for _, informer := range []cache.SharedIndexInformer{f.HTCJobs, f.HTCWorkflows} {
		if err := informer.SetTransform(small); err != nil {
			return err
		}
		handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { f.changed(nil, ownerIn(object)) },
			UpdateFunc: func(before, after any) { f.changed(ownerIn(before), ownerIn(after)) },
			DeleteFunc: func(object any) { f.changed(ownerIn(object), nil) },
		})
		if err != nil {
			return err
		}
		seen = append(seen, handler.HasSynced)
		go informer.RunWithContext(ctx)
	}
	if !cache.WaitForCacheSync(ctx.Done(), seen...) {
		return nil
	}
	// Those of what has ended meanwhile must not lead to ports that are another's now.
	old, err := f.Services.List(ctx, metav1.ListOptions{LabelSelector: managedBy + "=" + Name})
	if err != nil {
		return fmt.Errorf("list the Services: %w", err)
	}
	for _, s := range old.Items {
		f.old[s.Name] = true
		f.queue.Add(key{v1alpha1.Kind, s.Name})
	}
	for ready := false; ; {
		if !ready && f.queue.Len() == 0 {
			ready = true
			f.Ready()
		}
		k, stop := f.queue.Get()
		if stop {
			return nil
		}
		if err := f.reach(ctx, k); err != nil && ctx.Err() == nil {
			f.Log.Warn().Err(err).Str("kind", k.kind).Str("name", k.name).Msg("its Service is not as it should be")
			f.queue.AddRateLimited(k)
		} else {
			f.queue.Forget(k)
		}
		f.queue.Done(k)
	}
}

// ownerIn is the owner that a handler is given, or that is in a store; nil if there is none.
func ownerIn(object any) *owner {
	if gone, is := object.(cache.DeletedFinalStateUnknown); is {
		object = gone.Obj
	}
	o, _ := object.(*owner)
	return o
}

// changed queues an owner that has ports or had some, and tells once what is wrong with others.
func (f *Forwarder) changed(before, after *owner) {
	for _, o := range []*owner{before, after} {
		if len(o.wanted()) > 0 {
			f.queue.Add(o.key())
		}
	}
	if after == nil {
		return
	}
	for _, wrong := range after.wrong {
		if before == nil || before.UID != after.UID || !slices.Contains(before.wrong, wrong) {
			f.Warn(after.reference(), "PortInvalid", wrong)
		}
	}
}

// owner is the present one; nil if there is none.
func (f *Forwarder) owner(k key) *owner {
	informer := f.HTCJobs
	if k.kind == v1alpha1.WorkflowKind {
		informer = f.HTCWorkflows
	}
	object, _, _ := informer.GetStore().GetByKey(f.Namespace + "/" + k.name) // it is in memory
	return ownerIn(object)
}

// reach makes the ports here and the Service what an owner wants.
func (f *Forwarder) reach(ctx context.Context, k key) error {
	o := f.owner(k)
	if len(o.wanted()) == 0 && f.opened[k] == nil && !f.old[k.name] {
		return nil
	}
	is, err := f.Services.Get(ctx, k.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		is, err = nil, nil
	}
	if err != nil {
		return err
	}
	if open := f.opened[k]; open != nil && (o == nil || open.uid != o.UID || !slices.Equal(open.ports, o.ports)) {
		open.close()
		delete(f.opened, k)
	}
	if is != nil && f.outlived(is) {
		if err := f.remove(ctx, is); err != nil {
			return err
		}
		is = nil
	}
	delete(f.old, k.name)
	switch {
	case len(o.wanted()) == 0:
		f.queue.Add(k.namesake()) // it may have waited for the name
		return nil
	case is != nil && !metav1.IsControlledBy(is, o):
		err := fmt.Errorf("there is a Service %s that is not this %s's; it is left as it is", k.name, k.kind)
		f.Warn(o.reference(), "ServiceNameTaken", err.Error())
		return err
	}
	if f.opened[k] == nil {
		if f.opened[k], err = f.open(ctx, o); err != nil {
			return err
		}
	}
	want := service(o, f.opened[k].here)
	switch {
	case is == nil:
		if _, err = f.Services.Create(ctx, want, metav1.CreateOptions{}); err != nil {
			f.Warn(o.reference(), "NoService", err.Error())
		}
	case !equality.Semantic.DeepEqual(is.Spec.Ports, want.Spec.Ports):
		is.Spec.Ports = want.Spec.Ports
		_, err = f.Services.Update(ctx, is, metav1.UpdateOptions{})
	}
	return err
}

// outlived reports whether a Service of this program is of nothing that wants it: of what has ended, or what had that
// name before.
func (f *Forwarder) outlived(s *corev1.Service) bool {
	if s.Labels[managedBy] != Name {
		return false
	}
	by := metav1.GetControllerOf(s)
	if by == nil {
		return true
	}
	o := f.owner(key{by.Kind, s.Name})
	return len(o.wanted()) == 0 || o.UID != by.UID
}

// remove deletes this Service, and no younger one of its name.
func (f *Forwarder) remove(ctx context.Context, s *corev1.Service) error {
	err := f.Services.Delete(ctx, s.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &s.UID}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// open listens for an owner's ports.
func (f *Forwarder) open(ctx context.Context, o *owner) (*opened, error) {
	ctx, stop := context.WithCancel(ctx)
	open := &opened{uid: o.UID, ports: o.ports, close: stop}
	for _, p := range o.ports {
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
		open.here = append(open.here, int32(here))
		go Accept(ctx, l, func(ctx context.Context, conn net.Conn) { f.serve(ctx, o, p, conn) })
	}
	return open, nil
}

func (f *Forwarder) serve(ctx context.Context, o *owner, to Target, conn net.Conn) {
	err := fmt.Errorf("there are %d connections to jobs of this namespace already", mostAtOnce)
	select {
	case f.room <- struct{}{}:
		err = f.Connect(ctx, to, conn)
		<-f.room
	default:
	}
	if err != nil && ctx.Err() == nil {
		f.Log.Info().Err(err).Str("kind", to.Kind).Str("name", to.Name).Int32("port", to.Port).Msg("not connected")
		f.Warn(o.reference(), "PortNotReached", fmt.Sprintf("port %d of %s is not reached: %v", to.Port, to.of(), err))
	}
}
