package v1alpha1

// Graph is a graph as its nodes and edges. The apiserver would refuse rules about so many as too expensive: htcd itself
// refuses what is no graph, and names the node or edge.
//
// +kubebuilder:validation:XValidation:rule="has(self.nodes) || has(self.nodesFrom)",message="a graph has nodes: write them down, or name a table of them in nodesFrom"
type Graph struct {
	// Nodes are the jobs. Of more than 1,000 make a table, and name it in nodesFrom.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	Nodes []GraphNode `json:"nodes,omitempty"`

	// NodesFrom takes further nodes from tables, which are read when the attempt begins. The columns node and step have
	// a node's name and its step, and a column priority its priority; the others are variables of its script.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:XValidation:rule="!has(self.step)",fieldPath=".step",message="only the jobs of forEach can be those of a table that a step writes: name a ConfigMap or an HTCJob"
	NodesFrom []ItemsFrom `json:"nodesFrom,omitempty"`

	// Edges say which nodes come before which. Of more than 1,000 make a table, and name it in edgesFrom.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	Edges []GraphEdge `json:"edges,omitempty"`

	// EdgesFrom takes further edges from tables. The columns parents and children have names of nodes, separated by
	// blanks; a column outcome may be Any.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:XValidation:rule="!has(self.step)",fieldPath=".step",message="only the jobs of forEach can be those of a table that a step writes: name a ConfigMap or an HTCJob"
	EdgesFrom []ItemsFrom `json:"edgesFrom,omitempty"`
}

// NodeName is what a node of a graph is called: its variable jobid, and in STEP/NAME the directory of its output.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`
type NodeName string

// GraphNode is one job of a step.
type GraphNode struct {
	// Name is what it is called; no other node may have the same name.
	// +required
	Name NodeName `json:"name"`

	// Step is what it runs.
	// +required
	Step StepName `json:"step"`

	// Priority orders it among the jobs of one account in HTCondor, in place of that of its step: higher numbers first.
	// +optional
	// +kubebuilder:validation:Minimum=-1000000
	// +kubebuilder:validation:Maximum=1000000
	Priority *int32 `json:"priority,omitempty"`

	// Variables are those of its script, besides and before those of environment.
	// +optional
	Variables Item `json:"variables,omitempty"`
}

// GraphEdge says that nodes run when others have succeeded, or have ended: each of the children after all of the
// parents.
type GraphEdge struct {
	// Parents are the ones before.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	Parents []NodeName `json:"parents"`

	// Children are the ones after them.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	Children []NodeName `json:"children"`

	// Outcome is Succeeded, when absent: the parents must have succeeded; or Any: they must only have ended, or can no
	// longer run.
	// +optional
	Outcome Outcome `json:"outcome,omitempty"`
}
