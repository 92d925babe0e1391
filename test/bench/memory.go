package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"htc.cern.ch/htcd/test/lab"
)

// quiet waits until htcd uses less than a tenth of a core for some seconds, and returns how much it used.
func (d *daemon) quiet(ctx context.Context) (float64, error) {
	for began := time.Now(); ; {
		before, err := d.cpu()
		if err != nil {
			return 0, err
		}
		at := time.Now()
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(5 * time.Second):
		}
		after, err := d.cpu()
		if err != nil {
			return 0, err
		}
		if used := (after - before).Seconds() / time.Since(at).
			Seconds(); used < 0.1 ||
			time.Since(began) > 5*time.Minute {
			return used, nil
		}
	}
}

// settled waits until htcd has checked its HTCJobs and the schedd and has nothing more to do.
func (d *daemon) settled(ctx context.Context, jobs int) error {
	if err := d.p.told(ctx, d.p.ours, jobs, hasPhase); err != nil {
		return err
	}
	if _, err := d.pass(ctx, 0); err != nil {
		return err
	}
	_, err := d.quiet(ctx)
	return err
}

// idle measures htcd's resident size with nothing to do, and the programs that it starts all the same.
func idle(ctx context.Context, p *place, _ int) (figures []figure, err error) {
	data, err := p.dir("htcd", "data")
	if err != nil {
		return nil, err
	}
	d, err := p.startHtcd(ctx, data, "--namespace", p.ours)
	if err != nil {
		return nil, err
	}
	defer d.end(&err)
	if _, err := d.pass(ctx, 0); err != nil {
		return nil, err
	}
	if _, err := d.quiet(ctx); err != nil {
		return nil, err
	}
	size, sizeErr := d.status("VmRSS")
	own, ownErr := d.status("RssAnon")
	if err := errors.Join(sizeErr, ownErr, d.save("idle.heap.pprof", "heap")); err != nil {
		return nil, err
	}
	const minutes = 3
	before, err := d.starts(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(minutes * time.Minute):
	}
	after, err := d.starts(ctx)
	if err != nil {
		return nil, err
	}
	return []figure{
		{ours: size / 1e6, unit: "MB", aim: "40 MB",
			note: fmt.Sprintf("%.1f MB of it its own, the rest pages of the program's file", own/1e6)},
		{what: "programs started", ours: (after - before) / minutes, unit: "/min"},
	}, nil
}

// memory measures htcd's resident size with n HTCJobs of 100 procs, a tenth of which are open. The floor is the
// ledger's size.
func memory(ctx context.Context, p *place, n int) (figures []figure, err error) {
	data, err := p.dir("htcd", "data")
	if err != nil {
		return figures, err
	}
	jobs, err := p.create(ctx, p.ours, "known", n, procsPerJob)
	if err != nil {
		return figures, err
	}
	open, ended := jobs[:n/10], jobs[n/10:]
	clusters, err := p.inQueue(ctx, open, procsPerJob)
	if err != nil {
		return figures, err
	}
	if err := p.fill(
		ctx,
		data,
		open,
		filling{cluster: func(i int) int { return clusters[i] }, procs: procsPerJob},
	); err != nil {
		return figures, err
	}
	if err := p.fill(
		ctx,
		data,
		ended,
		filling{cluster: func(i int) int { return firstCluster + i }, procs: procsPerJob, ended: true},
	); err != nil {
		return figures, err
	}
	d, err := p.startHtcd(ctx, data, "--namespace", p.ours)
	if err != nil {
		return figures, err
	}
	defer d.end(&err)
	if err := p.told(ctx, p.ours, n, hasPhase); err != nil {
		return figures, err
	}
	if _, err := d.pass(ctx, d.passed()+1); err != nil {
		return figures, err
	}
	used, err := d.quiet(ctx)
	if err != nil {
		return figures, err
	}
	done := d.profile("memory", 20)
	size, err := d.status("VmRSS")
	if err != nil {
		return figures, err
	}
	most, err := d.status("VmHWM")
	if err != nil {
		return figures, err
	}
	if err := d.save("memory.heap.pprof", "heap"); err != nil {
		return figures, err
	}
	done()
	info, err := os.Stat(filepath.Join(data, "sqlite", "htcjobs.db"))
	if err != nil {
		return figures, err
	}
	return append(
		figures,
		figure{
			what:  fmt.Sprintf("%d procs", n*procsPerJob),
			ours:  size / 1e6,
			floor: float64(info.Size()) / 1e6,
			unit:  "MB",
			aim:   "600 MB",
			note:  fmt.Sprintf("at most %.0f MB; %.0f %% of a core at rest", most/1e6, 100*used),
		},
	), nil
}

// start measures from exec to ready with n rows in HTCJobs of 100 procs. The floor opens and scans the file.
func start(ctx context.Context, p *place, n int) (figures []figure, err error) {
	data, err := p.dir("htcd", "data")
	if err != nil {
		return nil, err
	}
	jobs, err := p.create(ctx, p.ours, "known", n/procsPerJob, procsPerJob)
	if err != nil {
		return nil, err
	}
	if err := p.fill(
		ctx,
		data,
		jobs,
		filling{cluster: func(i int) int { return firstCluster + i }, procs: procsPerJob, ended: true},
	); err != nil {
		return nil, err
	}
	d, err := p.startHtcd(ctx, data, append(silent, "--namespace", p.ours)...)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(p.told(ctx, p.ours, len(jobs), hasPhase), d.stop()); err != nil {
		return nil, err
	}
	var ours, floor, bare []time.Duration
	for range 5 {
		d, err := p.startHtcd(ctx, data, append(silent, "--namespace", p.ours)...)
		if err != nil {
			return nil, err
		}
		ours = append(ours, d.took)
		_, err = d.pass(ctx, 0)
		if err := errors.Join(err, d.stop()); err != nil {
			return nil, err
		}
		began := time.Now()
		if err := scan(ctx, filepath.Join(data, "sqlite", "htcjobs.db"), n); err != nil {
			return nil, err
		}
		floor = append(floor, time.Since(began))
		took, err := p.timed(ctx, "htcd", p.lab.Path("htcd", "bin", "htcd"), "version")
		if err != nil {
			return nil, err
		}
		bare = append(bare, took)
	}
	return []figure{{ours: median(ours), floor: median(floor), unit: "s", aim: "3x",
		note: fmt.Sprintf("median of 5, without a Lease; htcd version alone takes %.3f s", median(bare))}}, nil
}

// scan opens the file and reads every row.
func scan(ctx context.Context, path string, want int) (err error) {
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.QueryContext(
		ctx,
		`SELECT htcjobName, jobId, status, tempDir, proc, jobStatus, exitCode, reason, message, source, changed FROM htcjobs`,
	)
	if err != nil {
		return err
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		var columns [11]any
		var at [11]any
		for i := range columns {
			at[i] = &columns[i]
		}
		if err := rows.Scan(at[:]...); err != nil {
			return err
		}
		n++
	}
	if n != want {
		return fmt.Errorf("%d rows instead of %d", n, want)
	}
	return rows.Err()
}

// requests counts the requests to the apiserver per HTCJob from its creation to its end, by the apiserver's own count,
// minus this program's requests; without and with deploy/components/finalizer.
func requests(ctx context.Context, p *place, n int) (figures []figure, err error) {
	plain, err := p.requestsOf(ctx, "run", n)
	if err != nil {
		return nil, err
	}
	if err := p.withFinalizer(ctx); err != nil {
		return []figure{plain}, err
	}
	defer func() {
		api, all := p.core.AdmissionregistrationV1(), context.WithoutCancel(ctx)
		err = errors.Join(
			err,
			api.MutatingAdmissionPolicyBindings().Delete(all, "htcd-finalizer", metav1.DeleteOptions{}),
			api.MutatingAdmissionPolicies().Delete(all, "htcd-finalizer", metav1.DeleteOptions{}),
		)
	}()
	early, err := p.requestsOf(ctx, "early", n, "--finalizer-at-creation")
	early.what = "with the finalizer at creation"
	return []figure{plain, early}, err
}

// withFinalizer has the apiserver give our namespace's HTCJobs their finalizer, and waits until it does.
func (p *place) withFinalizer(ctx context.Context) error {
	clone, err := lab.CloneAround(p.lab.Dir)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(clone, "deploy", "components", "finalizer", "finalizer.yaml"))
	if err != nil {
		return err
	}
	parts := strings.Split(string(text), "\n---\n")
	var policy admission.MutatingAdmissionPolicy
	var binding admission.MutatingAdmissionPolicyBinding
	if err := errors.Join(
		yaml.Unmarshal([]byte(parts[0]), &policy),
		yaml.Unmarshal([]byte(parts[1]), &binding),
	); err != nil {
		return err
	}
	binding.Spec.MatchResources = &admission.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": p.ours}},
	}
	api := p.core.AdmissionregistrationV1()
	if _, err := api.MutatingAdmissionPolicies().Create(ctx, &policy, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := api.MutatingAdmissionPolicyBindings().Create(ctx, &binding, metav1.CreateOptions{}); err != nil {
		return err
	}
	jobs := p.jobs.HTCJobs(p.ours)
	for {
		job, err := jobs.Create(ctx, htcjob("probe", 1), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if err := p.deleteAll(ctx, p.ours); err != nil || len(job.Finalizers) > 0 {
			return err
		}
	}
}

func (p *place) requestsOf(ctx context.Context, name string, n int, flags ...string) (f figure, err error) {
	d, err := p.working(ctx, flags...)
	if err != nil {
		return f, err
	}
	defer d.end(&err)
	before, err := p.counted(ctx)
	if err != nil {
		return f, err
	}
	jobs := p.jobs.HTCJobs(p.ours)
	err = inParallel(n, 8, func(i int) error {
		job := htcjob(fmt.Sprintf("%s-%05d", name, i), 1)
		job.Spec.HTCOpts = ""
		_, err := jobs.Create(ctx, job, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return f, err
	}
	deadline, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	own, ended := 0, 0
	for ended < n {
		ended = 0
		list, err := jobs.List(deadline, metav1.ListOptions{})
		if err != nil {
			return f, err
		}
		own++
		for _, job := range list.Items {
			if job.Status.Phase.Terminal() {
				ended++
			}
		}
		select {
		case <-deadline.Done():
			return f, fmt.Errorf("%d of %d ended: %w", ended, n, deadline.Err())
		case <-time.After(time.Second):
		}
	}
	after, err := p.counted(ctx)
	if err != nil {
		return f, err
	}
	var words []string
	sum := 0
	for kind, count := range after {
		count -= before[kind]
		switch kind {
		case "htcjobs POST":
			count -= n
		case "htcjobs LIST":
			count -= own
		}
		if count > 0 {
			sum += count
			words = append(words, fmt.Sprintf("%s %.2f", kind, float64(count)/float64(n)))
		}
	}
	slices.Sort(words)
	return figure{
			ours: float64(sum) / float64(n),
			unit: "requests",
			aim:  "4",
			note: strings.Join(words, ", "),
		}, p.deleteAll(
			ctx,
			p.ours,
		)
}

// counted reads apiserver_request_total for the resources that htcd uses.
func (p *place) counted(ctx context.Context) (map[string]int, error) {
	body, err := p.core.Discovery().RESTClient().Get().AbsPath("/metrics").Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	counts := map[string]int{}
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		labels, value, found := strings.Cut(strings.TrimPrefix(lines.Text(), "apiserver_request_total{"), "} ")
		if !found || !strings.HasPrefix(lines.Text(), "apiserver_request_total{") {
			continue
		}
		label := func(name string) string {
			_, rest, _ := strings.Cut(","+labels, ","+name+`="`)
			v, _, _ := strings.Cut(rest, `"`)
			return v
		}
		resource := label("resource")
		if resource != "htcjobs" && resource != "events" && resource != "secrets" {
			continue
		}
		kind := resource
		if sub := label("subresource"); sub != "" {
			kind += "/" + sub
		}
		var n float64
		if _, err := fmt.Sscan(value, &n); err != nil {
			return nil, err
		}
		counts[kind+" "+label("verb")] += int(n)
	}
	return counts, lines.Err()
}
