package kube

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/logspod"
	"htc.cern.ch/htcd/internal/output"
)

// What spec.logsPod leaves: a ConfigMap with the output, and a Pod of the HTCJob's name that prints it.
//
//	ended, output here ──> ConfigMap NAME-logs ──> Pod NAME ──> condition LogsPod True
//
// Both belong to the HTCJob and go with it. Whether they are there stands in the condition, so that an HTCJob without
// spec.logsPod, and one that has them, costs the apiserver nothing. Broken off anywhere, it begins by looking at what is there.

// goalOf decides what is to be done about the Pod; ok is false when nothing is, for now or at all.
func goalOf(s situation) (g logspod.Goal, ok bool) {
	g.UID = s.job.UID
	switch {
	case s.job.DeletionTimestamp != nil: // what belongs to it goes with it
		return g, false
	case !s.job.Spec.LogsPod:
		g.None = true
		return g, meta.FindStatusCondition(s.job.Status.Conditions, v1alpha1.ConditionLogsPod) != nil
	case !over(s), s.unfetched, due(s):
		return g, false
	}
	g.Attempt, g.Succeeded = s.run.Attempt, phase(s) == v1alpha1.PhaseSucceeded
	return g, true
}

// over tells whether the newest attempt has come to its end.
func over(s situation) bool {
	run := s.run
	return run != nil && (run.State == ledger.Refused || run.State == ledger.Submitted && s.counts.Active == 0 && !stopping(s))
}

// Reasons of the condition beside those of package logspod.
const (
	reasonLogsLeaves = "Removing"
	reasonLogsOff    = "NotEnabled"
)

// logsOutcome is what came of the last try for a goal.
type logsOutcome struct {
	goal            logspod.Goal
	is              metav1.ConditionStatus
	reason, message string
}

// logsView is what the condition needs beside the situation.
type logsView struct {
	off     bool         // the administrator has not turned it on
	outcome *logsOutcome // of the last try, if any
}

// logsCondition says whether there is such a Pod, or what is in the way.
func logsCondition(set setCondition, status *v1alpha1.HTCJobStatus, s situation, v logsView) {
	had := meta.FindStatusCondition(s.job.Status.Conditions, v1alpha1.ConditionLogsPod)
	goal, wanted := goalOf(s)
	tried := v.outcome != nil && v.outcome.goal == goal
	say := func(is metav1.ConditionStatus, reason, message string) {
		set(v1alpha1.ConditionLogsPod, is, reason, message)
	}
	switch {
	case s.job.DeletionTimestamp != nil:
	case goal.None && (had == nil || v.off || tried && v.outcome.is == metav1.ConditionTrue):
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionLogsPod)
	case wanted && tried && !v.off:
		say(v.outcome.is, v.outcome.reason, v.outcome.message)
	case goal.None:
		say(metav1.ConditionFalse, reasonLogsLeaves, "spec.logsPod is false: the Pod is being removed")
	case v.off:
		say(metav1.ConditionFalse, reasonLogsOff, fmt.Sprintf(
			"spec.logsPod leaves no Pod here, since htcd's administrator has not turned that on (--logs-pod-image); `kubectl htcjob logs %s` shows the output", s.job.Name))
	case wanted && stillSaid(had, s):
		say(had.Status, had.Reason, had.Message)
	default:
		say(metav1.ConditionFalse, logspod.ReasonWaiting, "the Pod is made when every job has ended and its output is here")
	}
}

// stillSaid tells whether a condition speaks of the attempt, and of the end of it, that there is now.
func stillSaid(had *metav1.Condition, s situation) bool {
	return had != nil && s.job.Status.Attempt == int32(s.run.Attempt) && s.job.Status.Phase == phase(s) &&
		had.Reason != reasonLogsLeaves && had.Reason != reasonLogsOff
}

// logsNews are the events of that condition.
func logsNews(before, after v1alpha1.HTCJobStatus) []event {
	is := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionLogsPod)
	was := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionLogsPod)
	switch {
	case is == nil, is.Reason == logspod.ReasonWaiting, is.Reason == reasonLogsLeaves,
		was != nil && was.Reason == is.Reason && was.Message == is.Message:
		return nil
	}
	return []event{{warning: is.Status != metav1.ConditionTrue, reason: "LogsPod" + is.Reason, message: is.Message}}
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
	done := wanted && !goal.None && stillSaid(had, s) && had.Status == metav1.ConditionTrue
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
	err = c.LogsPods.Reach(ctx, job, goal, func() (map[string][]byte, error) { return c.logsFiles(ctx, s) })
	outcome := logsOutcome{goal, metav1.ConditionTrue, "Ready", fmt.Sprintf("`kubectl logs %s` shows what attempt %d has written", job.Name, goal.Attempt)}
	if err != nil {
		outcome.is = metav1.ConditionFalse
		outcome.reason, outcome.message = logspod.Explain(err)
	}
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

// logsFiles are the output of the newest attempt.
func (c *Controller) logsFiles(ctx context.Context, s situation) (map[string][]byte, error) {
	run := s.run
	text := logspod.Text{Attempt: output.Attempt{Namespace: run.Namespace, Name: run.Name, Number: run.Attempt}}
	if run.State == ledger.Refused {
		text.Note = run.Reason + ": " + run.Message
		return text.Compose()
	}
	if run.OutputDir != "" {
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

// set reports whether that is another outcome than before.
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
