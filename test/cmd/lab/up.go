package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/lab/cache"
	"htc.cern.ch/htcd/test/lab/root"
)

// progress prints lines with the time since the beginning.
type progress struct {
	mu    sync.Mutex
	began time.Time
}

func newProgress() *progress { return &progress{began: time.Now()} }

func (p *progress) printf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Printf("[%6.1fs] %s\n", time.Since(p.began).Seconds(), fmt.Sprintf(format, args...))
}

// up ensures that the lab runs: it is built and started, or, if it already runs, brought up to date.
func up(ctx context.Context, l *lab.Lab, args []string) error {
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	clone := flags.String("clone", "", "directory of htcd's sources (default: the clone around the current directory)")
	without := flags.Bool("without-htcd", false, "bring up only what htcd works with")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("a lab needs root, for namespaces and mounts")
	}
	var err error
	if *clone == "" {
		*clone, err = lab.CloneAround(".")
	} else {
		*clone, err = filepath.Abs(*clone)
	}
	if err != nil {
		return err
	}
	p := newProgress()
	unlock, err := lockLab(l)
	if err != nil {
		return err
	}
	defer unlock()

	condor, err := cache.CondorVersion(os.Getenv("CONDOR"))
	if err != nil {
		return err
	}
	if base, err := os.UserCacheDir(); err == nil {
		p.printf(
			"bringing up Kubernetes, HTCondor, Kerberos, apptainer and htcd in %s; what they are built of is kept in %s: "+
				"six to eleven minutes the first time on two cores, mostly Kubernetes, and less than one later",
			l.Dir,
			filepath.Join(base, "htcd"),
		)
	}
	b := build{lab: l, clone: *clone, without: *without, node: os.Getenv("LAB_NODE") != "", condor: condor, p: p}
	plan, changed, err := b.run(ctx)
	if err != nil {
		return err
	}
	fingerprint, err := l.Fingerprint()
	if err != nil {
		return err
	}
	id, err := l.Identity()
	switch {
	case errors.Is(err, lab.ErrNotRunning):
	case err != nil:
		return err
	case id.Fingerprint != fingerprint || id.Clone != *clone || id.Node != b.node || id.Condor != condor ||
		b.node && changed:
		p.printf("the lab itself has changed: ending the running one")
		if err := end(ctx, l, p); err != nil {
			return err
		}
	default:
		return refresh(ctx, l, *clone, changed, plan.HTCdArgs, p)
	}
	next := lab.Identity{Fingerprint: fingerprint, Clone: *clone, Node: b.node, Condor: condor}
	if err := begin(ctx, l, plan, next, p); err != nil {
		return err
	}
	p.printf("the lab is up: . %s", l.Path("env"))
	return nil
}

// lockLab lets only one up or down at a time work on a lab.
func lockLab(l *lab.Lab) (unlock func(), err error) {
	f, err := os.OpenFile(l.Path("lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("somebody else is bringing lab %s up or down", l.Dir)
	}
	return func() { f.Close() }, nil
}

// build is what happens before anything runs.
type build struct {
	lab     *lab.Lab
	clone   string
	without bool
	// node asks for a lab with a node, on which htcd is a pod.
	node bool
	// condor is the major version of HTCondor.
	condor string
	p      *progress
}

// run returns what the root is made of, and whether htcd has changed.
func (b build) run(ctx context.Context) (plan root.Plan, changed bool, err error) {
	c, err := cache.Default(b.p.printf)
	if err != nil {
		return plan, false, err
	}
	plan = root.Plan{
		Top: b.lab.Path("run", "root"), HTCdArgs: strings.Fields(os.Getenv("HTCD_ARGS")),
		Images: map[string]string{}, Writable: []string{b.clone, b.lab.Dir},
		Ports: filepath.Join(c.Dir, "ports"), Unpacked: filepath.Join(c.Dir, "apptainer"), WithoutHTCd: b.without,
		Hosts: b.lab.Path("hosts"),
	}
	if err := b.writeHosts(plan.Hosts); err != nil {
		return plan, false, err
	}
	if err := os.MkdirAll(plan.Unpacked, 0o755); err != nil {
		return plan, false, err
	}
	images := strings.Fields(os.Getenv("LAB_IMAGES"))
	if len(images) == 0 {
		images = []string{"centos", "python"}
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		if plan.Debian, err = c.DebianRoot(gctx, b.condor); err != nil {
			return err
		}
		for _, image := range images {
			packages, ok := cache.Images[image]
			if !ok {
				return fmt.Errorf("LAB_IMAGES: no recipe for %q", image)
			}
			if plan.Images[image], err = c.Image(gctx, plan.Debian, image, packages); err != nil {
				return err
			}
		}
		return nil
	})
	if b.node {
		plan.Node = &root.Node{Cgroup: b.lab.Cgroup()}
		g.Go(func() (err error) {
			changed, err = b.buildImage(gctx, c)
			return err
		})
	}
	g.Go(func() error {
		another, err := b.programs(gctx, c, &plan)
		// On a node it is the image that counts; this is what users call.
		if !b.node {
			changed = another
		}
		return err
	})
	if err := g.Wait(); err != nil {
		return plan, false, err
	}
	return plan, changed, links(b.lab, plan)
}

// programs builds what is written in Go, and reports whether htcd has changed. One after the other: builds that run at
// the same time compile the packages they share once each.
func (b build) programs(ctx context.Context, c *cache.Cache, plan *root.Plan) (changed bool, err error) {
	if !b.without {
		if changed, err = buildHTCd(ctx, c, b.lab, b.clone, b.p); err != nil {
			return false, err
		}
	}
	kubernetes := filepath.Join(b.clone, "test", "parts", "kubernetes")
	if plan.Kubernetes, err = c.Kubernetes(ctx, kubernetes); err != nil || !b.node {
		return changed, err
	}
	if plan.Node.Kubernetes, err = c.KubernetesNode(ctx, kubernetes); err != nil {
		return false, err
	}
	if plan.Node.Containerd, err = c.Containerd(
		ctx,
		filepath.Join(b.clone, "test", "parts", "containerd"),
	); err != nil {
		return false, err
	}
	plan.Node.Helm, err = c.Helm(ctx, filepath.Join(b.clone, "test", "parts", "helm"))
	return changed, err
}

// buildHTCd builds htcd and reports whether the program has changed.
func buildHTCd(ctx context.Context, c *cache.Cache, l *lab.Lab, clone string, p *progress) (changed bool, err error) {
	began := time.Now()
	if err := os.MkdirAll(l.Path("htcd", "bin"), 0o755); err != nil {
		return false, err
	}
	file, next := l.Path("htcd", "bin", "htcd"), l.Path("htcd", "bin", "htcd.new")
	if err := c.GoBuild(ctx, "htcd", clone, next, "", "./cmd/htcd"); err != nil {
		return false, fmt.Errorf("build htcd: %w", err)
	}
	p.printf("htcd: built in %.1fs", time.Since(began).Seconds())
	before, _ := os.ReadFile(file)
	after, err := os.ReadFile(next)
	if err != nil {
		return false, err
	}
	// Renamed, because a running program's file cannot be written.
	return string(before) != string(after), os.Rename(next, file)
}

// state is what does not outlive a lab.
var state = []string{
	"run",
	"log",
	"kube",
	"etcd",
	"krb",
	"condor",
	"htcd/data",
	"node",
	"prometheus",
	"store",
	"xrootd",
}

// begin starts the lab and returns when it is ready. If it cannot become ready, or ctx ends, nothing is left running:
// until then the lab depends on the other end of the socket.
func begin(ctx context.Context, l *lab.Lab, plan root.Plan, id lab.Identity, p *progress) error {
	for _, dir := range state {
		if err := os.RemoveAll(l.Path(dir)); err != nil {
			return err
		}
	}
	for _, dir := range []string{"run", "log"} {
		if err := os.MkdirAll(l.Path(dir), 0o755); err != nil {
			return err
		}
	}
	if err := os.Symlink("../condor/log", l.Path("log", "condor")); err != nil {
		return err
	}
	log, err := os.Create(l.Log("supervisor"))
	if err != nil {
		return err
	}
	defer log.Close()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "lab"), os.NewFile(uintptr(pair[1]), "owner")
	conn, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		return err
	}
	defer conn.Close()
	id.Init, err = root.Start(plan, theirs, log, l.Bin("lab"), "init", id.Clone)
	theirs.Close()
	if err != nil {
		return fmt.Errorf("start the lab: %w", err)
	}
	if id.Started, err = lab.StartTime(id.Init); err == nil {
		err = l.SetIdentity(id)
	}
	if err == nil {
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		_, err = lab.ReadEvents(conn, func(line string) { p.printf("%s", line) })
		stop()
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = errors.New("interrupted")
	} else if errors.Is(err, io.EOF) {
		text, readErr := os.ReadFile(l.Log("supervisor"))
		err = errors.Join(fmt.Errorf("%w\n%s", err, text), readErr)
	}
	conn.Close()
	return errors.Join(err, kill(l, id), root.RemoveCgroup(l.Cgroup()))
}

// envFile is the file of variables that people source.
func envFile(l *lab.Lab) string {
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	return "export HTCD_LAB=" + quote(l.Dir) + "\n" +
		"export KUBECONFIG=" + quote(l.Kubeconfig()) + "\n" +
		"export HTCD_LEDGER=" + quote(l.Ledger()) + "\n" +
		"export PATH=" + quote(l.Path("bin")) + ":\"$PATH\"\n"
}

// links makes the lab's commands and its env file.
func links(l *lab.Lab, plan root.Plan) error {
	if err := os.WriteFile(l.Path("env"), []byte(envFile(l)), 0o644); err != nil {
		return err
	}
	programs := map[string]string{"kubectl": filepath.Join(plan.Kubernetes, "kubectl")}
	if plan.Node != nil {
		programs["helm"] = filepath.Join(plan.Node.Helm, "helm")
	}
	text, err := json.Marshal(programs)
	if err != nil {
		return err
	}
	if err := os.WriteFile(l.Path("programs.json"), text, 0o644); err != nil {
		return err
	}
	for _, name := range append([]string{"kubectl", "helm", pluginName, "htcd", "sqlite3"}, condorTools...) {
		err := os.Symlink("lab", l.Bin(name))
		if err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}
