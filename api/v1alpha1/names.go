package v1alpha1

// The names htcd uses on objects.
const (
	// Finalizer stands on every HTCJob and HTCWorkflow before anything is sent for it, and
	// goes when a successful answer of the schedd shows none of its jobs alive.
	Finalizer = "finalizer.htc.cern.ch"

	// AbandonAnnotation, set to "true", lets a deleted one go although its
	// jobs may still be alive in a schedd that does not answer.
	AbandonAnnotation = "htc.cern.ch/abandon"

	// RerunAnnotation runs an ended HTCJob or HTCWorkflow once more whenever it gets a new value.
	RerunAnnotation = "htc.cern.ch/rerun"

	// RerunProcsAnnotation beside it says which jobs of the HTCJob run again: "failed", or numbers such as "3,7-9". The
	// others keep what they have ended with.
	RerunProcsAnnotation = "htc.cern.ch/rerun-procs"

	// CancelProcsAnnotation has some jobs of one attempt removed from HTCondor: the attempt, and their numbers, such as
	// "1/3,7-9". The others go on.
	CancelProcsAnnotation = "htc.cern.ch/cancel-procs"

	// CreatorAnnotation names who has created the object. deploy/components/creator sets it and keeps it; without that
	// anybody could.
	CreatorAnnotation = "htc.cern.ch/creator"

	// AttemptAnnotation on what spec.logsPod leaves says of which attempt it is.
	AttemptAnnotation = "htc.cern.ch/attempt"
)

const (
	// Up to MaxListedJobs jobs, status.jobid of an HTCJob lists every id; of more jobs it lists ListedOfMany. An id is
	// at most some 20 bytes, and every watcher gets the whole object on every change.
	MaxListedJobs = 1000
	ListedOfMany  = 100

	// MaxFailures is how many failed jobs, or nodes, status.failures describes.
	MaxFailures = 10
)
