package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// token is the token of every run that a row writes into a ledger by itself.
const token = "YmVuY2g6IHRoZSB0b2tlbiBvZiBpdHMgb3duIHJ1bnM"

// htcjob returns an HTCJob whose jobs never start.
func htcjob(name string, procs int) *v1alpha1.HTCJob {
	n := int32(procs)
	return &v1alpha1.HTCJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.HTCJobSpec{
			Script: v1alpha1.Script{
				Program: v1alpha1.Program{Image: "centos", Command: "bash", Source: "exit 0\n"},
				Queue:   &n,
			},
			HTCOpts: "requirements = false\n",
		},
	}
}

// create creates n HTCJobs and returns them as stored.
func (p *place) create(
	ctx context.Context,
	namespace, prefix string,
	n, procs int,
	change ...func(*v1alpha1.HTCJob),
) ([]*v1alpha1.HTCJob, error) {
	made := make([]*v1alpha1.HTCJob, n)
	err := inParallel(n, 16, func(i int) (err error) {
		job := htcjob(fmt.Sprintf("%s-%05d", prefix, i), procs)
		for _, f := range change {
			f(job)
		}
		made[i], err = p.jobs.HTCJobs(namespace).Create(ctx, job, metav1.CreateOptions{})
		return err
	})
	return made, err
}

// filling says what the ledger should know about HTCJobs.
type filling struct {
	cluster func(i int) int // of the ith
	procs   int
	ended   bool // and HTCondor has said so
}

// fill writes runs and procs of HTCJobs into the ledger under data.
func (p *place) fill(ctx context.Context, data string, jobs []*v1alpha1.HTCJob, f filling) (err error) {
	book, err := ledger.Open(ctx, filepath.Join(data, "sqlite", "htcjobs.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, book.Close()) }()
	now, hash := time.Now(), sha256.Sum256([]byte(token))
	for page := range slices.Chunk(jobs, 100) {
		first := slices.Index(jobs, page[0])
		err := book.Write(ctx, func(tx *ledger.Tx) error {
			for i, job := range page {
				run := ledger.Run{
					UID:        string(job.UID),
					Attempt:    1,
					Namespace:  job.Namespace,
					Name:       job.Name,
					Generation: job.Generation,
					State:      ledger.Submitted,
					Schedd:     p.schedd,
					Cluster:    f.cluster(first + i),
					Procs:      f.procs,
					TokenHash:  hash[:],
					TempDir: filepath.Join(
						data,
						"staging",
						string(job.UID)+"-1",
					),
					Created:   now,
					Submitted: now,
					Checked:   now,
				}
				if f.ended {
					run.Ended, run.Confirmed = now, true
				}
				if err := tx.InsertRun(run); err != nil {
					return err
				}
				if err := tx.InsertProcs(run, run.Procs); err != nil {
					return err
				}
				for proc := range f.procs {
					if !f.ended {
						break
					}
					code := 0
					err := tx.UpdateProc(
						ledger.Proc{
							UID:       run.UID,
							Attempt:   1,
							Proc:      proc,
							Status:    ledger.StatusSucceeded,
							JobStatus: 4,
							ExitCode:  &code,
							Reason:    "Completed",
							Message:   "exit code 0",
							Source:    "crosscheck",
							Changed:   now,
						},
					)
					if err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// inQueue puts a cluster into the schedd's queue for each HTCJob, with the tag of its first attempt and without files,
// and returns their ids.
func (p *place) inQueue(ctx context.Context, jobs []*v1alpha1.HTCJob, procs int) ([]int, error) {
	return p.inQueueAs(ctx, jobs, procs, "executable = /bin/true\ntransfer_executable = false\nrequirements = false\n")
}

// inQueueAs is inQueue for jobs that are described by these lines.
func (p *place) inQueueAs(ctx context.Context, jobs []*v1alpha1.HTCJob, procs int, lines string) ([]int, error) {
	ids := make([]int, len(jobs))
	dir, err := p.dir("robot", "queue")
	if err != nil {
		return nil, err
	}
	accounts := []string{"robot", "alice"} // an account may have 100,000 jobs
	if err := os.Chmod(dir, 0o777); err != nil {
		return nil, err
	}
	// The schedd answers nobody while it takes a large one.
	err = inParallel(len(jobs), max(1, min(4, 40_000/procs)), func(i int) error {
		tag := condor.Tag{UID: string(jobs[i].UID), Attempt: 1, Namespace: jobs[i].Namespace, Name: jobs[i].Name}
		text := lines + fmt.Sprintf(
			"+HTCJobUID = %q\n+HTCJobAttempt = 1\n+HTCJobNamespace = %q\n+HTCJobName = %q\nqueue %d\n",
			tag.UID,
			tag.Namespace,
			tag.Name,
			procs,
		)
		file := filepath.Join(dir, fmt.Sprintf("%d.sub", i))
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
		out, err := p.as(ctx, accounts[i%2], dir, nil, "condor_submit", "-terse", file)
		if err != nil {
			return err
		}
		ids[i], err = clusterOf(out)
		return err
	})
	return ids, err
}

var terse = regexp.MustCompile(`(?m)^(\d+)\.\d+ - \d+\.\d+`)

func clusterOf(out string) (int, error) {
	found := terse.FindStringSubmatch(out)
	if found == nil {
		return 0, fmt.Errorf("condor_submit printed %q", out)
	}
	return strconv.Atoi(found[1])
}

// queued returns how many jobs the schedd has.
func (p *place) queued(ctx context.Context) (int, error) {
	out, err := p.as(ctx, "admin", "", nil, "condor_q", "-allusers", "-af", "ClusterId")
	return strings.Count(out, "\n"), err
}

// removeAll removes every job and returns when none is in the queue.
func (p *place) removeAll(ctx context.Context) error {
	if _, err := p.as(ctx, "admin", "", nil, "condor_rm", "-all"); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		left, err := p.as(ctx, "admin", "", nil, "condor_q", "-allusers", "-limit", "1", "-af", "ClusterId")
		return left == "", err
	})
}

// follow calls see for every change of an HTCJob in a namespace until stop is called.
func (p *place) follow(ctx context.Context, namespace string, see func(*v1alpha1.HTCJob)) (stop func(), err error) {
	jobs := p.jobs.HTCJobs(namespace)
	ctx, stop = context.WithCancel(ctx)
	begin := func() (watch.Interface, error) {
		list, err := jobs.List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			see(&list.Items[i])
		}
		return jobs.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	}
	changes, err := begin()
	if err != nil {
		stop()
		return nil, err
	}
	go func() {
		for ctx.Err() == nil { // an apiserver under load ends the watches of slow readers
			for e := range changes.ResultChan() {
				if job, ok := e.Object.(*v1alpha1.HTCJob); ok && e.Type != watch.Deleted {
					see(job)
				}
			}
			for changes, err = begin(); err != nil && ctx.Err() == nil; changes, err = begin() {
				fmt.Fprintln(os.Stderr, "bench: watch:", err)
				time.Sleep(time.Second)
			}
		}
	}()
	return stop, nil
}

// told waits until the status of all HTCJobs of a namespace is as expected.
func (p *place) told(ctx context.Context, namespace string, n int, is func(*v1alpha1.HTCJob) bool) error {
	for {
		count, next := 0, ""
		for {
			list, err := p.jobs.HTCJobs(namespace).List(ctx, metav1.ListOptions{Limit: 500, Continue: next})
			if err != nil {
				return err
			}
			for i := range list.Items {
				if is(&list.Items[i]) {
					count++
				}
			}
			if next = list.Continue; next == "" {
				break
			}
		}
		if count >= n {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

func hasPhase(job *v1alpha1.HTCJob) bool { return job.Status.Phase != "" }

// median returns the median of some durations, in seconds.
func median(all []time.Duration) float64 { return quantile(all, 0.5) }

// quantile returns a quantile of some durations, in seconds.
func quantile(all []time.Duration, q float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))].Seconds()
}
