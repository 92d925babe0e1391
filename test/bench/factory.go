package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

// The limits of a schedd as HTCondor sets them, and as a site with many users does.
const (
	defaultLimits = "\nMAX_JOBS_PER_OWNER = 100000\nMAX_JOBS_PER_SUBMISSION = 20000\n"
	tightLimits   = "\nMAX_JOBS_PER_OWNER = 5000\nMAX_JOBS_PER_SUBMISSION = 20000\n"
)

// patience is how long a row of factories may take: what hangs ends as an error.
const patience = 10 * time.Minute

// factory has HTCondor make the jobs of one HTCJob of n, which never start, and deletes it: with HTCondor's own limits
// and with those of a site. The floor is the same factory by condor_submit on the schedd's host, and condor_rm.
func factory(ctx context.Context, p *place, n int) (figures []figure, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	d, err := p.working(ctx)
	if err != nil {
		return nil, err
	}
	defer d.end(&err)
	if err := p.removeAll(ctx); err != nil { // the job that warmed htcd up
		return nil, err
	}
	for _, limits := range []struct{ name, lines string }{{"", defaultLimits}, {", MAX_JOBS_PER_OWNER=5000", tightLimits}} {
		measured, err := p.limited(ctx, d, n, limits.lines)
		for _, f := range measured {
			f.what += limits.name
			figures = append(figures, f)
		}
		if err != nil {
			return figures, err
		}
	}
	return figures, nil
}

// limited is factory with these lines in HTCondor's configuration.
func (p *place) limited(ctx context.Context, d *daemon, n int, lines string) (figures []figure, err error) {
	restore, err := p.configure(lines)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, restore()) }()
	if err := p.queuedIs(ctx, "true", 0); err != nil {
		return nil, err
	}
	rawIdle, rawGone, err := p.factoryByHand(ctx, n)
	if err != nil {
		return nil, err
	}
	if err := d.forgetMaximum(); err != nil {
		return nil, err
	}
	jobs := p.jobs.HTCJobs(p.ours)
	began := time.Now()
	if _, err := p.create(ctx, p.ours, "made", 1, n, asFactory); err != nil {
		return nil, err
	}
	if err := p.queuedIs(ctx, idleJobs, min(n, submit.IdleAtOnce)); err != nil {
		return nil, err
	}
	idle := time.Since(began)
	const name = "made-00000"
	job, err := p.untilJob(ctx, name, "idle", func(job *v1alpha1.HTCJob) bool {
		return int(job.Status.Idle) == min(n, submit.IdleAtOnce) && int(job.Status.Waiting) == n-int(job.Status.Idle)
	})
	if err != nil {
		return nil, err
	}
	ads, err := p.queued(ctx)
	if err != nil {
		return nil, err
	}
	spooled, err := p.spooled()
	if err != nil {
		return nil, err
	}
	object, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	began = time.Now()
	if err := jobs.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return nil, err
	}
	err = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := jobs.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
	if err == nil {
		err = p.queuedIs(ctx, "true", 0)
	}
	if err != nil {
		return nil, err
	}
	gone := time.Since(began)
	most, err := d.status("VmHWM")
	return []figure{
		{
			what:  "applied to 1,000 idle",
			ours:  idle.Seconds(),
			floor: rawIdle.Seconds(),
			unit:  "s",
			aim:   "10 s",
			note:  "load " + load(),
		},
		{
			what:  "deleted to nothing left",
			ours:  gone.Seconds(),
			floor: rawGone.Seconds(),
			unit:  "s",
			aim:   "10 s",
			note:  "load " + load(),
		},
		{what: "ads in the queue", ours: float64(ads), floor: float64(min(n, submit.IdleAtOnce)), unit: "ads"},
		{what: "directories in the spool", ours: float64(spooled), unit: "directories"},
		{what: "object", ours: float64(len(object)) / 1000, unit: "kB", aim: "16 kB"},
		{what: "htcd at most", ours: most / 1e6, unit: "MB", aim: "120 MB"},
	}, err
}

func asFactory(job *v1alpha1.HTCJob) { job.Spec.Parallelism = new(*job.Spec.Script.Queue) }

// idleJobs are those that a factory has made and that wait for a slot.
const idleJobs = "JobUniverse == 5 && JobStatus == 1"

// queuedIs waits until so many jobs in the queue are of a kind.
func (p *place) queuedIs(ctx context.Context, constraint string, n int) error {
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		out, err := p.as(ctx, "admin", "", nil, "condor_q", "-allusers", "-constraint", constraint, "-af", "ClusterId")
		return strings.Count(out, "\n") == n, err
	})
}

// spooled counts the directories of jobs in the schedd's spool.
func (p *place) spooled() (n int, err error) {
	err = filepath.WalkDir(p.lab.Path("condor", "spool"), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it goes meanwhile
		}
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), "cluster") {
			n++
			return fs.SkipDir
		}
		return err
	})
	return n, err
}

// factoryByHand has the schedd make n jobs that never start, and removes them.
func (p *place) factoryByHand(ctx context.Context, n int) (idle, gone time.Duration, err error) {
	began := time.Now()
	files, commands := callsApptainer(p.registryImage())
	if err := p.sendFactory(ctx, n, files, commands+"requirements = false\n"); err != nil {
		return 0, 0, err
	}
	if err := p.queuedIs(ctx, idleJobs, min(n, submit.IdleAtOnce)); err != nil {
		return 0, 0, err
	}
	idle = time.Since(began)
	began = time.Now()
	err = p.removeAll(ctx)
	return idle, time.Since(began), err
}

// sendFactory sends a factory of n jobs as somebody on the schedd's host does: files by name, and the commands of its
// submit file that are its own.
func (p *place) sendFactory(ctx context.Context, n int, files map[string]string, commands string) error {
	dir, err := p.dir("robot", "factory")
	if err != nil {
		return err
	}
	files["factory.sub"] = commands + "should_transfer_files = YES\nwhen_to_transfer_output = ON_EXIT\n" +
		"output = $(ProcId).out\nerror = $(ProcId).err\nnotification = Never\n" +
		fmt.Sprintf("max_idle = %d\nqueue %d\n", submit.IdleAtOnce, n)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			return err
		}
	}
	if err := p.give("robot", dir); err != nil {
		return err
	}
	_, err = p.as(ctx, "robot", dir, nil, "condor_submit", "-terse", "factory.sub")
	return err
}
