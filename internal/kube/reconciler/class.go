package reconciler

// Class is a class of actions that need HTCondor. Each has its own queue and workers, so that a submission never
// waits for somebody else's slow removal, nor the other way round.
type Class int

const (
	Submitting Class = iota
	Asking           // questions about what became of an attempt
	Removing         // removals of jobs from HTCondor that the object outlives
	Deleting         // removals of all jobs of a deleted object, which wait for a command that removes them together
	Classes          // the number of classes
)
