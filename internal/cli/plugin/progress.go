package plugin

import (
	"cmp"
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
	"htc.cern.ch/htcd/internal/kube/lifecycle"
)

// over reports whether an object has ended as submitted now, not as it was before.
func over(o, submitted *object) bool {
	again := submitted.rerun
	return o.Status.ObservedGeneration >= submitted.Generation && o.Status.Phase.Terminal() &&
		(again == "" || again != o.rerun || again == o.Status.Rerun || o.refused)
}

// follow calls fn with the object whenever it has changed, until it is over. It reconnects when the connection breaks.
func (c *cluster) follow(ctx context.Context, submitted *object, fn func(*object), say func(string, ...any)) error {
	lost := false
	return again(ctx, func() (bool, error) {
		o, err := c.of(submitted.kind).get(ctx, submitted.Name)
		if err == nil && o.UID != submitted.UID || apierrors.IsNotFound(err) {
			return false, errHere{fmt.Errorf("%s %s was deleted", submitted.name, submitted.Name)}
		}
		if err != nil {
			if !lost && passing(err) && ctx.Err() == nil {
				lost = true
				say("the connection is lost (%v); the jobs continue, trying again", err)
			}
			return false, err
		}
		lost = false
		for fn(o); !over(o, submitted); fn(o) {
			if o, err = c.next(ctx, o); err != nil {
				return true, err
			}
		}
		c.lastWords(ctx, o, fn)
		return true, nil
	})
}

// patienceForWords is how long one that has failed is followed for the sake of its jobs' standard error.
const patienceForWords = 10 * time.Second

// lastWords follows one that has failed until the end of a failed job's standard error is here.
func (c *cluster) lastWords(ctx context.Context, o *object, fn func(*object)) {
	ctx, cancel := context.WithTimeout(ctx, patienceForWords)
	defer cancel()
	for owesWords(o) {
		next, err := c.next(ctx, o)
		if err != nil {
			return
		}
		o = next
		fn(o)
	}
}

// owesWords reports whether no standard error of a failed job is here although it may still come.
func owesWords(o *object) bool {
	byCode, known := false, false
	for _, f := range o.Status.Failures {
		byCode, known = byCode || f.ExitCode != nil, known || f.Stderr != ""
	}
	output := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionOutputFetched)
	return o.Status.Phase == v1alpha1.PhaseFailed && byCode && !known &&
		output != nil && output.Status == metav1.ConditionFalse && (output.Reason == "Fetching" || output.Reason == "NotEnded")
}

// errWatchEnded is no problem: the apiserver ends every watch after a while.
var errWatchEnded = errors.New("the watch has ended")

// watchTime bounds an idle watch, whose connection may be dead.
const watchTime = 5 * time.Minute

// next waits until the object differs from this one.
func (c *cluster) next(ctx context.Context, o *object) (*object, error) {
	seconds := int64(watchTime / time.Second)
	changes, err := c.of(o.kind).watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(
			metav1.ObjectNameField,
			o.Name,
		).String(), ResourceVersion: o.ResourceVersion, TimeoutSeconds: &seconds,
	})
	if err != nil {
		return nil, err
	}
	defer changes.Stop()
	event, is := <-changes.ResultChan()
	now := objectOf(event.Object)
	switch {
	case !is, now == nil:
		return nil, errWatchEnded // too old, for example: get it again
	case event.Type == watch.Deleted:
		return nil, errHere{fmt.Errorf("%s %s was deleted", o.name, o.Name)}
	}
	return now, nil
}

// display shows the progress of jobs: on a terminal in one line that is updated.
type display struct {
	w    io.Writer
	live bool

	mu    sync.Mutex
	all   []*object
	held  map[string]string // the hold reason last shown, by the name in a table
	told  map[string]bool   // the failed jobs whose standard error was shown, by that name and id
	over  map[string]bool   // the steps whose end was shown, by that name, attempt and step
	shown string
}

// displayOn returns a display on a terminal, or on whatever w is.
func displayOn(w io.Writer) *display {
	return &display{w: w, live: terminalOf(w) != nil}
}

// terminalOf returns what is written to if that is a terminal, and else nil.
func terminalOf(w io.Writer) io.Writer {
	if out, isFile := w.(*os.File); isFile && term.IsTerminal(int(out.Fd())) {
		return w
	}
	return nil
}

// show displays the present state of an object.
func (d *display) show(i int, o *object) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all[i] = o
	if d.held == nil {
		d.held, d.told, d.over = map[string]string{}, map[string]bool{}, map[string]bool{}
	}
	why := onHold(o)
	if why != d.held[o.shown()] {
		d.held[o.shown()] = why
		if why != "" {
			d.line("%s: %s", o.shown(), why)
		}
	}
	d.failures(o)
	d.steps(o)
	if text := counts(d.all); d.live && text != d.shown {
		d.shown = text
		fmt.Fprintf(d.w, "\r\x1b[K%s", text)
	}
}

// failures shows each failed job once the end of its standard error is here.
func (d *display) failures(o *object) {
	for _, f := range o.Status.Failures {
		words, key := lastWords(f), o.shown()+"/"+f.JobID
		if words == "" || d.told[key] {
			continue
		}
		d.told[key] = true
		d.line("%s: %s: %s%s", o.shown(), nameOf(f), f.Message, words)
	}
}

// steps shows each step of a workflow once none of its nodes is left to run.
func (d *display) steps(o *object) {
	if o.workflow == nil {
		return
	}
	for _, s := range o.workflow.Status.Steps {
		key := fmt.Sprintf("%s %d %s", o.shown(), o.Status.Attempt, s.Name)
		if s.Total == 0 || s.Done+s.Failed+s.Futile < s.Total || d.over[key] {
			continue
		}
		d.over[key] = true
		text := fmt.Sprintf("%d of %d nodes done", s.Done, s.Total)
		if s.Failed+s.Futile > 0 {
			text += fmt.Sprintf(", %d failed, %d futile", s.Failed, s.Futile)
		}
		d.line("%s: step %s: %s", o.shown(), s.Name, text)
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
	for _, o := range d.all {
		if !o.Status.Phase.Terminal() || o.Status.Phase == v1alpha1.PhaseSucceeded {
			continue
		}
		why := ""
		if c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionFailed); c != nil {
			why = ": " + c.Message
		}
		d.line("%s: %s%s", o.shown(), o.Status.Phase, why)
		for _, f := range o.Status.Failures {
			if (f.Item != "" || o.workflow != nil) && !d.told[o.shown()+"/"+f.JobID] {
				d.line("  %s: %s%s", nameOf(f), f.Message, lastWords(f))
			}
		}
	}
}

// nameOf is a failed job's id, and its item if it has one.
func nameOf(f v1alpha1.Failure) string {
	if f.Item == "" {
		return f.JobID
	}
	return f.JobID + ", " + f.Item
}

// lastWords is the last line of a failed job's standard error.
func lastWords(f v1alpha1.Failure) string {
	last := lifecycle.LastLine(f.Stderr)
	if last == "" || f.ExitCode == nil {
		return ""
	}
	return ": " + last
}

// onHold is the hold reason of the jobs; empty if none is held.
func onHold(o *object) string {
	c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionHeld)
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	return c.Message
}

// counts is the line about all of them together.
func counts(all []*object) string {
	var idle, running, done, failed, held, rest int32
	waiting := "on their way"
	for _, o := range all {
		s := o.Status
		idle, running, held, done, failed = idle+s.Idle, running+s.Running, held+s.Held, done+s.Succeeded,
			failed+s.Failed
		rest += s.Active - s.Idle - s.Running - s.Held
		if s.Active+s.Succeeded+s.Failed == 0 { // not sent yet
			rest += o.expected
		}
		if o.workflow != nil {
			waiting = "waiting"
		}
	}
	text := fmt.Sprintf("%d idle, %d running, %d done, %d failed, %d held", idle, running, done, failed, held)
	if rest > 0 {
		text = fmt.Sprintf("%d %s, ", rest, waiting) + text
	}
	if len(all) == 1 && all[0].Status.Phase != "" {
		text = string(all[0].Status.Phase) + ": " + text + atWork(all[0])
	}
	return text
}

// mostSteps is how many steps fit into the line of a terminal.
const mostSteps = 3

// atWork names the steps of a workflow that have begun and have not ended, with how many of their nodes are done.
func atWork(o *object) string {
	var steps []string
	if o.workflow != nil {
		for _, s := range o.workflow.Status.Steps {
			ended := s.Done + s.Failed + s.Futile
			if ended < s.Total && ended+s.Idle+s.Running+s.Held > 0 {
				steps = append(steps, fmt.Sprintf("%s %d/%d", s.Name, s.Done, s.Total))
			}
		}
	}
	switch {
	case len(steps) == 0:
		return ""
	case len(steps) > mostSteps:
		steps = append(steps[:mostSteps], "...")
	}
	return "; " + strings.Join(steps, ", ")
}

// exitCode is the exit code for those that have ended: that of the status, as of abortReturn, or the script's if all
// known failures share it.
func exitCode(all []*object) int {
	code := 0
	for _, o := range all {
		if o.Status.Phase == v1alpha1.PhaseSucceeded {
			continue
		}
		failed := cmp.Or(o.Status.ExitCode, o.Status.FailedWith())
		if failed == nil || code != 0 && code != int(*failed) {
			return 1
		}
		code = int(*failed)
	}
	return code
}
