package ui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// The parts that pages of several kinds have.

// fact is a line of what an object is.
type fact struct{ Name, Value string }

// facts keeps those that have a value.
func facts(all ...fact) []fact {
	return slices.DeleteFunc(all, func(f fact) bool { return f.Value == "" })
}

// told is a condition in words.
type told struct {
	Type, Word, Reason, Message string
	Bad                         bool
	Since                       time.Time
}

// goodWhenFalse are the types whose True is bad news.
var goodWhenFalse = []string{
	v1alpha1.ConditionFailed,
	v1alpha1.ConditionFailureTarget,
	v1alpha1.ConditionRepeatExhausted,
	v1alpha1.ConditionHeld,
	v1alpha1.ConditionStalled,
	v1alpha1.ConditionRerunRefused,
	v1alpha1.ConditionCancelRefused,
	v1alpha1.PoolSlowed,
}

// neutral are the types that are neither: False says only that it has not come to that yet.
var neutral = []string{
	v1alpha1.ConditionComplete,
	v1alpha1.ConditionSubmitted,
	v1alpha1.ConditionOutputFetched,
	v1alpha1.ConditionOutputsPushed,
	v1alpha1.ConditionReconciling,
	v1alpha1.ConditionSuspended,
	v1alpha1.ConditionLogsPod,
	v1alpha1.PoolDefault,
}

func tell(conditions []metav1.Condition) (all []told) {
	for _, c := range conditions {
		t := told{Type: c.Type, Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time}
		t.Word = map[metav1.ConditionStatus]string{metav1.ConditionTrue: "yes", metav1.ConditionFalse: "no"}[c.Status]
		if t.Word == "" {
			t.Word = "not known"
		}
		t.Bad = !slices.Contains(neutral, c.Type) &&
			(c.Status == metav1.ConditionTrue) == slices.Contains(goodWhenFalse, c.Type)
		all = append(all, t)
	}
	slices.SortStableFunc(all, func(a, b told) int { // bad news first
		switch {
		case a.Bad == b.Bad:
			return 0
		case a.Bad:
			return -1
		}
		return 1
	})
	return all
}

// happening is an Event.
type happening struct {
	Reason, Message string
	Warning         bool
	Count           int32
	Last            time.Time
}

// happened lists Events, the newest first.
func happened(events []corev1.Event) (all []happening) {
	for _, e := range events {
		last, count := e.LastTimestamp.Time, max(e.Count, 1)
		if e.Series != nil { // as htcd's own that repeat themselves have
			last, count = e.Series.LastObservedTime.Time, max(e.Series.Count, count)
		}
		if last.IsZero() {
			last = e.EventTime.Time
		}
		all = append(all, happening{e.Reason, e.Message, e.Type == corev1.EventTypeWarning, count, last})
	}
	slices.SortStableFunc(all, func(a, b happening) int { return b.Last.Compare(a.Last) })
	return all
}

// failure says how a job or a node failed.
type failure struct {
	Who     string // its number, or its place
	Link    string // to it, after ?
	Log     string // below the base
	Item    string
	How     string
	Message string
	Stderr  string
}

// how says with what a script ended.
func how(exit, signal *int, reason string) string {
	var parts []string
	if exit != nil {
		parts = append(parts, fmt.Sprintf("exit code %d", *exit))
	}
	if signal != nil {
		parts = append(parts, fmt.Sprintf("signal %d", *signal))
	}
	if reason != "" && reason != "ExitCode" && reason != "Signal" {
		parts = append(parts, reason)
	}
	return strings.Join(parts, ", ")
}

// file is one that a job has left.
type file struct {
	Path string
	Size string
	Link string
}

// bytes writes a size.
func bytesOf(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return number(int(n), "byte")
	}
	size, unit := float64(n)/1024, 0
	for size >= 1024 {
		size, unit = size/1024, unit+1
	}
	return fmt.Sprintf("%.1f %ciB", size, units[unit])
}

// grid is many jobs or nodes at a glance. app.js draws it from Cells, a letter for each.
type grid struct {
	Cells   string
	Columns []string // one cell of a row for each; none: as many as there is room for
	From    int      // the number of the first row, or of the first cell
	Total   int      // rows, or cells
	Prev    string   // the link to those before; empty: there are none
	Next    string
	Link    string // of a cell, after which comes its number, or those of its row and column
}

// To is the number of the last one that is shown.
func (g grid) To() int {
	if len(g.Columns) > 0 { // rows
		return g.From + len(g.Cells)/len(g.Columns) - 1
	}
	return g.From + len(g.Cells) - 1
}

// Legend says what the cells stand for. Only nodes of a workflow can be futile.
func (g grid) Legend() []look {
	if len(g.Columns) == 0 {
		return looks[:len(looks)-1]
	}
	return looks
}

// mostCells is how many a page draws.
const mostCells = 10_000

// urgency lists the states, first those that most need to be seen.
var urgency = []aggregate.NodeState{
	aggregate.NodeFailed,
	aggregate.NodeHeld,
	aggregate.NodeRunning,
	aggregate.NodeIdle,
	aggregate.NodeWaiting,
	aggregate.NodeFutile,
	aggregate.NodeDone,
}

// worst returns the state of two nodes that most needs to be seen.
func worst(a, b aggregate.NodeState) aggregate.NodeState {
	if slices.Index(urgency, a) <= slices.Index(urgency, b) {
		return a
	}
	return b
}
