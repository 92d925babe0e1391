package convert

import (
	"fmt"
	"strings"

	"htc.cern.ch/htcd/internal/convert/dagfile"
	"htc.cern.ch/htcd/internal/convert/submitfile"
)

// dagVerdicts are those of commands that mean the same in every DAG.
var dagVerdicts = map[string]Line{
	"SPLICE":             {Verdict: Taken, Words: "its nodes are put in place"},
	"INCLUDE":            {Verdict: Taken, Words: "its statements are put in place"},
	"SUBMIT-DESCRIPTION": {Verdict: Taken},
	"PARENT":             {Verdict: Taken, Words: "needs"},
	"CONNECT":            {Verdict: Taken, Words: "needs"},
	"VARS":               {Verdict: Taken},
	"PIN_IN":             {Verdict: Taken, Words: "needs"},
	"PIN_OUT":            {Verdict: Taken, Words: "needs"},
	"DONE":               {Verdict: Taken, Words: "it does not run, and what comes after it does not wait"},
	"DOT":                {Verdict: Moot, Words: "htcd graph NAME draws the workflow"},
	"NODE_STATUS_FILE":   {Verdict: Moot, Words: "htcd nodes NAME lists the nodes"},
	"JOBSTATE_LOG":       {Verdict: Moot, Words: "htcd nodes NAME lists the nodes, and Events say what happened"},
	"WEAK": {Verdict: Cannot, Words: "the edge is converted as one without WEAK",
		Instead: "outcome: Any in needs of the step, or of the edge in graph"},
	"TOLERANCE": {Verdict: Cannot, Words: "a number of failures that are forgiven is said of a step, for all its jobs",
		Instead: "maxFailures of the step, or alwaysSucceed"},
	"PRE_SKIP": {Verdict: Cannot, Words: "what runs before the script lets it run, or has the job fail",
		Instead: "the check at the beginning of the step's script, which ends with 0, and leaves the outputs that it " +
			"names, where nothing is to be done"},
	"SAVE_POINT_FILE": {Verdict: Cannot, Words: "a workflow is run again from what failed, not from a file",
		Instead: "resume: FromFailure"},
	"ENV": {Verdict: Cannot, Words: "DAGMan's own environment is htcd's",
		Instead: "job.environment of the steps that use the variables"},
}

// scriptLine says why a script of DAGMan's is not run.
func scriptLine(rest string) Line {
	l := Line{Verdict: Cannot, Words: "nothing of a user's runs on the schedd's host"}
	deferred := strings.HasPrefix(strings.ToUpper(rest), "DEFER") // nothing in a job is run again later
	instead := func(field, step string) string {
		if deferred {
			return step
		}
		return "--scripts-in-jobs, which makes it " + field + " of the step, if the files of the job do for it; or " + step
	}
	switch scriptKind(rest) {
	case "PRE":
		l.Instead = instead("script.before", "a step of its own before")
	case "POST":
		l.Instead = instead("script.after", "a step of its own after")
	default:
		l.Instead = "heldDeadlineSeconds removes jobs that are on hold, and Events tell of them"
	}
	return l
}

// scriptKind is PRE, POST or HOLD: DEFER and DEBUG and their values stand before it.
func scriptKind(rest string) string {
	for word := range strings.FieldsSeq(strings.ToUpper(rest)) {
		if word == "PRE" || word == "POST" || word == "HOLD" {
			return word
		}
	}
	return ""
}

// nodeLine says what has become of a node.
func nodeLine(n *dagfile.Node, step string) Line {
	switch {
	case n.Kind == dagfile.Service:
		return Line{Verdict: Cannot, Words: "no job of a workflow runs beside all others",
			Instead: "an HTCJob of its own, which is deleted when the workflow has ended"}
	case n.Kind == dagfile.Provisioner:
		return Line{Verdict: Cannot, Words: "no job of a workflow has to be ready, rather than ended, before the " +
			"others start", Instead: "an HTCJob of its own, applied before the workflow"}
	case n.Done:
		return Line{Verdict: Taken, Words: "it does not run, and what comes after it does not wait"}
	case n.Kind == dagfile.Subdag && n.Noop && !n.Inlined:
		return Line{Verdict: Taken, Words: "nothing runs; what comes after it needs what is before it"}
	case n.Kind == dagfile.Subdag && n.Noop:
		return Line{Verdict: Taken, Words: "its nodes are put in place"}
	case n.Kind == dagfile.Subdag:
		return Line{
			Verdict: Cannot,
			Words: n.Submit +
				" is not here, and the steps of a workflow are known when it is applied",
			Instead: "convert that file when it has been made, as a workflow of its own, or a step with forEach.itemsFrom of " +
				"a table that a step before writes",
		}
	case n.Noop:
		return Line{Verdict: Taken, Words: "nothing runs; what comes after it needs what is before it"}
	case n.Kind == dagfile.Final && step == "":
		return Line{Verdict: Cannot, Words: "only the workflow has a step that runs whatever has happened, not a " +
			"DAG in it", Instead: "a step that needs the others with outcome: Any"}
	}
	if n.Kind == dagfile.Final {
		return Line{
			Verdict: Taken,
			Words: step + ": it does not change whether the workflow has succeeded, while DAGMan " +
				"takes the end of the FINAL node for that of the DAG",
		}
	}
	return Line{Verdict: Taken, Words: "step " + step}
}

// settingLines say what has become of a node's setting.
var settingLines = map[string]func(*dagfile.Node) Line{
	"RETRY": retryLine, "PRIORITY": priorityLine, "ABORT-DAG-ON": abortLine,
}

// retryLine says what has become of a node's retries, which a step may have to some degree.
func retryLine(n *dagfile.Node) Line {
	switch {
	case n.Kind == dagfile.Subdag && n.Retries > 0:
		return Line{Verdict: Cannot, Words: "steps are retried, not several of them together",
			Instead: "RETRY of the nodes in " + n.Submit}
	case n.Retries > maxRetries:
		return Line{Verdict: Cannot, Words: fmt.Sprintf("a step has at most %d retries", maxRetries),
			Instead: fmt.Sprintf("RETRY %s %d", n.Name, maxRetries)}
	}
	return Line{Verdict: Taken, Words: "retries"}
}

func priorityLine(n *dagfile.Node) Line {
	switch {
	case n.Kind == dagfile.Subdag && n.Priority != 0:
		return Line{Verdict: Cannot, Words: "steps have priorities, not several of them together",
			Instead: "PRIORITY of the nodes in " + n.Submit}
	case n.Priority < -maxPriority || n.Priority > maxPriority:
		return Line{Verdict: Cannot, Words: fmt.Sprintf("a step's priority is from -%d to %d", maxPriority,
			maxPriority), Instead: "a smaller number"}
	}
	return Line{Verdict: Taken, Words: "priority"}
}

func abortLine(n *dagfile.Node) Line {
	switch {
	case n.Abort == nil:
	case n.Kind == dagfile.Subdag:
		return Line{Verdict: Cannot, Words: "steps end a workflow, not several of them together",
			Instead: "ABORT-DAG-ON of the nodes in " + n.Submit}
	case n.Apart():
		return Line{Verdict: Cannot, Words: "it would end the whole workflow, while DAGMan ends only the DAG of the SUBDAG",
			Instead: "that DAG as a workflow of its own"}
	case n.Abort.Code < 1 || n.Abort.Code > 255:
		return Line{Verdict: Cannot, Words: "abortExitCodes are exit codes of failures, from 1 to 255",
			Instead: "a script that ends with such a code"}
	case n.Abort.Return != n.Abort.Code:
		return Line{Verdict: Taken, Words: "abortExitCodes, abortReturn"}
	}
	return Line{Verdict: Taken, Words: "abortExitCodes"}
}

// What a step may have (api/v1alpha1).
const (
	maxRetries  = 1000
	maxPriority = 1_000_000
)

func position(p dagfile.Place) submitfile.Position {
	return submitfile.Position{File: p.File, Line: p.Line}
}
