package kube

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

// What spec.logsPod leaves: a ConfigMap with the output, and a Pod of the HTCJob's name that prints it.
//
//	ended, output here ──> ConfigMap NAME-logs ──> Pod NAME ──> condition LogsPod True
//
// Both belong to the HTCJob and go with it. Whether they are there stands in the condition, so that an HTCJob without
// spec.logsPod, and one that has them, costs the apiserver nothing. Broken off anywhere, it begins by looking at what is there.

// logsGoal is what is to be true of the Pod: that it shows an attempt and how that ended, or that there is none.
type logsGoal struct {
	uid     types.UID
	none    bool
	attempt int
	phase   v1alpha1.Phase
}

// exitCode is what the Pod ends with.
func (g logsGoal) exitCode() int {
	if g.phase == v1alpha1.PhaseSucceeded {
		return 0
	}
	return 1
}

// goalOf decides what is to be done about the Pod; ok is false when nothing is, for now or at all.
func goalOf(s situation) (g logsGoal, ok bool) {
	g.uid = s.job.UID
	switch {
	case s.job.DeletionTimestamp != nil: // what belongs to it goes with it
		return g, false
	case !s.job.Spec.LogsPod:
		g.none = true
		return g, meta.FindStatusCondition(s.job.Status.Conditions, v1alpha1.ConditionLogsPod) != nil
	case !over(s), s.unfetched, due(s):
		return g, false
	}
	g.attempt, g.phase = s.run.Attempt, phase(s)
	return g, true
}

// over tells whether the newest attempt has come to its end.
func over(s situation) bool {
	run := s.run
	return run != nil && (run.State == ledger.Refused || run.State == ledger.Submitted && s.counts.Active == 0 && !stopping(s))
}

// logsStep is the next thing to be done towards a goal.
type logsStep string

const (
	logsReached      logsStep = "reached"
	logsTaken        logsStep = "taken"   // somebody else's object has the name
	logsLeaving      logsStep = "leaving" // what is being deleted is still there
	deleteLogsPod    logsStep = "delete the Pod"
	deleteLogsText   logsStep = "delete the ConfigMap"
	createLogsText   logsStep = "create the ConfigMap"
	createLogsPod    logsStep = "create the Pod"
	maxLogsSteps              = 6
	reasonLogsWaits           = "Waiting"
	reasonLogsLeaves          = "Removing"
	reasonLogsOff             = "NotEnabled"
)

// nextLogsStep decides by what is there, nil where nothing is. What is not this HTCJob's is never touched.
func nextLogsStep(g logsGoal, pod *corev1.Pod, text *corev1.ConfigMap) logsStep {
	ours := func(o metav1.Object) bool {
		owner := metav1.GetControllerOf(o)
		return owner != nil && owner.UID == g.uid
	}
	isOf := func(o metav1.Object) bool {
		return o.GetAnnotations()[v1alpha1.AttemptAnnotation] == strconv.Itoa(g.attempt)
	}
	if g.none {
		switch {
		case pod != nil && ours(pod) && pod.DeletionTimestamp == nil:
			return deleteLogsPod
		case text != nil && ours(text) && text.DeletionTimestamp == nil:
			return deleteLogsText
		}
		return logsReached
	}
	switch {
	case pod != nil && !ours(pod), text != nil && !ours(text):
		return logsTaken
	case pod != nil && pod.DeletionTimestamp != nil, text != nil && text.DeletionTimestamp != nil:
		return logsLeaving
	case pod != nil && (!isOf(pod) || exitCodeOf(pod) != g.exitCode()):
		return deleteLogsPod
	case text != nil && !isOf(text):
		return deleteLogsText
	case text == nil:
		return createLogsText
	case pod == nil:
		return createLogsPod
	}
	return logsReached
}

// logsOutcome is what came of the last try for a goal.
type logsOutcome struct {
	goal            logsGoal
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
	case goal.none && (had == nil || v.off || tried && v.outcome.is == metav1.ConditionTrue):
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionLogsPod)
	case wanted && tried && !v.off:
		say(v.outcome.is, v.outcome.reason, v.outcome.message)
	case goal.none:
		say(metav1.ConditionFalse, reasonLogsLeaves, "spec.logsPod is false: the Pod is being removed")
	case v.off:
		say(metav1.ConditionFalse, reasonLogsOff, fmt.Sprintf(
			"spec.logsPod leaves no Pod here, since htcd's administrator has not turned that on (--logs-pod-image); `kubectl htcjob logs %s` shows the output", s.job.Name))
	case wanted && stillSaid(had, s):
		say(had.Status, had.Reason, had.Message)
	default:
		say(metav1.ConditionFalse, reasonLogsWaits, "the Pod is made when every job has ended and its output is here")
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
	case is == nil, is.Reason == reasonLogsWaits, is.Reason == reasonLogsLeaves,
		was != nil && was.Reason == is.Reason && was.Message == is.Message:
		return nil
	}
	return []event{{warning: is.Status != metav1.ConditionTrue, reason: "LogsPod" + is.Reason, message: is.Message}}
}
