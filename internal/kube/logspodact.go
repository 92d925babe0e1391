package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/logspod"
	"htc.cern.ch/htcd/internal/output"
)

// LogsPods is what makes the Pods of spec.logsPod; without an image there are none.
type LogsPods struct {
	Image  string // htcd's own
	Client interface {
		typedcorev1.PodsGetter
		typedcorev1.ConfigMapsGetter
	}
}

// logsMakers is how many Pods are made in parallel.
const logsMakers = 2

// logsViewOf is what the condition needs to know.
func (c *Controller) logsViewOf(key string) logsView {
	return logsView{off: c.LogsPods.Image == "", outcome: c.leftLogs.get(key)}
}

// leaveLogs queues an HTCJob whose Pod is not as it should be. An HTCJob of which that was tried has its next try queued already.
func (c *Controller) leaveLogs(key string, s situation) {
	goal, wanted := goalOf(s)
	tried := c.leftLogs.get(key)
	had := meta.FindStatusCondition(s.job.Status.Conditions, v1alpha1.ConditionLogsPod)
	done := wanted && !goal.none && stillSaid(had, s) && had.Status == metav1.ConditionTrue
	switch same := tried != nil && tried.goal == goal; {
	case c.LogsPods.Image == "":
	case !wanted, done && same:
		c.leftLogs.clear(key)
	case !done && !same, done && tried != nil:
		c.logs.Add(key)
	}
}

// logsOne is one try, with its back-off.
func (c *Controller) logsOne(ctx context.Context, key string) {
	job := c.get(key)
	if job == nil {
		c.leftLogs.clear(key)
		c.logs.Forget(key)
		return
	}
	s, err := c.gather(ctx, job)
	if err != nil {
		c.logs.AddRateLimited(key)
		return
	}
	goal, wanted := goalOf(s)
	if !wanted {
		c.leftLogs.clear(key)
		c.logs.Forget(key)
		return
	}
	err = c.reachLogs(ctx, s, goal)
	outcome := outcomeOf(goal, job, err)
	if c.leftLogs.set(key, outcome) {
		if err != nil {
			c.Log.Warn().Err(err).Str("job", key).Str("reason", outcome.reason).Msg("no Pod with the output yet")
		}
		c.queue.Add(key)
	}
	if err != nil {
		c.logs.AddRateLimited(key)
	} else {
		c.logs.Forget(key)
	}
}

// logsError is what is in the way of a Pod, in words for the user.
type logsError struct{ reason, message string }

func (e *logsError) Error() string { return e.message }

// outcomeOf turns the end of a try into what the condition says.
func outcomeOf(g logsGoal, job *v1alpha1.HTCJob, err error) logsOutcome {
	o := logsOutcome{goal: g, is: metav1.ConditionFalse}
	switch e, ok := errors.AsType[*logsError](err); {
	case err == nil:
		o.is, o.reason, o.message = metav1.ConditionTrue, "Ready", fmt.Sprintf("`kubectl logs %s` shows what attempt %d has written", job.Name, g.attempt)
	case ok:
		o.reason, o.message = e.reason, e.message
	case apierrors.IsForbidden(err):
		o.reason, o.message = "Forbidden", fmt.Sprintf("%v; does htcd have the rules of deploy/components/logs-pod?", err)
	case apierrors.IsInvalid(err):
		o.reason, o.message = "Invalid", err.Error()
	default:
		o.reason, o.message = "Retrying", err.Error()
	}
	return o
}

// reachLogs goes step by step, each decided by what is there.
func (c *Controller) reachLogs(ctx context.Context, s situation, g logsGoal) error {
	job := s.job
	pods, texts := c.LogsPods.Client.Pods(job.Namespace), c.LogsPods.Client.ConfigMaps(job.Namespace)
	pod, err := orNil(pods.Get(ctx, job.Name, metav1.GetOptions{}))
	if err != nil {
		return fmt.Errorf("look for the Pod: %w", err)
	}
	text, err := orNil(texts.Get(ctx, logsTextName(job.Name), metav1.GetOptions{}))
	if err != nil {
		return fmt.Errorf("look for the ConfigMap: %w", err)
	}
	for range maxLogsSteps {
		step := nextLogsStep(g, pod, text)
		switch step {
		case logsReached:
			return nil
		case logsTaken:
			return &logsError{"NameTaken", fmt.Sprintf("there is a Pod %s or a ConfigMap %s that is not this HTCJob's; it is left as it is: delete it, or set spec.logsPod to false",
				job.Name, logsTextName(job.Name))}
		case logsLeaving:
			return &logsError{reasonLogsWaits, "the Pod of before is on its way out"}
		case deleteLogsPod:
			if err = gone(pods.Delete(ctx, pod.Name, only(pod.UID))); err == nil {
				pod, err = orNil(pods.Get(ctx, job.Name, metav1.GetOptions{})) // it may take its time
			}
		case deleteLogsText:
			err = gone(texts.Delete(ctx, text.Name, only(text.UID)))
			text = nil
		case createLogsText:
			var files map[string][]byte
			if files, err = c.logsFiles(ctx, s); err == nil {
				text, err = texts.Create(ctx, logsText(job, g, files), metav1.CreateOptions{})
			}
		case createLogsPod:
			pod, err = pods.Create(ctx, logsPod(job, g, c.LogsPods.Image), metav1.CreateOptions{})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	return &logsError{reasonLogsWaits, "somebody else changes the Pod, too"}
}

// orNil makes nil of what is not there.
func orNil[T corev1.Pod | corev1.ConfigMap](object *T, err error) (*T, error) {
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return object, err
}

// gone takes what is not there for deleted.
func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// only deletes an object, and no younger one of its name.
func only(uid types.UID) metav1.DeleteOptions {
	return metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
}

// logsFiles are the output of the newest attempt.
func (c *Controller) logsFiles(ctx context.Context, s situation) (map[string][]byte, error) {
	run := s.run
	text := logspod.Text{Attempt: output.Attempt{Namespace: run.Namespace, Name: run.Name, Number: run.Attempt}}
	if run.State == ledger.Refused {
		text.Note = run.Reason + ": " + run.Message
		return text.Compose()
	}
	if c.fetchable(*run) {
		text.Store = c.Output
	}
	var procs []ledger.Proc
	err := c.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
		procs, err = tx.Procs(run.UID, run.Attempt, ledger.ProcFilter{Limit: logspod.MaxJobs})
		return err
	})
	if err != nil {
		return nil, err
	}
	text.All = run.Procs
	for _, p := range procs {
		note := p.Message
		if p.Fetched == ledger.GivenUp || note == "" {
			note = "it could not be had"
		}
		text.Jobs = append(text.Jobs, logspod.Job{Proc: p.Proc, ID: p.JobID(), Note: note})
	}
	return text.Compose()
}

// logsOutcomes holds what came of the last try of each key, safe for concurrent use.
type logsOutcomes struct {
	mu sync.Mutex
	m  map[string]logsOutcome
}

func (o *logsOutcomes) get(key string) *logsOutcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	if outcome, ok := o.m[key]; ok {
		return &outcome
	}
	return nil
}

// set tells whether that is another outcome than before.
func (o *logsOutcomes) set(key string, outcome logsOutcome) (news bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.m == nil {
		o.m = map[string]logsOutcome{}
	}
	before, had := o.m[key]
	o.m[key] = outcome
	return !had || before != outcome
}

func (o *logsOutcomes) clear(key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.m, key)
}
