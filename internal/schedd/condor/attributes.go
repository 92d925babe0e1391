package condor

// The names of a job's streams among its output. They are HTCondor's own names in the job's directory: a file to which
// the script gives such a name is the stream.
const (
	Stdout = "_condor_stdout"
	Stderr = "_condor_stderr"
)

// AttrFetched lets a completed job leave the queue.
const AttrFetched = "HTCJobFetched"

// HoldTooMuchOutput is the hold code of a job that left more output than Description.MaxOutput.
const HoldTooMuchOutput = 33

const (
	// AttrLauncher marks the launcher.
	AttrLauncher = "HTCJobLauncher"
	// AttrMade is, in the ads of a factory and its jobs, how many jobs it makes in all.
	AttrMade = "HTCJobFactory"
)
