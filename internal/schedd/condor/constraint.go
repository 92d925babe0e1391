package condor

import (
	"fmt"
	"strconv"
	"strings"

	"htc.cern.ch/htcd/internal/classad"
)

// Constraint says in HTCondor's language which jobs are meant; the empty one means all. Only internal/schedd writes one
// as text, with parentheses around alternatives, so that all others can be combined as they are.
type Constraint string

const (
	// Tagged matches every job sent by any htcd.
	Tagged Constraint = AttrUID + " =!= undefined"

	// NodesTagged matches the nodes of every DAG sent by any htcd.
	NodesTagged Constraint = AttrWorkflow + " =!= undefined"

	// Unspooled matches jobs whose files have not arrived.
	Unspooled Constraint = "StageInFinish =?= undefined"

	// Numbered matches jobs, but not the ad of a factory of them.
	Numbered Constraint = "ProcId =!= undefined"

	// None matches no job, and Any every one.
	None Constraint = "false"
	Any  Constraint = "true"
)

// And narrows a constraint by others.
func (c Constraint) And(others ...Constraint) Constraint {
	for _, other := range others {
		c += " && " + other
	}
	return c
}

// Or returns what matches at least one of the constraints.
func Or(all ...Constraint) Constraint {
	either := all[0]
	for _, one := range all[1:] {
		either += " || " + one
	}
	return "(" + either + ")"
}

// NotIn narrows a constraint to the jobs that are in none of these states, and the ads without one, of factories.
func (c Constraint) NotIn(states ...JobStatus) Constraint {
	for _, status := range states {
		c += Constraint(fmt.Sprintf(" && JobStatus =!= %d", status))
	}
	return c
}

// In narrows a constraint to one cluster.
func (c Constraint) In(cluster int) Constraint {
	return Constraint(fmt.Sprintf("ClusterId =?= %d && (%s)", cluster, c))
}

// Constraint matches the jobs of this one run.
func (t Tag) Constraint() Constraint {
	return Constraint(fmt.Sprintf("%s =?= %s && %s =?= %d", AttrUID, classad.Quote(t.UID), AttrAttempt, t.Attempt))
}

// NodesConstraint matches the nodes of the DAG that has this tag, but not the DAG's own job.
func (t Tag) NodesConstraint() Constraint {
	return Constraint(fmt.Sprintf("%s =?= %s && %s =?= %d", AttrWorkflow, classad.Quote(t.UID), AttrDAG, t.Attempt))
}

// UIDConstraint matches the jobs of every run of one HTCJob.
func UIDConstraint(uid string) Constraint {
	return Constraint(AttrUID + " =?= " + classad.Quote(uid))
}

// UIDsConstraint matches the jobs of every run of these HTCJobs.
func UIDsConstraint(uids ...string) Constraint { return MemberOf(AttrUID, uids) }

// NodesConstraint matches the nodes of every DAG of these workflows.
func NodesConstraint(uids ...string) Constraint { return MemberOf(AttrWorkflow, uids) }

// MemberOf matches the jobs whose attribute is one of these UIDs.
func MemberOf(attribute string, uids []string) Constraint {
	quoted := make([]string, len(uids))
	for i, uid := range uids {
		quoted[i] = classad.Quote(uid)
	}
	return Constraint(fmt.Sprintf("member(%s, {%s})", attribute, strings.Join(quoted, ",")))
}

// LaterConstraint matches the jobs of an HTCJob's attempts after that one.
func LaterConstraint(uid string, attempt int) Constraint {
	return UIDConstraint(uid).And(Constraint(fmt.Sprintf("%s > %d", AttrAttempt, attempt)))
}

// OneJob matches the job with this number, whoever sent it.
func OneJob(cluster, proc int) Constraint {
	return Constraint(fmt.Sprintf("ClusterId == %d && ProcId == %d", cluster, proc))
}

// ClusterConstraint matches the jobs of the given clusters that htcd sent. It is a membership test because a schedd
// evaluates that three times faster than an OR of a hundred comparisons. Without clusters it matches nothing.
func ClusterConstraint(clusters ...int) Constraint {
	return Tagged.And(members("ClusterId", clusters))
}

// Clusters matches the jobs that htcd sent with a cluster number from the first to the last.
func Clusters(first, last int) Constraint { return Tagged.And(span("ClusterId", first, last)) }

// NumberAttribute returns what an ad has a job's number in its HTCJob in: own means that it is Job.Own.
func NumberAttribute(own bool) string {
	if own {
		return AttrNumber
	}
	return "ProcId"
}

// Numbers matches the jobs with a number in their HTCJob, as NumberAttribute has it, from the first to the last.
func Numbers(own bool, first, last int) Constraint { return span(NumberAttribute(own), first, last) }

// NotNumbers matches the jobs with none of these numbers in their HTCJob, and the ad of a factory of them.
func NotNumbers(own bool, numbers []int) Constraint {
	return Or("ProcId =?= undefined", "!"+members(NumberAttribute(own), numbers))
}

// Procs matches the jobs with these numbers in their clusters.
func Procs(numbers []int) Constraint { return members("ProcId", numbers) }

// ProcsFrom matches the jobs with a number in their cluster from one up to, but not including, another; 0: no other.
func ProcsFrom(from, to int) Constraint { return upTo("ProcId", from, to) }

// NodeRange matches the nodes with a number from one up to, but not including, another.
func NodeRange(from, to int) Constraint { return upTo(AttrNode, from, to) }

func upTo(attribute string, from, to int) Constraint {
	if to == 0 {
		return Constraint(fmt.Sprintf("%s >= %d", attribute, from))
	}
	return span(attribute, from, to-1)
}

func span(attribute string, first, last int) Constraint {
	return Constraint(fmt.Sprintf("%[1]s >= %[2]d && %[1]s <= %[3]d", attribute, first, last))
}

func members(attribute string, numbers []int) Constraint {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.Itoa(n)
	}
	return Constraint(fmt.Sprintf("member(%s, {%s})", attribute, strings.Join(texts, ",")))
}
