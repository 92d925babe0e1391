package condor

// Cluster is a cluster made by condor_submit: procs 0 to Procs-1.
type Cluster struct {
	ID    int
	Procs int
}
