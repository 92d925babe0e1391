package nodes

import (
	"time"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// The rules by which a node's row changes are those of crosscheck.Observation.Apply, and before them:
//
//  1. If HTCondor shows two jobs of a node, the node follows the later one. That happens only if DAGMan was killed
//     between sending a job and noting it: it then knows the later one.
//  2. The cluster that a callback names holds until HTCondor shows one.
//
// and after them:
//
//  3. The exit code is the script's own, as its callback tells it, where the wrapper turned it into another.
//  4. A node that htcd has removed has not failed: it is futile.
//  5. Once htcd stops its DAG, a failure that a callback has told stands: after an outage HTCondor may run the job
//     again, only to remove it.
//  6. A job that was removed because DAGMan had run to its end had ended, as its callback has told, or DAGMan's
//     success, or else its ad.
//
// Like those they are pure and idempotent, and do not depend on the order in which sources report.

// word is what an ad says about a node.
type word struct {
	cluster  int
	left     bool // rule 6
	says     crosscheck.Observation
	evidence string // for humans; empty: nobody asks for it
}

// apply changes a row; stop is why htcd stops the DAG, "" if it does not. It may have begun after HTCondor was asked,
// and before it answered.
func (w word) apply(n ledger.Node, stop string) (ledger.Node, bool) {
	before := n
	switch {
	case n.Cluster == w.cluster:
	case n.Claimed, n.Cluster < w.cluster:
		n.Proc = begun(n.Proc, w.cluster)
	default:
		return n, false
	}
	n.Claimed = false
	is := observe(n.Proc, w.says.Stopped(stop))
	if w.left && n.Source == crosscheck.FromCallback && n.ExitCode != nil && is.Status != ledger.StatusSucceeded {
		is = confirmed(n.Proc, is)
	}
	if stop != "" && n.Status == ledger.StatusFailed && n.ExitCode != nil {
		is = stands(n.Proc, is)
	}
	n.Proc = is
	return n, !same(n, before)
}

// stands returns the row of a failure, unless HTCondor tells another end than a removal by htcd. Such a removal
// confirms it.
func stands(failed, is ledger.Proc) ledger.Proc {
	switch is.Status {
	case ledger.StatusOpen:
		return failed
	case ledger.StatusFutile:
		return confirmed(failed, is)
	}
	return is
}

// confirmed returns the row of an end that a callback has told, once HTCondor shows the job as is does: ended, however.
func confirmed(told, is ledger.Proc) ledger.Proc {
	told.JobStatus, told.Source, told.Absent = is.JobStatus, is.Source, is.Absent
	return told
}

// miss changes the row of a node whose job neither queue nor history shows, by the fate of its DAG.
func miss(n ledger.Node, of dag, doubt crosscheck.Doubt, at time.Time) (ledger.Node, bool) {
	if n.Claimed && !of.ended() {
		return n, false
	}
	before := n
	n.Proc = observe(n.Proc, crosscheck.Absence(of.run.Stop, doubt, at))
	if before.Status == ledger.StatusOpen && n.Reason == crosscheck.ReasonLost && of.succeeded() {
		n.Status, n.Reason, n.Message = ledger.StatusSucceeded, reasonDone, messageDone
	}
	return n, !same(n, before)
}

// started changes a row by a job's own report of its start. It names no cluster for it: a node may have none, and
// HTCondor will show it.
func started(n ledger.Node, cluster int, at time.Time) (ledger.Node, bool) {
	if n.Cluster != 0 && n.Cluster != cluster {
		return n, false
	}
	is, changed := crosscheck.Start(at).Apply(n.Proc)
	n.Proc = is
	return n, changed
}

// wrote changes a row by a job's report that HTCondor is about to hold it.
func wrote(n ledger.Node, cluster int, c notify.Callback) (ledger.Node, bool) {
	if n.Cluster != cluster && n.Cluster != 0 || n.Status != ledger.StatusOpen || n.Stderr == c.Stderr {
		return n, false
	}
	n.Stderr = c.Stderr
	return n, true
}

// callback changes a row by a job's own report.
func callback(n ledger.Node, cluster int, c notify.Callback, at time.Time) (ledger.Node, bool) {
	before, final := n, !deferred(n, c)
	switch {
	case n.Cluster == cluster:
	case final && (n.Cluster == 0 || n.Claimed && n.Cluster < cluster):
		n.Proc, n.Claimed = begun(n.Proc, cluster), true
	case n.Cluster != 0:
		return n, false // HTCondor shows another
	}
	switch {
	case final && n.Status == ledger.StatusOpen:
		n.Proc = observe(n.Proc, crosscheck.CallbackOf(c.Retcode, c.Node.Exit, at))
	case final && n.ExitCode != nil && *n.ExitCode == c.Node.Exit && turned(n.Status, c.Retcode, c.Node.Exit):
		n.ExitCode, n.Message = &c.Retcode, condor.ExitMessage(c.Retcode)
	}
	if n.Stderr == "" && explains(n, c) {
		n.Stderr = c.Stderr
	}
	return n, !same(n, before)
}

// deferred reports whether a callback does not say that the node has ended.
func deferred(n ledger.Node, c notify.Callback) bool { return n.Deferred && c.Node.Exit != 0 }

// explains reports whether what the job wrote belongs to the failure that the row tells, or may do so.
func explains(n ledger.Node, c notify.Callback) bool {
	if n.Status == ledger.StatusOpen {
		return deferred(n, c)
	}
	return n.Status == ledger.StatusFailed && n.ExitCode != nil &&
		(*n.ExitCode == c.Retcode || *n.ExitCode == c.Node.Exit)
}

// observe applies what HTCondor says.
func observe(p ledger.Proc, o crosscheck.Observation) ledger.Proc {
	if stopped := p.Status == ledger.StatusFutile && p.Cluster != 0; stopped {
		p.Status = ledger.StatusFailed
	}
	is, _ := o.Apply(p)
	if is.Status == p.Status && p.ExitCode != nil && is.ExitCode != nil && turned(p.Status, *p.ExitCode, *is.ExitCode) {
		is.ExitCode, is.Message = p.ExitCode, p.Message
	}
	switch is.Status {
	case ledger.StatusSucceeded:
		is.Stderr = ""
	case p.Status:
		is.Stderr = p.Stderr // of a failed try
	}
	if is.Status == ledger.StatusFailed && crosscheck.RemoveReason(is.Reason) != "" {
		is.Status = ledger.StatusFutile
	}
	return is
}

// turned reports whether a wrapper turns a script's code into another one: that of a success into 0, and 0 into 1 where
// it is none.
func turned(status ledger.Status, code, exit int) bool {
	return code != exit &&
		(status == ledger.StatusSucceeded && exit == 0 || status == ledger.StatusFailed && code == 0 && exit == 1)
}

// begun is the row of a node whose job was just learned of.
func begun(p ledger.Proc, cluster int) ledger.Proc {
	fresh := ledger.Proc{
		UID:       p.UID,
		Attempt:   p.Attempt,
		Namespace: p.Namespace,
		Name:      p.Name,
		Cluster:   cluster,
		Status:    ledger.StatusOpen,
		Changed:   p.Changed,
	}
	if p.Cluster == 0 {
		fresh.Stderr = p.Stderr // its callback came first
	}
	return fresh
}

func same(n, m ledger.Node) bool {
	if !crosscheck.Same(n.Proc, m.Proc) {
		return false
	}
	n.Proc = m.Proc
	return n == m
}
