package job

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/logspod"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
)

// spec.logsPod leaves a ConfigMap with the output and a Pod with the HTCJob's name that prints it:
//
//	ended, output here ──> ConfigMap NAME-logs ──> Pod NAME ──> condition LogsPod True
//
// Both belong to the HTCJob and are deleted with it. The condition records whether they exist, so an HTCJob without
// spec.logsPod, or with both already made, costs the apiserver nothing. After an interruption the work starts over by
// looking at what exists.

// logsMakers is how many Pods are created in parallel.
const logsMakers = 2

// leaveLogs queues an HTCJob whose Pod is not as it should be. After a first try the next one is queued already.
func (c *Controller) leaveLogs(key string, s lifecycle.Situation) {
	goal, wanted := lifecycle.LogsGoal(s)
	tried := c.Memory.Of(key).Kind.logs
	had := meta.FindStatusCondition(s.Job.Status.Conditions, v1alpha1.ConditionLogsPod)
	done := wanted && !goal.None && lifecycle.LogsSaid(had, s) && had.Status == metav1.ConditionTrue
	switch same := tried != nil && tried.Goal == goal; {
	case c.LogsPods.Image == "":
	case !wanted, done && same:
		c.tried(key, nil)
	case !done && !same, done && tried != nil:
		c.logs.Add(key)
	}
}

// logsOne makes one try, with its back-off.
func (c *Controller) logsOne(ctx context.Context, key string) {
	job := c.Get(key)
	if job == nil {
		c.tried(key, nil)
		c.logs.Forget(key)
		return
	}
	s, err := c.gather(ctx, job)
	if err != nil {
		c.logs.AddRateLimited(key)
		return
	}
	goal, wanted := lifecycle.LogsGoal(s)
	if !wanted {
		c.tried(key, nil)
		c.logs.Forget(key)
		return
	}
	err = c.LogsPods.Reach(ctx, job, goal, func() (map[string][]byte, error) { return c.logsFiles(ctx, s) })
	outcome := lifecycle.LogsOutcome{
		Goal: goal, Is: metav1.ConditionTrue, Reason: "Ready",
		Message: fmt.Sprintf("`kubectl logs %s` shows what attempt %d has written", job.Name, goal.Attempt),
	}
	if err != nil {
		outcome.Is = metav1.ConditionFalse
		outcome.Reason, outcome.Message = logspod.Explain(err)
	}
	if c.tried(key, &outcome) {
		if err != nil {
			c.Log.Warn().Err(err).Str("job", key).Str("reason", outcome.Reason).Msg("no Pod with the output yet")
		}
		c.Changed.Add(key)
	}
	if err != nil {
		c.logs.AddRateLimited(key)
	} else {
		c.logs.Forget(key)
	}
}

// logsFiles returns the output of the newest attempt.
func (c *Controller) logsFiles(ctx context.Context, s lifecycle.Situation) (map[string][]byte, error) {
	run := s.Run
	text := logspod.Text{Attempt: output.Attempt{Namespace: run.Namespace, Name: run.Name, Number: run.Attempt}}
	if run.State == ledger.Refused {
		text.Note = run.Reason + ": " + run.Message
		return text.Compose()
	}
	if run.OutputDir != "" {
		text.Store = c.Output
	}
	procs, err := ledger.Get(ctx, c.Ledger, func(tx *ledger.Tx) ([]ledger.Proc, error) {
		return tx.Procs(run.UID, run.Attempt, ledger.ProcFilter{Limit: logspod.MaxJobs})
	})
	if err != nil {
		return nil, err
	}
	text.All = run.All()
	for _, p := range procs {
		note := p.Message
		if p.Fetched == ledger.GivenUp || note == "" {
			note = "it could not be fetched"
		}
		text.Jobs = append(text.Jobs, logspod.Job{Proc: p.Proc, ID: p.JobID(), Note: note})
	}
	return text.Compose()
}
