package aggregate

import (
	"context"
	"io"
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// Query is what a user asks for.
type Query struct {
	Resource        string // htcjobs or htcworkflows
	Namespace, Name string
	User            string // the user's name at the apiserver
	Proc            int    // of an HTCJob
	Node            Place  // of an HTCWorkflow
	Attempt         int    // 0: the newest

	// Of a log.
	Stderr    bool
	Follow    bool  // wait for it, and continue until the job has ended
	TailLines int   // only the last lines of what exists; -1: all
	Offset    int64 // bytes to skip, which the reader already has; overrides TailLines

	// Of an archive or a list of files, of Node.Step or of all steps.
	AllProcs    bool // all from Proc on, as far as they exist; of nodes, by their numbers within the attempt
	AnySequence bool // of nodes: whatever Node.Sequence says

	File string // of an archive: this file of each job alone; empty: all

	// Of a list of nodes, of Node.Step or of all steps, or of jobs, from Proc on.
	State NodeState // empty: any
	After NodeKey   // of nodes: only those that come after it
	Limit int       // most lines; 0: all

	Past PastQuery // of the history
}

// PastQuery narrows the history, that of one namespace or of all.
type PastQuery struct {
	Since   time.Time // only attempts that were begun since then
	Account string    // only those whose jobs were HTCondor's for this account; empty: any
	Failed  bool      // only those of which a job has failed, or that were refused
	Before  PastKey   // only those that come after it
}

// PastKey is where an attempt stands in the history, the newest first. The zero value comes before all of them.
type PastKey struct {
	Created time.Time `json:"created"` // when htcd began to send it
	UID     string    `json:"uid"`
	Attempt int       `json:"attempt"`
}

// Past is an attempt in the history, as a line of JSON.
type Past struct {
	Kind      string `json:"kind"` // HTCJob or HTCWorkflow
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	PastKey
	User      string          `json:"user,omitempty"` // HTCondor's account
	Pool      string          `json:"pool,omitempty"` // name of the HTCPool
	Schedd    string          `json:"schedd,omitempty"`
	Cluster   int             `json:"cluster,omitempty"`
	State     string          `json:"state"` // Open, Succeeded, Failed, Refused or Removed
	Reason    string          `json:"reason,omitempty"`
	Jobs      int             `json:"jobs"` // of an HTCWorkflow: its nodes
	Succeeded int             `json:"succeeded"`
	Failed    int             `json:"failed"`
	Submitted time.Time       `json:"submitted,omitzero"`
	Started   time.Time       `json:"started,omitzero"`  // when its first job started, by HTCondor's clock
	Finished  time.Time       `json:"finished,omitzero"` // when its last job ended, by HTCondor's clock
	Ended     time.Time       `json:"ended,omitzero"`    // when htcd knew of the end
	Deleted   time.Time       `json:"deleted,omitzero"`  // when the object, or its old attempt, was deleted
	Usage     *v1alpha1.Usage `json:"usage,omitempty"`   // what its jobs used
}

// Place says which node of a workflow is meant.
type Place struct {
	Step     string
	Sequence int    // from 0, or AllSequences
	Index    int    // within the step's forEach, from 0
	Name     string // of a node of spec.graph, in place of the others; empty: they say which
}

// AllSequences is the Sequence of a node that is one for all of them.
const AllSequences = -1

// NodeState is where a node, or a job of an HTCJob, stands.
type NodeState string

// The states of nodes.
const (
	NodeWaiting NodeState = "waiting" // for nodes before it, or to be sent
	NodeIdle    NodeState = "idle"    // in HTCondor, for a slot
	NodeRunning NodeState = "running"
	NodeHeld    NodeState = "held"
	NodeDone    NodeState = "done"
	NodeFailed  NodeState = "failed"
	NodeFutile  NodeState = "futile" // it never runs to its end: one before it failed, or htcd removed it
)

// NodeStates are all of them.
var NodeStates = []NodeState{NodeWaiting, NodeIdle, NodeRunning, NodeHeld, NodeDone, NodeFailed, NodeFutile}

// NodeKey orders the nodes of a workflow. The zero value comes before all of them.
type NodeKey struct {
	DAG  int `json:"dag"`  // its number among those of the workflow, from 1
	Node int `json:"node"` // its number there, from 0
}

// Node is a node of a workflow, as a line of JSON in a list of nodes.
type Node struct {
	Step     string    `json:"step"`
	Sequence *int      `json:"sequence,omitempty"` // absent: one for all of them
	Index    int       `json:"index"`
	Name     string    `json:"name,omitempty"` // of a node of spec.graph
	State    NodeState `json:"state"`
	JobID    string    `json:"jobid,omitempty"` // in HTCondor
	ExitCode *int      `json:"exitCode,omitempty"`
	Signal   *int      `json:"signal,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Message  string    `json:"message,omitempty"`
	Stderr   string    `json:"stderr,omitempty"` // its end, if it failed
	NodeKey
}

// Proc is a job of an HTCJob, as a line of JSON in a list of jobs.
type Proc struct {
	Proc     int       `json:"proc"`
	State    NodeState `json:"state"` // any but futile
	JobID    string    `json:"jobid,omitempty"`
	ExitCode *int      `json:"exitCode,omitempty"`
	Signal   *int      `json:"signal,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Message  string    `json:"message,omitempty"`
	Stderr   string    `json:"stderr,omitempty"` // its end, if it failed
	Output   bool      `json:"output,omitempty"` // htcd has it
	Changed  time.Time `json:"changed,omitzero"` // when it was sent, or ended
}

// Attempt is an attempt of an HTCJob, as a line of JSON in a list of attempts, the oldest first.
type Attempt struct {
	Attempt   int       `json:"attempt"`
	State     string    `json:"state"` // Intent, Submitted, Refused or Removed
	Schedd    string    `json:"schedd,omitempty"`
	Cluster   int       `json:"cluster,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Message   string    `json:"message,omitempty"`
	Created   time.Time `json:"created"`            // when htcd began to send it
	Submitted time.Time `json:"submitted,omitzero"` // when the schedd had it
	Started   time.Time `json:"started,omitzero"`   // when its first job started, by HTCondor's clock
	Finished  time.Time `json:"finished,omitzero"`  // when its last job ended, by HTCondor's clock
	Ended     time.Time `json:"ended,omitzero"`     // when htcd knew of the end
	Jobs      int       `json:"jobs"`
	Idle      int       `json:"idle,omitempty"`
	Running   int       `json:"running,omitempty"`
	Held      int       `json:"held,omitempty"`
	Done      int       `json:"done,omitempty"`
	Failed    int       `json:"failed,omitempty"`
}

// Answer is some output. Its Write is called once, and Close always.
type Answer struct {
	Attempt int    // 0: not yet known
	Jobs    int    // how many the attempt has, including those without output; 0: unknown
	Item    string // for people: the variables that only this job has; empty: none, or not known yet
	Offset  int64  // of the first byte that Write writes
	Write   func(ctx context.Context, w io.Writer) error
	Close   func()
}

// File is a file of a job's output, as a line of JSON in a list of files.
type File struct {
	Job  int    `json:"job"`            // or the number of the node within the attempt
	Node string `json:"node,omitempty"` // STEP/JOBID, or STEP/JOBID/NUMBER with forEach
	Path string `json:"path"`           // in the job's directory; with a replacement for what is no UTF-8
	Size int64  `json:"size"`           // bytes
}

// Source finds output. Its errors are a *StatusError of apimachinery if the user can do something about them.
type Source interface {
	// Place reserves room for an answer, which one who reads slowly keeps until give is called.
	Place(q Query) (give func(), err error)
	Log(ctx context.Context, q Query) (*Answer, error)
	Archive(ctx context.Context, q Query) (*Answer, error)
	Files(ctx context.Context, q Query) (*Answer, error)
	Usage(ctx context.Context, q Query) (*Answer, error)
	Procs(ctx context.Context, q Query) (*Answer, error)
	Attempts(ctx context.Context, q Query) (*Answer, error)
	NodeLog(ctx context.Context, q Query) (*Answer, error)
	Nodes(ctx context.Context, q Query) (*Answer, error)
	NodeUsage(ctx context.Context, q Query) (*Answer, error)
	NodeArchive(ctx context.Context, q Query) (*Answer, error)
	NodeFiles(ctx context.Context, q Query) (*Answer, error)
	History(ctx context.Context, q Query) (*Answer, error)
}
