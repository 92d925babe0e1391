package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/lab/root"
)

// Supervisor is the parent of all parts.
type Supervisor struct {
	world parts.World
	plan  root.Plan
	parts map[string]parts.Part
	// order is that of the status table; parts are ended in reverse order.
	order []string
	htcd  *parts.Process
	down  chan struct{}
	once  sync.Once
}

// Run runs the supervisor and returns when the lab should end. Until all parts answer it depends on owner: it reports
// progress there and ends when it is closed.
func Run(world parts.World, plan root.Plan, owner net.Conn) error {
	s := &Supervisor{world: world, plan: plan, parts: map[string]parts.Part{}, down: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		// Nothing is ever sent: this returns when the owner is gone.
		_, _ = io.Copy(io.Discard, owner)
		cancel()
	}()

	listener, err := listen(world.Lab)
	if err == nil {
		err = s.startAll(ctx, progressTo(owner))
	}
	if err != nil {
		_ = json.NewEncoder(owner).Encode(lab.Event{Done: true, Error: err.Error()})
		return err
	}
	go s.serve(listener)
	if err := json.NewEncoder(owner).Encode(lab.Event{Done: true}); err != nil {
		return err
	}
	<-s.down
	return nil
}

// progressTo reports each step with the time it took.
func progressTo(owner net.Conn) func(string) {
	var mu sync.Mutex
	enc := json.NewEncoder(owner)
	return func(line string) {
		mu.Lock()
		defer mu.Unlock()
		_ = enc.Encode(lab.Event{Progress: line})
	}
}

func (s *Supervisor) startAll(ctx context.Context, progress func(string)) error {
	w := s.world
	step := func(name string, f func() error) error {
		began := time.Now()
		if err := f(); err != nil {
			return err
		}
		progress(fmt.Sprintf("%s: ready in %.1fs", name, time.Since(began).Seconds()))
		return nil
	}
	start := func(ctx context.Context, name string) error {
		return step(name, func() error { return s.parts[name].Start(ctx) })
	}

	if err := s.configure(ctx); err != nil {
		return err
	}
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error {
		if err := start(ctx, "registry"); err != nil {
			return err
		}
		return step("images", func() error { return parts.Unpack(ctx, w) })
	})
	all.Go(func() error {
		if err := s.startServers(ctx, step, start); err != nil {
			return err
		}
		if w.Node != nil {
			return s.startNode(ctx, step, start)
		}
		if s.htcd == nil {
			return nil
		}
		return start(ctx, "htcd")
	})
	return all.Wait()
}

// startServers starts everything that htcd works with.
func (s *Supervisor) startServers(
	ctx context.Context,
	step func(string, func() error) error,
	start func(context.Context, string) error,
) error {
	w := s.world
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return start(ctx, "receiver-net") })
	g.Go(func() error {
		if err := start(ctx, "kdc"); err != nil {
			return err
		}
		if err := parts.Tickets(ctx, w); err != nil {
			return err
		}
		return start(ctx, "condor")
	})
	g.Go(func() error {
		for _, name := range []string{"etcd", "apiserver", "controller-manager"} {
			if err := start(ctx, name); err != nil {
				return err
			}
		}
		if s.htcd == nil {
			return nil
		}
		return step("CRD, RBAC, Secret", func() error { return parts.Install(ctx, w) })
	})
	return g.Wait()
}

// startNode makes the lab a node of its cluster, and htcd a pod on it.
func (s *Supervisor) startNode(
	ctx context.Context,
	step func(string, func() error) error,
	start func(context.Context, string) error,
) error {
	w := s.world
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return start(gctx, "scheduler") })
	g.Go(func() error { return start(gctx, "proxy") })
	g.Go(func() error {
		if err := start(gctx, "containerd"); err != nil {
			return err
		}
		if err := step("htcd's image", func() error { return parts.LoadImages(gctx, w) }); err != nil {
			return err
		}
		return start(gctx, "kubelet")
	})
	if err := g.Wait(); err != nil {
		return err
	}
	if s.plan.WithoutHTCd {
		return nil
	}
	if err := step("deploy/base", func() error { return parts.InstallPod(ctx, w) }); err != nil {
		return err
	}
	if err := start(ctx, "ingress"); err != nil {
		return err
	}
	return step("htcd's pod", func() error { return parts.PodReady(ctx, w) })
}

// configureNode writes the files of the parts that only a node needs.
func (s *Supervisor) configureNode() error {
	containerd, err := parts.Containerd(s.world)
	if err != nil {
		return err
	}
	kubelet, err := parts.Kubelet(s.world)
	if err != nil {
		return err
	}
	s.add("scheduler", parts.Scheduler(s.world))
	s.add("proxy", parts.Proxy(s.world))
	s.add("containerd", containerd)
	s.add("kubelet", kubelet)
	if !s.plan.WithoutHTCd {
		s.add("ingress", parts.Ingress(s.world))
	}
	return nil
}

// configure writes every part's files; nothing runs yet.
func (s *Supervisor) configure(ctx context.Context) error {
	w := s.world
	if err := w.Record(); err != nil {
		return err
	}
	if err := parts.Apptainer(); err != nil {
		return err
	}
	apiserver, err := parts.APIServer(w)
	if err != nil {
		return err
	}
	kdc, err := parts.KDC(ctx, w)
	if err != nil {
		return err
	}
	if err := parts.Certificates(w); err != nil {
		return err
	}
	condor, err := parts.Condor(ctx, w)
	if err != nil {
		return err
	}
	schedd2, err := parts.Schedd2(w)
	if err != nil {
		return err
	}
	feed, err := parts.Feed(w)
	if err != nil {
		return err
	}
	pool2, err := parts.Pool2(w)
	if err != nil {
		return err
	}
	prometheus, err := parts.Prometheus(w)
	if err != nil {
		return err
	}
	store, err := parts.Store(w)
	if err != nil {
		return err
	}
	xrootd, err := parts.XRootD(w)
	if err != nil {
		return err
	}
	s.add("etcd", parts.Etcd(w))
	s.add("apiserver", apiserver)
	s.add("controller-manager", parts.ControllerManager(w))
	s.add("kdc", kdc)
	s.add("condor", condor)
	s.add("schedd", parts.NewSchedd(w, condor))
	s.add("schedd2", schedd2)
	s.add("feed", feed)
	s.add("pool2", pool2)
	s.add("registry", parts.Registry(w))
	s.add("receiver-net", parts.ReceiverNet(w))
	s.add("prometheus", prometheus)
	s.add("store", store)
	s.add("xrootd", xrootd)
	if w.Node != nil {
		return s.configureNode()
	}
	if s.plan.WithoutHTCd {
		return nil
	}
	if s.htcd, err = parts.HTCd(w); err != nil {
		return err
	}
	s.htcd.SetExtra(s.plan.HTCdArgs)
	s.add("htcd", s.htcd)
	return nil
}

func (s *Supervisor) add(name string, p parts.Part) {
	s.parts[name] = p
	s.order = append(s.order, name)
}

func listen(l *lab.Lab) (net.Listener, error) {
	path, dir, err := lab.ShortSocketPath(l.ControlSocket())
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	return listener, nil
}
