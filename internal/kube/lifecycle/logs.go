package lifecycle

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/logspod"
)

// LogsGoal decides what to do about the Pod; ok is false when there is nothing to do now or ever.
func LogsGoal(s Situation) (g logspod.Goal, ok bool) {
	g.UID = s.Job.UID
	switch {
	case s.Job.DeletionTimestamp != nil: // its Pod is deleted with it
		return g, false
	case !s.Job.Spec.LogsPod:
		g.None = true
		return g, meta.FindStatusCondition(s.Job.Status.Conditions, v1alpha1.ConditionLogsPod) != nil
	case !s.over(), s.Unfetched:
		return g, false
	}
	g.Attempt, g.Succeeded = s.Run.Attempt, phase(s) == v1alpha1.PhaseSucceeded
	return g, true
}

// Reasons of the condition in addition to those of package logspod.
const (
	reasonLogsLeaves = "Removing"
	reasonLogsOff    = "NotEnabled"
)

// LogsOutcome is the result of the last try for a goal.
type LogsOutcome struct {
	Goal            logspod.Goal
	Is              metav1.ConditionStatus
	Reason, Message string
}

// LogsView is what the condition needs in addition to the situation.
type LogsView struct {
	Off     bool         // the administrator has not turned it on
	Outcome *LogsOutcome // of the last try, if any
}

// logsCondition says whether the Pod exists or what prevents it.
func logsCondition(set SetCondition, status *v1alpha1.HTCJobStatus, s Situation, v LogsView) {
	had := meta.FindStatusCondition(s.Job.Status.Conditions, v1alpha1.ConditionLogsPod)
	goal, wanted := LogsGoal(s)
	tried := v.Outcome != nil && v.Outcome.Goal == goal
	say := func(is metav1.ConditionStatus, reason, message string) {
		set(v1alpha1.ConditionLogsPod, is, reason, message)
	}
	switch {
	case s.Job.DeletionTimestamp != nil:
	case goal.None && (had == nil || v.Off || tried && v.Outcome.Is == metav1.ConditionTrue):
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionLogsPod)
	case wanted && tried && !v.Off:
		say(v.Outcome.Is, v.Outcome.Reason, v.Outcome.Message)
	case goal.None:
		say(metav1.ConditionFalse, reasonLogsLeaves, "spec.logsPod is false: the Pod is being removed")
	case v.Off:
		say(metav1.ConditionFalse, reasonLogsOff, fmt.Sprintf(
			"spec.logsPod leaves no Pod here, since htcd's administrator has not enabled that (--logs-pod-image); `kubectl htcjob logs %s` shows the output",
			s.Job.Name,
		))
	case wanted && LogsSaid(had, s):
		say(had.Status, had.Reason, had.Message)
	default:
		say(
			metav1.ConditionFalse,
			logspod.ReasonWaiting,
			"the Pod is made when every job has ended and its output is here",
		)
	}
}

// LogsSaid reports whether a condition is about the present attempt and how it ended.
func LogsSaid(had *metav1.Condition, s Situation) bool {
	return had != nil && s.Job.Status.Attempt == int32(s.Run.Attempt) && s.Job.Status.Phase == phase(s) &&
		had.Reason != reasonLogsLeaves && had.Reason != reasonLogsOff
}

// logsNews returns the events of that condition.
func logsNews(before, after v1alpha1.HTCJobStatus) []Event {
	is := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionLogsPod)
	was := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionLogsPod)
	switch {
	case is == nil, is.Reason == logspod.ReasonWaiting, is.Reason == reasonLogsLeaves,
		was != nil && was.Reason == is.Reason && was.Message == is.Message:
		return nil
	}
	return []Event{{Warning: is.Status != metav1.ConditionTrue, Reason: "LogsPod" + is.Reason, Message: is.Message}}
}
