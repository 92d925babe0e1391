package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/lab/parts"
)

// place is where rows are measured: the lab without its htcd, and two namespaces.
type place struct {
	lab     *lab.Lab
	world   parts.World
	core    *kubernetes.Clientset
	jobs    *v1alpha1.Client
	ours    string // the namespace that our htcd watches
	other   string // one that it does not watch, unless it watches all
	results string
	schedd  string // its name

	mu   sync.Mutex
	dirs []string // made by dir
	made int      // how many were ever made

	restore func() error // the lab's configuration of HTCondor
}

func newPlace(ctx context.Context, running *lab.Lab, results string) (*place, error) {
	world, err := parts.Open(running)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", running.Kubeconfig())
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.WarningHandlerWithContext = rest.NoWarnings{}
	p := &place{lab: running, world: world, results: results}
	if p.core, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if p.jobs, err = v1alpha1.NewClient(config); err != nil {
		return nil, err
	}
	for _, namespace := range []*string{&p.ours, &p.other} {
		made, err := p.core.CoreV1().Namespaces().Create(
			ctx,
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}},
			metav1.CreateOptions{},
		)
		if err != nil {
			return nil, err
		}
		*namespace = made.Name
	}
	if p.schedd, err = p.as(ctx, "admin", "", nil, "condor_status", "-schedd", "-af", "Name"); err != nil {
		return nil, err
	}
	p.schedd = strings.TrimSpace(p.schedd)
	if p.restore, err = p.configure(raised); err != nil {
		return nil, err
	}
	return p, running.Part("htcd").Stop(ctx)
}

// close restores the lab.
func (p *place) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	p.tidy(ctx)
	for _, namespace := range []string{p.ours, p.other} {
		if err := p.core.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{}); err != nil {
			fmt.Fprintln(os.Stderr, "bench: delete namespace:", err)
		}
	}
	if err := p.restore(); err != nil {
		fmt.Fprintln(os.Stderr, "bench: restore HTCondor's configuration:", err)
	}
	if err := p.lab.Part("htcd").Start(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench: start the lab's htcd:", err)
	}
}

// tidy removes every HTCJob and HTCWorkflow, every job, and everything written. No htcd is running.
func (p *place) tidy(ctx context.Context) {
	var group errgroup.Group
	group.Go(func() error {
		for {
			left, err := p.queued(ctx)
			if err != nil || left == 0 {
				return err
			}
			// Without -forcex, completed jobs kept for their output would stay.
			for _, how := range [][]string{{"-all"}, {"-forcex", "-all"}} {
				_, _ = p.as(ctx, "admin", "", nil, "condor_rm", how...) // fails if nothing is left
			}
		}
	})
	for _, namespace := range []string{p.ours, p.other} {
		group.Go(func() error { return errors.Join(p.deleteAll(ctx, namespace), p.deleteWorkflows(ctx, namespace)) })
	}
	err := group.Wait()
	for _, dir := range p.dirs {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	p.dirs = nil
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: tidy up:", err)
	}
}

func (p *place) deleteAll(ctx context.Context, namespace string) error {
	jobs := p.jobs.HTCJobs(namespace)
	for {
		list, err := jobs.List(ctx, metav1.ListOptions{Limit: 500})
		if err != nil || len(list.Items) == 0 {
			return err
		}
		err = inParallel(len(list.Items), 16, func(i int) error {
			job := list.Items[i]
			if len(job.Finalizers) > 0 {
				if _, err := jobs.Patch(
					ctx,
					job.Name,
					types.MergePatchType,
					[]byte(`{"metadata":{"finalizers":null}}`),
					metav1.PatchOptions{},
				); err != nil {
					return err
				}
			}
			return jobs.Delete(ctx, job.Name, metav1.DeleteOptions{})
		})
		if err != nil {
			return err
		}
	}
}

// inParallel calls f for 0 to n-1, at most atOnce at a time.
func inParallel(n, atOnce int, f func(int) error) error {
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i := range n {
		group.Go(func() error { return f(i) })
	}
	return group.Wait()
}

// deleteWorkflows deletes the HTCWorkflows of a namespace.
func (p *place) deleteWorkflows(ctx context.Context, namespace string) error {
	flows := p.jobs.Workflows(namespace)
	list, err := flows.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, w := range list.Items {
		if len(w.Finalizers) > 0 {
			if _, err := flows.Patch(
				ctx,
				w.Name,
				types.MergePatchType,
				[]byte(`{"metadata":{"finalizers":null}}`),
				metav1.PatchOptions{},
			); err != nil {
				return err
			}
		}
		if err := flows.Delete(ctx, w.Name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// dir makes an empty directory that belongs to an account.
func (p *place) dir(account, name string) (string, error) {
	p.mu.Lock()
	p.made++
	dir := p.lab.Path("bench", fmt.Sprintf("%s-%d-%d", name, os.Getpid(), p.made))
	p.dirs = append(p.dirs, dir)
	p.mu.Unlock()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return dir, p.give(account, dir)
}

// give gives everything under dir to an account.
func (p *place) give(account, dir string) error {
	uid, gid, err := parts.Account(account)
	if err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chown(path, int(uid), int(gid)))
	})
}

// command returns a program to run as an account of the lab, with its ticket, in dir.
func (p *place) command(ctx context.Context, account, dir, name string, args ...string) (*exec.Cmd, error) {
	uid, gid, err := parts.Account(account)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, parts.Environment(p.lab, account)
	if dir == "" {
		cmd.Dir = p.lab.Dir
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	return cmd, nil
}

// as runs a command and returns its output. With discard the output goes to /dev/null.
func (p *place) as(
	ctx context.Context,
	account, dir string,
	discard *os.File,
	name string,
	args ...string,
) (string, error) {
	cmd, err := p.command(ctx, account, dir, name, args...)
	if err != nil {
		return "", err
	}
	if discard != nil {
		cmd.Stdout = discard
		return "", cmd.Run()
	}
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(out), fmt.Errorf("%s: %w: %s", name, err, exit.Stderr)
	}
	return string(out), err
}

// timed returns how long a command takes, with its output going to /dev/null.
func (p *place) timed(ctx context.Context, account, name string, args ...string) (time.Duration, error) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	began := time.Now()
	_, err = p.as(ctx, account, "", null, name, args...)
	return time.Since(began), err
}
