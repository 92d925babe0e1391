package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

// stage writes n sandboxes like htcd's, with this many procs each, and returns their directories.
func (p *place) stage(n, procs int, items ...string) ([]string, error) {
	root, err := p.dir("robot", "raw")
	if err != nil {
		return nil, err
	}
	dirs := make([]string, n)
	for i := range dirs {
		dirs[i] = filepath.Join(root, fmt.Sprint(i))
		if err := os.Mkdir(dirs[i], 0o755); err != nil {
			return nil, err
		}
		s, err := submit.Description{
			Tag: condor.Tag{
				UID:       fmt.Sprintf("raw-%d", i),
				Attempt:   1,
				Namespace: p.other,
				Name:      "raw",
			},
			BatchName:   "raw",
			Queue:       procs,
			Options:     "requirements = false\n",
			Image:       fmt.Sprintf("docker://127.0.0.1:%d/centos", p.world.Ports.Registry),
			Command:     "bash",
			Source:      "exit 0\n",
			Items:       items,
			CallbackURL: fmt.Sprintf("https://127.0.0.1:%d/cloudevents", p.world.Ports.ReceiverNet),
			Binds:       []string{"/cvmfs"},
		}.Render()
		if err != nil {
			return nil, err
		}
		if err := submit.Stage(dirs[i], s, token); err != nil {
			return nil, err
		}
	}
	return dirs, p.give("robot", root)
}

// submitRaw runs condor_submit in every directory, atOnce at a time.
func (p *place) submitRaw(ctx context.Context, dirs []string, atOnce int) (time.Duration, error) {
	began := time.Now()
	err := inParallel(len(dirs), atOnce, func(i int) error {
		_, err := p.as(ctx, "robot", dirs[i], nil, "condor_submit", "-spool", "-terse", "job.sub")
		return err
	})
	return time.Since(began), err
}

// submitOurs creates HTCJobs and waits until the status of every one has its ids.
func (p *place) submitOurs(
	ctx context.Context,
	prefix string,
	n, procs int,
	change ...func(*v1alpha1.HTCJob),
) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	var mu sync.Mutex
	seen := map[string]bool{}
	all := make(chan struct{})
	stop, err := p.follow(ctx, p.ours, func(job *v1alpha1.HTCJob) {
		mu.Lock()
		defer mu.Unlock()
		if len(job.Status.JobID) > 0 && len(job.Name) > len(prefix) && job.Name[:len(prefix)] == prefix &&
			!seen[job.Name] {
			seen[job.Name] = true
			if len(seen) == n {
				close(all)
			}
		}
	})
	if err != nil {
		return 0, err
	}
	defer stop()
	began := time.Now()
	if _, err := p.create(ctx, p.ours, prefix, n, procs, change...); err != nil {
		return 0, err
	}
	select {
	case <-all:
		return time.Since(began), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("%d of %d have ids: %w", len(seen), n, ctx.Err())
	}
}

// working starts an htcd of ours on an empty ledger, and returns when it has a ticket and an answer from the schedd.
func (p *place) working(ctx context.Context, flags ...string) (*daemon, error) {
	data, err := p.dir("htcd", "data")
	if err != nil {
		return nil, err
	}
	d, err := p.startHtcd(ctx, data, append(flags, "--namespace", p.ours)...)
	if err != nil {
		return nil, err
	}
	if _, err := p.submitOurs(ctx, "warm", 1, 1); err != nil {
		return nil, errors.Join(err, d.stop())
	}
	return d, nil
}

// submits compares n HTCJobs, created at once, with n runs of condor_submit -spool at the degree of parallelism that is
// fastest.
func submits(ctx context.Context, p *place, n int) (figures []figure, err error) {
	d, err := p.working(ctx, silent...)
	if err != nil {
		return nil, err
	}
	defer d.end(&err)
	best, took, atOnce := 0.0, []time.Duration{}, 0
	turns := []int{4, 2, 4}
	used := [2]usage{{}, {}}
	half := func(i int, f func() (time.Duration, error)) (time.Duration, error) {
		before, err := cpuUsage()
		if err != nil {
			return 0, err
		}
		took, err := f()
		if err != nil {
			return 0, err
		}
		after, err := cpuUsage()
		used[i].add(after.since(before))
		return took, err
	}
	done := d.profile("submits", 10)
	for turn, parallel := range turns {
		mine, err := half(
			0,
			func() (time.Duration, error) { return p.submitOurs(ctx, fmt.Sprintf("turn%d", turn), n, 1) },
		)
		if err != nil {
			return nil, err
		}
		took = append(took, mine)
		dirs, err := p.stage(n, 1)
		if err != nil {
			return nil, err
		}
		raw, err := half(1, func() (time.Duration, error) { return p.submitRaw(ctx, dirs, parallel) })
		if err != nil {
			return nil, err
		}
		if rate := float64(n) / raw.Seconds(); rate > best {
			best, atOnce = rate, parallel
		}
	}
	done()
	fmt.Println(perItem("one of submits", used[0], used[1], len(turns)*n))
	fastest := quantile(took, 0)
	return []figure{
		{
			ours:  float64(n) / fastest,
			floor: best,
			unit:  "/s",
			aim:   "0.70",
			note:  fmt.Sprintf("best of 3 each; raw with %d at once", atOnce),
		},
	}, nil
}

// largeQueue compares one HTCJob of n with one raw condor_submit -spool of n.
func largeQueue(ctx context.Context, p *place, n int) (figures []figure, err error) {
	d, err := p.working(ctx, silent...)
	if err != nil {
		return nil, err
	}
	defer d.end(&err)
	var ours, floor []time.Duration
	done := d.profile("large", 20)
	for turn := range 2 {
		dirs, err := p.stage(1, n)
		if err != nil {
			return nil, err
		}
		raw, err := p.submitRaw(ctx, dirs, 1)
		if err != nil {
			return nil, err
		}
		floor = append(floor, raw)
		mine, err := p.submitOurs(ctx, fmt.Sprintf("turn%d", turn), 1, n)
		if err != nil {
			return nil, err
		}
		ours = append(ours, mine)
	}
	done()
	return []figure{
		{ours: quantile(ours, 0), floor: quantile(floor, 0), unit: "s", aim: "1.05x", note: "best of 2 each"},
	}, nil
}

// manyItems compares one HTCJob of n items, which are in a table, with one of as many jobs without, and with raw
// condor_submit -spool of the same sandboxes.
func manyItems(ctx context.Context, p *place, n int) (figures []figure, err error) {
	d, err := p.working(ctx, silent...)
	if err != nil {
		return nil, err
	}
	defer d.end(&err)
	texts := make([]string, n)
	table := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "points"},
		Data:       map[string]string{"points.csv": "ENERGY,SEED\n"},
	}
	for i := range texts {
		texts[i] = fmt.Sprintf("ENERGY=13000\nSEED=%d\n", i)
		table.Data["points.csv"] += fmt.Sprintf("13000,%d\n", i)
	}
	if _, err := p.core.CoreV1().ConfigMaps(p.ours).Create(ctx, table, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	took := map[string][]time.Duration{}
	used := map[string]usage{"plain": {}, "table": {}}
	raw := func(name string, texts ...string) error {
		dirs, err := p.stage(1, n, texts...)
		if err != nil {
			return err
		}
		one, err := p.submitRaw(ctx, dirs, 1)
		took[name] = append(took[name], one)
		return err
	}
	ours := func(name string, change ...func(*v1alpha1.HTCJob)) error {
		before, err := cpuUsage()
		if err != nil {
			return err
		}
		one, err := p.submitOurs(ctx, fmt.Sprintf("%s%d", name, len(took[name])), 1, n, change...)
		if err != nil {
			return err
		}
		took[name] = append(took[name], one)
		after, err := cpuUsage()
		used[name].add(after.since(before))
		return err
	}
	const turns = 2
	for range turns {
		err := errors.Join(
			raw("floor"),
			ours("plain"),
			raw("rawitems", texts...),
			ours("table", func(job *v1alpha1.HTCJob) {
				job.Spec.Script.Queue = nil
				job.Spec.ItemsFrom = &v1alpha1.ItemsFrom{
					ConfigMapKeyRef: v1alpha1.KeyRef{Name: table.Name, Key: "points.csv"},
				}
			}),
		)
		if err != nil {
			return nil, err
		}
	}
	fmt.Println(perItem("1,000 items, beside queue: 1000", used["table"], used["plain"], turns*n/1000))
	best := func(name string) float64 { return quantile(took[name], 0) }
	const note = "best of 2 each"
	return []figure{
		{what: "beside a plain condor_submit", ours: best("table"), floor: best("floor"), unit: "s", note: note},
		{
			what:  "beside condor_submit of the same files",
			ours:  best("table"),
			floor: best("rawitems"),
			unit:  "s",
			aim:   "1.05x",
			note:  note,
		},
		{what: "beside queue: n", ours: best("table"), floor: best("plain"), unit: "s", aim: "1.05x", note: note},
	}, nil
}

// fair creates n HTCJobs in one namespace and then one in another, and waits for that one's ids.
func fair(ctx context.Context, p *place, n int) (figures []figure, err error) {
	data, err := p.dir("htcd", "data")
	if err != nil {
		return nil, err
	}
	d, err := p.startHtcd(ctx, data, silent...)
	if err != nil {
		return nil, err
	}
	defer d.end(&err)
	if _, err := p.submitOurs(ctx, "warm", 1, 1); err != nil {
		return nil, err
	}
	if _, err := p.create(ctx, p.other, "burst", n, 1); err != nil {
		return nil, err
	}
	var waits []time.Duration
	for i := range 5 {
		took, err := p.submitOurs(ctx, fmt.Sprintf("single%d", i), 1, 1)
		if err != nil {
			return nil, err
		}
		waits = append(waits, took)
	}
	list, err := p.waiting(ctx)
	if err != nil {
		return nil, err
	}
	return []figure{
		{
			ours: quantile(waits, 1),
			unit: "s",
			aim:  "2 s",
			note: fmt.Sprintf("longest of 5, one after the other; %d of the others had no ids yet after that", list),
		},
	}, nil
}

// waiting returns how many HTCJobs of the other namespace have no ids.
func (p *place) waiting(ctx context.Context) (int, error) {
	jobs, err := p.list(ctx, p.other)
	n := 0
	for _, job := range jobs {
		if len(job.Status.JobID) == 0 {
			n++
		}
	}
	return n, err
}
