package plugin

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// state is one stable word for where an HTCJob or HTCWorkflow stands.
type state string

const (
	isPending   state = "pending" // nothing runs: it is on its way, waits for a slot or is on hold
	isRunning   state = "running"
	isSuspended state = "suspended"
	isSucceeded state = "succeeded"
	isFailed    state = "failed" // refused and removed ones, too
)

// stateCodes are the exit codes of htcd status.
var stateCodes = map[state]int{isSucceeded: 0, isFailed: 3, isPending: 4, isRunning: 5, isSuspended: 6}

// stateOf is pending while a changed spec, or a repetition that was asked for, is still to be sent.
func stateOf(o *object) state {
	switch phase := o.Status.Phase; {
	case phase == v1alpha1.PhaseRunning:
		return isRunning
	case phase == v1alpha1.PhaseSuspended:
		return isSuspended
	case !over(o, o):
		return isPending
	case phase == v1alpha1.PhaseSucceeded:
		return isSucceeded
	}
	return isFailed
}

// summary is what -o json prints of an HTCJob or HTCWorkflow, one object on a line. The jobs of a workflow are its
// nodes.
type summary struct {
	Kind       string         `json:"kind"`
	Namespace  string         `json:"namespace"`
	Name       string         `json:"name"`
	UID        string         `json:"uid"`
	State      state          `json:"state"`
	Phase      v1alpha1.Phase `json:"phase"`
	Reason     string         `json:"reason,omitempty"`
	Message    string         `json:"message,omitempty"`
	ExitCode   *int32         `json:"exitCode,omitempty"`
	Active     int32          `json:"active"`
	Succeeded  int32          `json:"succeeded"`
	Failed     int32          `json:"failed"`
	Cluster    int32          `json:"cluster,omitempty"`
	Schedd     string         `json:"schedd,omitempty"`
	Created    metav1.Time    `json:"created"`
	Submitted  *metav1.Time   `json:"submitted,omitempty"`
	Completed  *metav1.Time   `json:"completed,omitempty"`
	User       string         `json:"user,omitempty"`
	Started    *metav1.Time   `json:"started,omitempty"`
	Duration   string         `json:"duration,omitempty"`
	OutputHere bool           `json:"outputFetched"`
}

func summaryOf(o *object) summary {
	s := o.Status
	return summary{
		Kind:       o.name,
		Namespace:  o.Namespace,
		Name:       o.Name,
		UID:        string(o.UID),
		State:      stateOf(o),
		Phase:      s.Phase,
		Reason:     s.Reason,
		Message:    s.Message,
		ExitCode:   s.ExitCode,
		Active:     s.Active,
		Succeeded:  s.Succeeded,
		Failed:     s.Failed,
		Cluster:    s.ClusterID,
		Schedd:     s.Schedd,
		Created:    o.CreationTimestamp,
		Submitted:  s.StartTime,
		Completed:  s.CompletionTime,
		OutputHere: s.OutputFetched,
		User:       s.User,
		Started:    s.StartedAt,
		Duration:   s.Duration,
	}
}

// formats are the values of -o.
var formats = []string{"word", "table", "wide", "name", "json"}

// show prints objects in one of the formats.
func show(w io.Writer, format string, all []*object) error {
	switch format {
	case "word":
		for _, o := range all {
			fmt.Fprintln(w, stateOf(o))
		}
		return nil
	case "name":
		for _, o := range all {
			fmt.Fprintln(w, o.fullName(o.Name))
		}
		return nil
	case "json":
		lines := jsonLines(w)
		for _, o := range all {
			if err := lines.Encode(summaryOf(o)); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	columns := []string{"NAME", "STATE", "PHASE", "ACTIVE", "SUCCEEDED", "FAILED", "AGE"}
	if format == "wide" {
		columns = append(columns, "EXIT", "JOBID", "SCHEDD", "USER", "TIME", "REASON")
	}
	fmt.Fprintln(table, strings.Join(columns, "\t"))
	for _, o := range all {
		fmt.Fprintln(table, strings.Join(row(o, time.Now())[:len(columns)], "\t"))
	}
	return table.Flush()
}

func row(o *object, now time.Time) []string {
	s := summaryOf(o)
	exit, id := "", ""
	if s.ExitCode != nil {
		exit = fmt.Sprint(*s.ExitCode)
	}
	if len(o.Status.JobID) > 0 {
		id = o.Status.JobID[0]
	}
	return []string{
		o.shown(),
		string(s.State),
		string(s.Phase),
		fmt.Sprint(s.Active),
		fmt.Sprint(s.Succeeded),
		fmt.Sprint(s.Failed),
		duration.HumanDuration(now.Sub(s.Created.Time)),
		exit,
		id,
		s.Schedd,
		s.User,
		runTime(o, now),
		s.Reason,
	}
}

// runTime is how long the jobs have run until now, or ran.
func runTime(o *object, now time.Time) string {
	s := o.Status
	switch ran, err := time.ParseDuration(s.Duration); {
	case s.Duration != "" && err == nil:
		return duration.HumanDuration(ran)
	case s.StartedAt == nil || s.Active == 0:
		return ""
	}
	return duration.HumanDuration(now.Sub(s.StartedAt.Time))
}
