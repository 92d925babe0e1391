package ports

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"

	"htc.cern.ch/htcd/api/v1alpha1"
)

func web(uid types.UID, phase v1alpha1.Phase, ports ...v1alpha1.JobPort) *v1alpha1.HTCJob {
	job := &v1alpha1.HTCJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: uid, Generation: 2}}
	job.Spec.Ports = ports
	job.Status.Phase, job.Status.ObservedGeneration = phase, 2
	return job
}

// flow is an HTCWorkflow of that name, too, whose second step has three nodes in each of two sequences.
func flow(uid types.UID, phase v1alpha1.Phase, ports ...v1alpha1.WorkflowPort) *v1alpha1.HTCWorkflow {
	w := &v1alpha1.HTCWorkflow{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: uid, Generation: 2}}
	w.Spec.Ports, w.Spec.Sequences = ports, &v1alpha1.Sequences{Count: new(int32(2))}
	serve, scan := v1alpha1.Step{}, v1alpha1.Step{ForEach: &v1alpha1.ForEach{Count: 3}}
	serve.Name, scan.Name = "serve", "scan"
	w.Spec.Steps = []v1alpha1.Step{serve, scan}
	w.Status.Phase, w.Status.ObservedGeneration = phase, 2
	return w
}

func TestWhatHasEndedHasNoPorts(t *testing.T) {
	for kind, in := range map[string]func(v1alpha1.Phase) metav1.Object{
		v1alpha1.Kind: func(phase v1alpha1.Phase) metav1.Object {
			return web("1", phase, v1alpha1.JobPort{Port: 8888})
		},
		v1alpha1.WorkflowKind: func(phase v1alpha1.Phase) metav1.Object {
			return flow("1", phase, v1alpha1.WorkflowPort{Port: 8888, Step: "serve"})
		},
	} {
		t.Run(kind, func(t *testing.T) {
			wanted := func(object metav1.Object) []Target {
				o, err := small(object)
				require.NoError(t, err)
				again, err := small(o)
				require.NoError(t, err)
				require.Same(t, o, again)
				require.Equal(t, key{kind, "web"}, ownerIn(cache.DeletedFinalStateUnknown{Obj: o}).key())
				return ownerIn(o).wanted()
			}
			require.NotEmpty(t, wanted(in("")))
			require.NotEmpty(t, wanted(in(v1alpha1.PhaseSuspended)))
			require.Empty(t, wanted(in(v1alpha1.PhaseFailed)))
			edited := in(v1alpha1.PhaseFailed)
			edited.SetGeneration(3)
			require.NotEmpty(t, wanted(edited), "it runs again")
			deleted := in(v1alpha1.PhaseRunning)
			deleted.SetDeletionTimestamp(&metav1.Time{})
			require.Empty(t, wanted(deleted))
		})
	}
	require.Empty(t, ownerIn(nil).wanted())
}

// world is a namespace with a Forwarder, whose connections say to which job and port they go and return what they get.
type world struct {
	t         *testing.T
	jobs      *cachetesting.FakeControllerSource
	workflows *cachetesting.FakeControllerSource
	services  typedcorev1.ServiceInterface
	forwarder *Forwarder

	mu     sync.Mutex
	warned []string
	ready  bool
}

func newWorld(t *testing.T, services ...*corev1.Service) *world {
	t.Helper()
	client := fake.NewClientset()
	w := &world{
		t: t, jobs: cachetesting.NewFakeControllerSource(), workflows: cachetesting.NewFakeControllerSource(),
		services: client.CoreV1().Services("ns"),
	}
	for _, s := range services {
		_, err := w.services.Create(t.Context(), s, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	w.forwarder = &Forwarder{
		Namespace: "ns", Services: w.services, Log: zerolog.Nop(),
		HTCJobs:      cache.NewSharedIndexInformer(w.jobs, &v1alpha1.HTCJob{}, 0, cache.Indexers{}),
		HTCWorkflows: cache.NewSharedIndexInformer(w.workflows, &v1alpha1.HTCWorkflow{}, 0, cache.Indexers{}),
		Connect: func(_ context.Context, to Target, conn net.Conn) error {
			_, _ = fmt.Fprintf(conn, "%s %s, %s, port %d: ", to.Kind, to.Name, to.of(), to.Port)
			_, _ = io.Copy(conn, conn)
			return io.ErrUnexpectedEOF
		},
		Warn: func(about *corev1.ObjectReference, reason, message string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.warned = append(w.warned, about.Kind+" "+about.Name+": "+reason+": "+message)
		},
		Ready: func() { w.mu.Lock(); defer w.mu.Unlock(); w.ready = true },
	}
	return w
}

func (w *world) run() {
	ctx, stop := context.WithCancel(w.t.Context())
	ended := make(chan error)
	go func() { ended <- w.forwarder.Run(ctx) }()
	w.t.Cleanup(func() { stop(); require.NoError(w.t, <-ended) })
}

func start(t *testing.T, services ...*corev1.Service) *world {
	t.Helper()
	w := newWorld(t, services...)
	w.run()
	return w
}

func (w *world) eventually(holds func() bool) {
	w.t.Helper()
	require.Eventually(w.t, holds, 30*time.Second, 5*time.Millisecond)
}

func (w *world) service() *corev1.Service {
	s, err := w.services.Get(w.t.Context(), "web", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(w.t, err)
	return s
}

func (w *world) said() []string { w.mu.Lock(); defer w.mu.Unlock(); return w.warned }

// ask connects with where a port of the Service leads.
func (w *world) ask(i int) (string, error) {
	w.t.Helper()
	conn, err := net.Dial("tcp", "127.0.0.1:"+w.service().Spec.Ports[i].TargetPort.String())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "hello") // it may be reset
	_ = conn.(*net.TCPConn).CloseWrite()
	text, err := io.ReadAll(conn)
	return string(text), err
}

func TestAServiceLeadsToTheJobsUntilTheyHaveEnded(t *testing.T) {
	w := start(t)
	w.jobs.Add(web("1", "", v1alpha1.JobPort{Port: 8888}, v1alpha1.JobPort{Port: 80, Proc: 3}))
	w.eventually(func() bool { return w.service() != nil })
	first := w.service()
	require.Equal(t, map[string]string{Label: Name}, first.Spec.Selector)
	require.Equal(t, "port-8888", first.Spec.Ports[0].Name)
	require.EqualValues(t, 80, first.Spec.Ports[1].Port)
	for i, want := range []string{"HTCJob web, job 0, port 8888: hello", "HTCJob web, job 3, port 80: hello"} {
		text, err := w.ask(i)
		require.NoError(t, err)
		require.Equal(t, want, text)
	}
	w.eventually(func() bool { return len(w.said()) == 2 })
	require.Contains(t, w.said(), "HTCJob web: PortNotReached: port 80 of job 3 is not reached: unexpected EOF")

	w.jobs.Modify(web("1", v1alpha1.PhaseRunning, v1alpha1.JobPort{Port: 80}))
	w.eventually(func() bool { return len(w.service().Spec.Ports) == 1 })
	text, err := w.ask(0)
	require.NoError(t, err)
	require.Equal(t, "HTCJob web, job 0, port 80: hello", text)
	_, err = net.Dial("tcp", "127.0.0.1:"+first.Spec.Ports[0].TargetPort.String())
	require.Error(t, err, "what is not wanted any more is closed")

	w.jobs.Modify(web("1", v1alpha1.PhaseSucceeded, v1alpha1.JobPort{Port: 80}))
	w.eventually(func() bool { return w.service() == nil })
}

func TestOnlyServicesOfItsOwnAreReplaced(t *testing.T) {
	theirs := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app": "web"}}}
	w := start(t, theirs)
	w.jobs.Add(web("1", "", v1alpha1.JobPort{Port: 80}))
	w.eventually(func() bool { return len(w.said()) > 0 })
	require.Equal(t,
		"HTCJob web: ServiceNameTaken: there is a Service web that is not this HTCJob's; it is left as it is", w.said()[0])
	require.Equal(t, theirs.Labels, w.service().Labels)
}

// left is the Service that an earlier process has made of an object.
func left(object any) *corev1.Service {
	o, _ := small(object)
	return service(ownerIn(o), []int32{40000})
}

func TestWhatAnEarlierProcessHasLeftIsMendedBeforeItIsReady(t *testing.T) {
	job, node := v1alpha1.JobPort{Port: 80}, v1alpha1.WorkflowPort{Port: 80, Step: "serve"}
	ended, endedToo := left(web("2", "", job)), left(flow("2", "", node))
	ended.Name, endedToo.Name = "ended", "ended-too"
	for kind, c := range map[string]struct {
		left *corev1.Service
		now  func(*world)
	}{
		"an HTCJob":                       {left(web("1", "", job)), func(w *world) { w.jobs.Add(web("3", "", job)) }}, // of the same name, but not the same
		"the same HTCJob":                 {left(web("3", "", job)), func(w *world) { w.jobs.Add(web("3", "", job)) }},
		"an HTCJob, now an HTCWorkflow":   {left(web("1", "", job)), func(w *world) { w.workflows.Add(flow("3", "", node)) }},
		"an HTCWorkflow":                  {left(flow("1", "", node)), func(w *world) { w.workflows.Add(flow("3", "", node)) }},
		"the same HTCWorkflow":            {left(flow("3", "", node)), func(w *world) { w.workflows.Add(flow("3", "", node)) }},
		"an HTCWorkflow, now an HTCJob":   {left(flow("1", "", node)), func(w *world) { w.jobs.Add(web("3", "", job)) }},
		"the HTCWorkflow, and an HTCJob":  {left(flow("3", "", node)), func(w *world) { w.jobs.Add(web("4", v1alpha1.PhaseFailed, job)); w.workflows.Add(flow("3", "", node)) }},
		"an ended HTCWorkflow, an HTCJob": {left(flow("1", "", node)), func(w *world) { w.workflows.Add(flow("1", v1alpha1.PhaseFailed, node)); w.jobs.Add(web("3", "", job)) }},
	} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, c.left, ended, endedToo)
			c.now(w)
			w.run()
			w.eventually(func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.ready })
			w.eventually(func() bool {
				s := w.service()
				return s != nil && s.OwnerReferences[0].UID == "3" && s.Spec.Ports[0].TargetPort.IntVal != 40000
			})
			list, err := w.services.List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			require.Len(t, list.Items, 1)
			require.Empty(t, w.said())
		})
	}
}

func TestANamespaceHasSoManyConnections(t *testing.T) {
	w := start(t)
	w.jobs.Add(web("1", "", v1alpha1.JobPort{Port: 80}))
	w.eventually(func() bool { return w.service() != nil })
	for range mostAtOnce {
		conn, err := net.Dial("tcp", "127.0.0.1:"+w.service().Spec.Ports[0].TargetPort.String())
		require.NoError(t, err)
		defer conn.Close()
		_, err = io.ReadFull(conn, make([]byte, len("HTCJob web, job 0, port 80: ")))
		require.NoError(t, err)
	}
	text, _ := w.ask(0) // it may be reset
	require.Empty(t, text)
	w.eventually(func() bool { return len(w.said()) == 1 })
	require.Equal(t, "HTCJob web: PortNotReached: port 80 of job 0 is not reached: "+
		"there are 32 connections to jobs of this namespace already", w.said()[0])
}
