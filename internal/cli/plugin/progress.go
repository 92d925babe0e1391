package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// over reports whether the HTCJob has ended as submitted now, not as it was before.
func over(job, submitted *v1alpha1.HTCJob) bool {
	again := submitted.Rerun()
	return job.Status.ObservedGeneration >= submitted.Generation && job.Status.Phase.Terminal() &&
		(again == "" || again != job.Rerun() || again == job.Status.Rerun || job.RerunRefused())
}

// follow calls fn with the HTCJob whenever it has changed, until it is over. It reconnects when the connection breaks.
func (c *cluster) follow(ctx context.Context, submitted *v1alpha1.HTCJob, fn func(*v1alpha1.HTCJob), say func(string, ...any)) error {
	lost := false
	return again(ctx, func() (bool, error) {
		job, err := c.jobs.Get(ctx, submitted.Name, metav1.GetOptions{})
		if err == nil && job.UID != submitted.UID || apierrors.IsNotFound(err) {
			return false, errHere{fmt.Errorf("HTCJob %s was deleted", submitted.Name)}
		}
		if err != nil {
			if !lost && passing(err) && ctx.Err() == nil {
				lost = true
				say("the connection is lost (%v); the jobs continue, trying again", err)
			}
			return false, err
		}
		lost = false
		for fn(job); !over(job, submitted); fn(job) {
			if job, err = c.next(ctx, job); err != nil {
				return true, err
			}
		}
		c.lastWords(ctx, job, fn)
		return true, nil
	})
}

// patienceForWords is how long an HTCJob that has failed is followed for the sake of its jobs' standard error.
const patienceForWords = 10 * time.Second

// lastWords follows an HTCJob that has failed until the end of a failed job's standard error is here.
func (c *cluster) lastWords(ctx context.Context, job *v1alpha1.HTCJob, fn func(*v1alpha1.HTCJob)) {
	ctx, cancel := context.WithTimeout(ctx, patienceForWords)
	defer cancel()
	for owesWords(job) {
		next, err := c.next(ctx, job)
		if err != nil {
			return
		}
		job = next
		fn(job)
	}
}

// owesWords reports whether no standard error of a failed job is here although it may still come.
func owesWords(job *v1alpha1.HTCJob) bool {
	byCode, known := false, false
	for _, f := range job.Status.Failures {
		byCode, known = byCode || f.ExitCode != nil, known || f.Stderr != ""
	}
	output := meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionOutputFetched)
	return job.Status.Phase == v1alpha1.PhaseFailed && byCode && !known &&
		output != nil && output.Status == metav1.ConditionFalse && (output.Reason == "Fetching" || output.Reason == "NotEnded")
}

// errWatchEnded is no problem: the apiserver ends every watch after a while.
var errWatchEnded = errors.New("the watch has ended")

// watchTime bounds an idle watch, whose connection may be dead.
const watchTime = 5 * time.Minute

// next waits until the HTCJob differs from this one.
func (c *cluster) next(ctx context.Context, job *v1alpha1.HTCJob) (*v1alpha1.HTCJob, error) {
	seconds := int64(watchTime / time.Second)
	changes, err := c.jobs.Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, job.Name).String(), ResourceVersion: job.ResourceVersion, TimeoutSeconds: &seconds,
	})
	if err != nil {
		return nil, err
	}
	defer changes.Stop()
	for event := range changes.ResultChan() {
		switch object := event.Object.(type) {
		case *v1alpha1.HTCJob:
			if event.Type == watch.Deleted {
				return nil, errHere{fmt.Errorf("HTCJob %s was deleted", job.Name)}
			}
			return object, nil
		default:
			return nil, errWatchEnded // too old, for example: get it again
		}
	}
	return nil, errWatchEnded
}

// display shows the progress of jobs: on a terminal in one line that is updated.
type display struct {
	w    io.Writer
	live bool

	mu    sync.Mutex
	jobs  []*v1alpha1.HTCJob
	held  map[string]string // the hold reason last shown
	told  map[string]bool   // the failed jobs whose standard error was shown, by HTCJob and id
	shown string
}

// displayOn returns a display on a terminal, or on whatever w is.
func displayOn(w io.Writer) *display {
	out, isFile := w.(*os.File)
	return &display{w: w, live: isFile && term.IsTerminal(int(out.Fd()))}
}

// show displays the present state of an HTCJob.
func (d *display) show(i int, job *v1alpha1.HTCJob) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.jobs[i] = job
	if d.held == nil {
		d.held = map[string]string{}
	}
	why := onHold(job)
	if why != d.held[job.Name] {
		d.held[job.Name] = why
		if why != "" {
			d.line("%s: %s", job.Name, why)
		}
	}
	d.failures(job)
	if text := counts(d.jobs); d.live && text != d.shown {
		d.shown = text
		fmt.Fprintf(d.w, "\r\x1b[K%s", text)
	}
}

// failures shows each failed job once the end of its standard error is here.
func (d *display) failures(job *v1alpha1.HTCJob) {
	for _, f := range job.Status.Failures {
		words, key := lastWords(f), job.Name+"/"+f.JobID
		if words == "" || d.told[key] {
			continue
		}
		if d.told == nil {
			d.told = map[string]bool{}
		}
		d.told[key] = true
		name := f.JobID
		if f.Item != "" {
			name += ", " + f.Item
		}
		d.line("%s: %s: %s%s", job.Name, name, f.Message, words)
	}
}

// line writes a line that stays, above the one that is updated.
func (d *display) line(format string, args ...any) {
	if d.live && d.shown != "" {
		fmt.Fprint(d.w, "\r\x1b[K")
		d.shown = ""
	}
	fmt.Fprintln(d.w, Plain(fmt.Sprintf(format, args...)))
}

func (d *display) say(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.line(format, args...)
}

// finish leaves the last counts visible, and lists the failures.
func (d *display) finish() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.live && d.shown != "" {
		fmt.Fprintln(d.w)
		d.shown = ""
	}
	for _, job := range d.jobs {
		if !job.Status.Phase.Terminal() || job.Status.Phase == v1alpha1.PhaseSucceeded {
			continue
		}
		why := ""
		if c := meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionFailed); c != nil {
			why = ": " + c.Message
		}
		d.line("%s: %s%s", job.Name, job.Status.Phase, why)
		for _, f := range job.Status.Failures {
			if f.Item != "" && !d.told[job.Name+"/"+f.JobID] {
				d.line("  %s, %s: %s%s", f.JobID, f.Item, f.Message, lastWords(f))
			}
		}
	}
}

// lastWords is the last line of a failed job's standard error.
func lastWords(f v1alpha1.Failure) string {
	last := strings.TrimSpace(f.Stderr)
	last = last[strings.LastIndexByte(last, '\n')+1:]
	if last == "" || f.ExitCode == nil {
		return ""
	}
	return ": " + last
}

// onHold is the hold reason of the jobs; empty if none is held.
func onHold(job *v1alpha1.HTCJob) string {
	c := meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionHeld)
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	return c.Message
}

// counts is the line about all of them together.
func counts(jobs []*v1alpha1.HTCJob) string {
	var idle, running, done, failed, held, rest int32
	for _, job := range jobs {
		s := job.Status
		idle, running, held, done, failed = idle+s.Idle, running+s.Running, held+s.Held, done+s.Succeeded, failed+s.Failed
		rest += s.Active - s.Idle - s.Running - s.Held
		if s.Active+s.Succeeded+s.Failed == 0 { // not sent yet
			rest += int32(job.Queue()) // #nosec G115 -- 100,000 at most
		}
	}
	text := fmt.Sprintf("%d idle, %d running, %d done, %d failed, %d held", idle, running, done, failed, held)
	if rest > 0 {
		text = fmt.Sprintf("%d on their way, ", rest) + text
	}
	if len(jobs) == 1 && jobs[0].Status.Phase != "" {
		text = string(jobs[0].Status.Phase) + ": " + text
	}
	return text
}

// exitCode is the exit code for HTCJobs that have ended: the script's if all known failures share it.
func exitCode(jobs []*v1alpha1.HTCJob) int {
	code := 0
	for _, job := range jobs {
		if job.Status.Phase == v1alpha1.PhaseSucceeded {
			continue
		}
		failed := job.Status.FailedWith()
		if failed == nil || code != 0 && code != int(*failed) {
			return 1
		}
		code = int(*failed)
	}
	return code
}
