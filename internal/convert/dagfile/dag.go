package dagfile

import "fmt"

// Place is a line of a file, counted from 1: the first one of a statement that is continued.
type Place struct {
	File string
	Line int
}

func (p Place) String() string { return fmt.Sprintf("%s:%d", p.File, p.Line) }

// Error is what is wrong with a DAG file.
type Error struct {
	Place
	Message string
}

func (e *Error) Error() string { return e.Place.String() + ": " + e.Message }

// DAG is what a file comes to, with all that it splices and includes.
type DAG struct {
	// Nodes are those of the file in the order of their statements, then those of its splices.
	Nodes []*Node
	// Edges has each edge once, in the order of the statements.
	Edges []Edge
	// Limits are the values of MAXJOBS by category. Categories of splices have the splice's name before theirs.
	Limits map[string]int
	// Statements are those of all files, each once although its file may be spliced several times.
	Statements []Statement
}

// Edge says that Child waits for Parent; both are indexes of DAG.Nodes.
type Edge struct {
	Parent, Child int
	// Weak means that the child also runs when the parent has failed.
	Weak bool
}

// Statement is one statement of a file.
type Statement struct {
	Place
	// Command is the command as the manual writes it, such as ABORT-DAG-ON.
	Command string
	// Rest is what follows it, with lines that are continued joined.
	Rest string
}

// Kind is what a node is there for.
type Kind string

// The kinds of nodes.
const (
	Job         Kind = "JOB"
	Subdag      Kind = "SUBDAG"
	Final       Kind = "FINAL"
	Service     Kind = "SERVICE"
	Provisioner Kind = "PROVISIONER"
)

// Node is one node of the graph.
type Node struct {
	Place
	Kind Kind
	// Name is the node's, with the names of the splices that it is in before it: outer+inner+node.
	Name string
	// Dir is where condor_submit runs, relative to where condor_submit_dag does; "" for the same.
	Dir string
	// Submit is the submit file, or the DAG file of a SUBDAG, relative to Dir; "" if there is a Description.
	Submit string
	// Description is the submit description that is written in a DAG file.
	Description *Description
	// Noop and Done say that nothing runs.
	Noop, Done bool
	// Inlined is a SUBDAG whose nodes Inline has put in its place.
	Inlined bool
	// Vars are the variables of the submit description in the order in which they were set, each name once.
	Vars []Var
	// Retries is how often the node runs again when it has failed, unless its exit code is UnlessExit, if that is not
	// 0.
	Retries, UnlessExit int
	Abort               *Abort
	// Pre and Post run before and after the node's jobs. Of several for one node DAGMan runs the last.
	Pre, Post *Script
	Priority  int
	Category  string

	prefix        int // of the name, which Inline has put before it
	scope         *scope
	id            int
	parent, child bool // of another one
}

// Job is what $(JOB) stands for: the node's name in its own DAG.
func (n *Node) Job() string { return n.Name[n.prefix:] }

// Apart says whether the node is one of a SUBDAG, which has a DAGMan of its own.
func (n *Node) Apart() bool { return n.prefix > 0 }

// Abort says that the DAG ends when a node has ended with Code; then DAGMan ends with Return, or with Code too. Of
// several for one node DAGMan follows the last.
type Abort struct {
	Place
	Code, Return int
}

// Script is a program that DAGMan runs where it runs itself.
type Script struct {
	Place
	// Words are the program and its arguments.
	Words []string
	// Deferred means that it may ask to be run again later.
	Deferred bool
}

// Var is a variable of a node's submit description, or with a name that begins with "My." an attribute of its jobs.
type Var struct {
	Place
	Name, Value string
	// Append means that it is set after the description is read, and so replaces what that says; otherwise before.
	Append bool
}

// Description is a submit description that is written in a DAG file. Its place is that of its first line.
type Description struct {
	Place
	Text string
}
