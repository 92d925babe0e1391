package ports

import (
	"context"
	"io"
	"net"
	"strconv"
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

func TestAnHTCJobThatHasEndedHasNoPorts(t *testing.T) {
	port := v1alpha1.JobPort{Port: 8888}
	require.NotEmpty(t, wanted(web("1", "", port)))
	require.NotEmpty(t, wanted(web("1", v1alpha1.PhaseSuspended, port)))
	require.Empty(t, wanted(web("1", v1alpha1.PhaseFailed, port)))
	require.Empty(t, wanted(nil))
	edited := web("1", v1alpha1.PhaseFailed, port)
	edited.Generation = 3
	require.NotEmpty(t, wanted(edited), "it runs again")
	deleted := web("1", v1alpha1.PhaseRunning, port)
	deleted.DeletionTimestamp = &metav1.Time{}
	require.Empty(t, wanted(deleted))
}

// world is a namespace with a Forwarder, whose connections say to which job and port they go and return what they get.
type world struct {
	t        *testing.T
	source   *cachetesting.FakeControllerSource
	services typedcorev1.ServiceInterface

	mu     sync.Mutex
	warned []string
	ready  bool
}

func start(t *testing.T, services ...*corev1.Service) *world {
	t.Helper()
	client := fake.NewClientset()
	w := &world{
		t: t, source: cachetesting.NewFakeControllerSource(), services: client.CoreV1().Services("ns"),
	}
	for _, s := range services {
		_, err := w.services.Create(t.Context(), s, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	f := &Forwarder{
		Namespace: "ns", Services: w.services, Log: zerolog.Nop(),
		HTCJobs: cache.NewSharedIndexInformer(w.source, &v1alpha1.HTCJob{}, 0, cache.Indexers{}),
		Connect: func(_ context.Context, job string, p v1alpha1.JobPort, conn net.Conn) error {
			_, _ = io.WriteString(conn, job+"/"+strconv.Itoa(int(p.Proc))+":"+strconv.Itoa(int(p.Port))+" ")
			_, _ = io.Copy(conn, conn)
			return io.ErrUnexpectedEOF
		},
		Warn: func(_ *v1alpha1.HTCJob, reason, message string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.warned = append(w.warned, reason+": "+message)
		},
		Ready: func() { w.mu.Lock(); defer w.mu.Unlock(); w.ready = true },
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- f.Run(ctx) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
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
	w.source.Add(web("1", "", v1alpha1.JobPort{Port: 8888}, v1alpha1.JobPort{Port: 80, Proc: 3}))
	w.eventually(func() bool { return w.service() != nil })
	first := w.service()
	require.Equal(t, map[string]string{Label: Name}, first.Spec.Selector)
	require.Equal(t, "port-8888", first.Spec.Ports[0].Name)
	require.EqualValues(t, 80, first.Spec.Ports[1].Port)
	for i, want := range []string{"web/0:8888 hello", "web/3:80 hello"} {
		text, err := w.ask(i)
		require.NoError(t, err)
		require.Equal(t, want, text)
	}
	w.eventually(func() bool { return len(w.said()) == 2 })
	require.Contains(t, w.said(), "PortNotReached: port 80 of job 3 is not reached: unexpected EOF")

	w.source.Modify(web("1", v1alpha1.PhaseRunning, v1alpha1.JobPort{Port: 80}))
	w.eventually(func() bool { return len(w.service().Spec.Ports) == 1 })
	text, err := w.ask(0)
	require.NoError(t, err)
	require.Equal(t, "web/0:80 hello", text)
	_, err = net.Dial("tcp", "127.0.0.1:"+first.Spec.Ports[0].TargetPort.String())
	require.Error(t, err, "what is not wanted any more is closed")

	w.source.Modify(web("1", v1alpha1.PhaseSucceeded, v1alpha1.JobPort{Port: 80}))
	w.eventually(func() bool { return w.service() == nil })
}

func TestOnlyServicesOfItsOwnAreReplaced(t *testing.T) {
	theirs := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app": "web"}}}
	w := start(t, theirs)
	w.source.Add(web("1", "", v1alpha1.JobPort{Port: 80}))
	w.eventually(func() bool { return len(w.said()) > 0 })
	require.Equal(t,
		"ServiceNameTaken: there is a Service web that is not this HTCJob's; it is left as it is", w.said()[0])
	require.Equal(t, theirs.Labels, w.service().Labels)
}

func TestWhatAnEarlierProcessHasLeftIsMendedBeforeItIsReady(t *testing.T) {
	port := []v1alpha1.JobPort{{Port: 80}}
	old := service(web("1", ""), port, []int32{40000})
	other := service(web("2", ""), port, []int32{40001})
	other.Name = "ended"
	w := start(t, old, other)
	w.source.Add(web("3", "", port...)) // of the same name, but not the same
	w.eventually(func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.ready })
	w.eventually(func() bool { s := w.service(); return s != nil && s.OwnerReferences[0].UID == "3" })
	list, err := w.services.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	require.Empty(t, w.said())
}

func TestANamespaceHasSoManyConnections(t *testing.T) {
	w := start(t)
	w.source.Add(web("1", "", v1alpha1.JobPort{Port: 80}))
	w.eventually(func() bool { return w.service() != nil })
	for range mostAtOnce {
		conn, err := net.Dial("tcp", "127.0.0.1:"+w.service().Spec.Ports[0].TargetPort.String())
		require.NoError(t, err)
		defer conn.Close()
		_, err = io.ReadFull(conn, make([]byte, len("web/0:80 ")))
		require.NoError(t, err)
	}
	text, _ := w.ask(0) // it may be reset
	require.Empty(t, text)
	w.eventually(func() bool { return len(w.said()) == 1 })
	require.Equal(t, "PortNotReached: port 80 of job 0 is not reached: "+
		"there are 32 connections to jobs of this namespace already", w.said()[0])
}
