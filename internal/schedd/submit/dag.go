package submit

import (
	"strconv"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// DAG is a graph of jobs that is sent as one job: HTCondor's DAGMan, which sends the nodes at the schedd's host. Its
// files are those of dag.go, dagnode.go, dagarchive.go and dagman.sh, or dagfactory.go.
type DAG struct {
	Tag       condor.Tag // of DAGMan's job; Attempt is the number of the DAG among all of its workflow
	BatchName string
	Steps     []DAGStep
	Nodes     []DAGNode // numbered from 0
	MaxIdle   int       // nodes that wait for a slot at a time; 0: as many as DAGMan's own limit
	MaxJobs   int       // nodes in the queue at a time; 0: no limit
	Pace      Pace      // how fast nodes are sent

	// FactoryAbove is how many nodes DAGMan sends at most where a factory can make them, and Sandbox.Factory says
	// whether one does; 0: DAGMan sends any.
	FactoryAbove int
}

// Pace is that so many nodes are sent together, after so many seconds again; the zero value means DAGMan's own.
type Pace struct{ Nodes, Seconds int }

// DAGStep is what some nodes have in common. Of its Description, Tag, BatchName, Queue and Items are not used; Priority
// and Retries are in its JobOptions.
type DAGStep struct {
	Description
	Name           string // of the step, for messages
	MaxJobs        int    // its nodes in the queue at a time; 0: no limit
	MayFail        int    // so many of the nodes that one node needs, and that node runs all the same
	Category       string // of the steps that share MaxJobs, letters and digits; empty: it is the step's alone
	AbortExitCodes []int  // codes after which a node is not tried again
	RetryExitCodes []int  // codes after which a node is tried again; none: any failure. Retries are needed beside them
	AlwaysSucceeds bool   // a failure counts as success: only the callback tells the script's return code
	Timed          bool   // how long its scripts run is a result of theirs, duration, in seconds
	Pulls          []Pull
	PullToken      string   // with which its nodes ask PullURL, and no other step's
	Keeps          []string // further outputs, as Output.Path, which later DAGs need
}

// Pull is a file of an earlier node, or several, that stay at the schedd's host.
type Pull struct {
	From    int    // number of the step in DAG.Steps
	Path    string // as Output.Path; it is an output of that step, whether its Outputs name it or not
	Several bool   // the files lie at <place of their node>/<path>, as there is more than one such node
}

// DAGNode is one job of a step. All that is a user's is in files that only the job's account can read.
type DAGNode struct {
	Step      int      // number of the step in DAG.Steps
	Place     string   // <jobid> or <jobid>/<index>: where its files lie in a node that pulls from several
	Index     int      // number among the nodes of its step and sequence: $1 of the script, and HTCPROCID
	Parents   []int    // numbers of the nodes that must have succeeded before
	Ended     []int    // and of those that must only have ended, or can no longer run
	Variables string   // lines NAME=value
	Pulls     [][]int  // for each of the step's pulls, the nodes that it pulls from; they come before
	Done      bool     // it has succeeded in an earlier DAG, and does not run; none pulls from it
	Priority  *int     // in place of that of its step; nil: nothing
	Inputs    []string // directories in InputsDir whose contents it gets; several nodes may name one
}

// DAGDir is the directory of a node's output, in that which Transfer brings for proc 0 of a DAG: its streams, and the
// rest as that of an HTCJob's proc with outputs.
func DAGDir(node int) string { return "n/" + strconv.Itoa(node) }
