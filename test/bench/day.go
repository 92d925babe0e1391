package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// kind is what a day is made of: ten of a burst of ten.
type kind struct {
	name   string
	source string
	opts   string
	ends   v1alpha1.Phase // empty: it never starts, and is deleted while it waits
}

var (
	succeeds = kind{"succeeds", "exit 0\n", "", v1alpha1.PhaseSucceeded}
	fails    = kind{"fails", "exit 3\n", "", v1alpha1.PhaseFailed}
	refused  = kind{"refused", "exit 0\n", "executable = /bin/sh\n", v1alpha1.PhaseFailed}
	waits    = kind{"waits", "exit 0\n", "requirements = false\n", ""}
	kinds    = []kind{succeeds, waits, refused, waits, fails, waits, waits, refused, waits, waits}
)

// one is an HTCJob of the day.
type one struct {
	kind    kind
	phase   v1alpha1.Phase // its last
	uid     string
	told    time.Time // when its end was seen in its status
	deleted bool
}

// diary is what was seen of the day. It is safe for concurrent use.
type diary struct {
	mu    sync.Mutex
	jobs  map[string]*one
	wrong []string
	idle  chan string // keys of those that wait now and are to be deleted
}

func (d *diary) see(job *v1alpha1.HTCJob) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := job.Namespace + "/" + job.Name
	o := d.jobs[key]
	if o == nil {
		return
	}
	o.uid = string(job.UID)
	if o.phase.Terminal() && job.Status.Phase != o.phase {
		d.wrong = append(d.wrong, fmt.Sprintf("%s (%s) was %s and is %s", key, o.kind.name, o.phase, job.Status.Phase))
	}
	o.phase = job.Status.Phase
	switch {
	case o.phase.Terminal() && o.told.IsZero():
		o.told = time.Now()
	case o.kind.ends == "" && o.phase == v1alpha1.PhaseIdle && !o.deleted:
		o.deleted = true
		d.idle <- key
	}
}

// open returns how many have neither ended nor been deleted, and how many have not been sent yet.
func (d *diary) open() (open, unsent int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range d.jobs {
		if !o.phase.Terminal() && !o.deleted {
			open++
			if o.phase == "" || o.phase == v1alpha1.PhasePending || o.phase == v1alpha1.PhaseSubmitting {
				unsent++
			}
		}
	}
	return open, unsent
}

// day sends n HTCJobs in 25 bursts to up to 200 namespaces, the next one as soon as all of the one before have ended or
// been deleted. At most 2 hours later all must have ended as their kind does, once, and nothing may be left of them:
// not in Kubernetes, in HTCondor or in the ledger.
func day(ctx context.Context, p *place, n int) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Hour)
	defer cancel()
	data, err := p.dir("htcd", "data")
	if err != nil {
		return err
	}
	h, err := p.startHtcd(ctx, data)
	if err != nil {
		return err
	}
	defer h.end(&err)
	namespaces, err := p.namespaces(ctx, max(min(200, n/10), 1))
	defer func() {
		for _, name := range namespaces {
			err = errors.Join(
				err,
				p.core.CoreV1().Namespaces().Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{}),
			)
		}
	}()
	if err != nil {
		return err
	}
	ttl := max(600*n/50_000, 30)
	d := &diary{jobs: map[string]*one{}, idle: make(chan string, n)}
	stop, err := p.follow(ctx, "", d.see)
	if err != nil {
		return err
	}
	defer stop()
	go p.deleteIdle(ctx, d)
	book, err := sql.Open(
		"sqlite",
		"file:"+filepath.Join(data, "sqlite", "htcjobs.db")+"?mode=ro&_pragma=busy_timeout(10000)",
	)
	if err != nil {
		return err
	}
	defer book.Close()

	fmt.Println(sampleHead)
	var samples []sample
	ended, quiet := map[string]time.Time{}, map[string]bool{} // by UID: when, and whether between two bursts
	burst, sent, began, looked := max(n/25, 1), 0, time.Now(), time.Time{}
	for {
		open, unsent := d.open()
		if sent < n && open == 0 {
			if err := p.burst(ctx, d, namespaces, sent, min(burst, n-sent), ttl); err != nil {
				return err
			}
			sent = min(sent+burst, n)
			continue
		}
		if err := ends(ctx, book, ended, func(uid string) { quiet[uid] = unsent == 0 }); err != nil {
			return err
		}
		list, err := p.core.CoreV1().RESTClient().Get().AbsPath(
			"/apis/htc.cern.ch/v1alpha1/htcjobs",
		).Param(
			"limit",
			"1",
		).DoRaw(
			ctx,
		)
		if err != nil {
			return err
		}
		if time.Since(looked) >= max(time.Minute*time.Duration(n)/50_000, 5*time.Second) {
			looked = time.Now()
			s, err := p.sample(ctx, h, data, time.Since(began))
			if err != nil {
				return err
			}
			samples = append(samples, s)
			fmt.Println(s.line(fmt.Sprintf("%d open of %d", open, sent)))
		}
		if sent == n && open == 0 && strings.Contains(string(list), `"items":[]`) {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf(
				"%d are open after %s: %w",
				open,
				time.Since(began).Round(time.Second),
				errors.Join(append(d.verdict(), ctx.Err())...),
			)
		case err := <-h.ended:
			h.ended <- err
			return fmt.Errorf("htcd ended: %w", err)
		case <-time.After(time.Second):
		}
	}
	wrong := append(d.verdict(), p.leftovers(ctx, d, book)...)
	var late, all []time.Duration
	d.mu.Lock()
	for _, o := range d.jobs {
		at, known := ended[o.uid]
		if !known || o.told.IsZero() || o.kind.opts != "" {
			continue
		}
		all = append(all, max(o.told.Sub(at), 0))
		if quiet[o.uid] {
			late = append(late, all[len(all)-1])
		}
	}
	d.mu.Unlock()
	fmt.Printf(
		"\n%d HTCJobs of %d namespaces in %s; end to status outside of bursts: p50 %.3f s, p99 %.3f s (%d of them), aim 1 s; of all p99 %.3f s (%d)\n",
		n,
		len(namespaces),
		time.Since(
			began,
		).Round(
			time.Second,
		),
		quantile(late, 0.5),
		quantile(late, 0.99),
		len(late),
		quantile(all, 0.99),
		len(all),
	)
	rising := judge(samples)
	fmt.Println("rising:", strings.Join(rising, "; "))
	if n >= 10_000 && len(rising) > 0 {
		wrong = append(wrong, errors.New("not level: "+strings.Join(rising, "; ")))
	}
	if len(wrong) == 0 {
		fmt.Println("nothing lost, doubled, wrong or left over")
	}
	return errors.Join(wrong...)
}

func (p *place) namespaces(ctx context.Context, n int) (names []string, err error) {
	for range n {
		made, err := p.core.CoreV1().Namespaces().Create(
			ctx,
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "day-"}},
			metav1.CreateOptions{},
		)
		if err != nil {
			return names, err
		}
		names = append(names, made.Name)
	}
	return names, nil
}

// burst creates n HTCJobs, counted from first.
func (p *place) burst(ctx context.Context, d *diary, namespaces []string, first, n, ttl int) error {
	return inParallel(n, 16, func(i int) error {
		k := kinds[(first+i)%len(kinds)]
		job := htcjob(fmt.Sprintf("%s-%06d", k.name, first+i), 1)
		job.Spec.Script.Source, job.Spec.HTCOpts = k.source, k.opts
		job.Spec.TTLSecondsAfterFinished = new(int32(ttl))
		namespace := namespaces[(first+i)%len(namespaces)]
		d.mu.Lock()
		d.jobs[namespace+"/"+job.Name] = &one{kind: k}
		d.mu.Unlock()
		_, err := p.jobs.HTCJobs(namespace).Create(ctx, job, metav1.CreateOptions{})
		return err
	})
}

func (p *place) deleteIdle(ctx context.Context, d *diary) {
	for {
		select {
		case key := <-d.idle:
			namespace, name, _ := strings.Cut(key, "/")
			if err := p.jobs.HTCJobs(namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil &&
				!apierrors.IsNotFound(err) {
				fmt.Println("delete", key, err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// ends reads from the ledger when runs ended, to the millisecond.
func ends(ctx context.Context, book *sql.DB, at map[string]time.Time, first func(uid string)) error {
	rows, err := book.QueryContext(ctx, `SELECT uid, ended FROM runs WHERE ended > 0`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var uid string
		var ms int64
		if err := rows.Scan(&uid, &ms); err != nil {
			return err
		}
		if _, known := at[uid]; !known {
			at[uid] = time.UnixMilli(ms)
			first(uid)
		}
	}
	return rows.Err()
}

// verdict returns what did not end as its kind does.
func (d *diary) verdict() (wrong []error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.wrong {
		wrong = append(wrong, errors.New(w))
	}
	for key, o := range d.jobs {
		if o.kind.ends != "" && o.phase != o.kind.ends || o.kind.ends == "" && !o.deleted {
			wrong = append(wrong, fmt.Errorf("%s (%s) was last %q", key, o.kind.name, o.phase))
		}
	}
	return wrong[:min(len(wrong), 20)]
}

// leftovers returns what HTCondor has twice, not at all, or still, and what the ledger still has.
func (p *place) leftovers(ctx context.Context, d *diary, book *sql.DB) (wrong []error) {
	var rows int
	if err := book.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM runs) + (SELECT count(*) FROM htcjobs)`).
		Scan(&rows); err != nil ||
		rows > 0 {
		wrong = append(wrong, fmt.Errorf("the ledger still has %d rows (%v)", rows, err))
	}
	clusters := map[string][]string{}
	for _, tool := range []string{"condor_q", "condor_history"} {
		args := []string{"-constraint", "HTCJobUID =!= undefined", "-af", "HTCJobUID", "ClusterId"}
		if tool == "condor_q" {
			args = append([]string{"-allusers"}, args...)
		}
		out, err := p.as(ctx, "admin", "", nil, tool, args...)
		if err != nil {
			return append(wrong, err)
		}
		for line := range strings.Lines(out) {
			if uid, cluster, found := strings.Cut(strings.TrimSpace(line), " "); found &&
				!slices.Contains(clusters[uid], cluster) {
				clusters[uid] = append(clusters[uid], cluster)
			}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, o := range d.jobs {
		want := 1
		if o.kind == refused {
			want = 0
		}
		if n := len(clusters[o.uid]); n != want {
			wrong = append(wrong, fmt.Errorf("%s (%s) has %d clusters: %v", key, o.kind.name, n, clusters[o.uid]))
		}
	}
	return wrong[:min(len(wrong), 20)]
}
