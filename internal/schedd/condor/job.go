package condor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Tag is what htcd writes into every job ad, so that a cluster can be found by asking the schedd, whatever was lost
// locally.
type Tag struct {
	UID       string // HTCJobUID: metadata.uid of the HTCJob
	Attempt   int    // HTCJobAttempt: number of the run of the HTCJob, from 1
	Namespace string // HTCJobNamespace
	Name      string // HTCJobName
	SpecHash  string // HTCJobSpecHash: hash of the spec sent; empty in jobs of versions before 0.1
	Pool      string // HTCPool: name of the HTCPool it was sent by; empty: none
	Creator   string // HTCJobCreator: who has created the object; empty: not known. Only sent, never read
	Nodes     string // HTCWorkflowNodes: hash of which nodes a DAG has; empty in others
	Repeats   string // HTCWorkflowRepeats: which sequences a DAG repeats, by which rules; empty: none
}

// The names of the tag's attributes. No submit option may set them.
const (
	AttrUID       = "HTCJobUID"
	AttrAttempt   = "HTCJobAttempt"
	AttrNamespace = "HTCJobNamespace"
	AttrCreator   = "HTCJobCreator"
	AttrName      = "HTCJobName"
	AttrSpecHash  = "HTCJobSpecHash"
	AttrPool      = "HTCPool"
	AttrNodes     = "HTCWorkflowNodes"
	AttrRepeats   = "HTCWorkflowRepeats"

	// AttrNumber is the number of a job in its HTCJob where that is not its ProcId: in an attempt that sends only some
	// of the jobs.
	AttrNumber = "HTCJobProc"
)

const (
	// AttrSuccess holds the return codes that are success, separated by commas.
	AttrSuccess = "HTCJobSuccessCodes"

	// AttrOutputs holds the paths of the outputs, joined by commas.
	AttrOutputs = "HTCJobOutputs"
)

// JobStatus is HTCondor's number for a job's state.
type JobStatus int

// HTCondor's job states.
const (
	Idle               JobStatus = 1
	Running            JobStatus = 2
	Removed            JobStatus = 3
	Completed          JobStatus = 4
	Held               JobStatus = 5
	TransferringOutput JobStatus = 6
	Suspended          JobStatus = 7
)

var jobStatusNames = [...]string{
	Idle: "Idle", Running: "Running", Removed: "Removed", Completed: "Completed",
	Held: "Held", TransferringOutput: "TransferringOutput", Suspended: "Suspended",
}

func (s JobStatus) String() string {
	if s >= Idle && int(s) < len(jobStatusNames) {
		return jobStatusNames[s]
	}
	return "JobStatus(" + strconv.Itoa(int(s)) + ")"
}

const (
	HoldCodeSpooling = 16

	// holdOutputNotTransferred: a file that is to be brought back is missing or cannot be read. HTCondor dates such a
	// hold as if it had stopped the job.
	holdOutputNotTransferred = 12

	// reasonStagingFailed is the schedd's own RemoveReason for a cluster whose input files never arrived: nothing of it
	// ran, and it is not a run.
	reasonStagingFailed = "Staging of job files failed"

	// reasonPeriodicRemove begins the RemoveReason of a job that its own PeriodicRemove removed.
	reasonPeriodicRemove = "The job attribute PeriodicRemove expression"

	// reasonDAGLeft begins the RemoveReason of a job that the schedd removed because DAGMan's job had left the queue.
	reasonDAGLeft = "removed because <OtherJobRemoveRequirements"
)

// JobFunc is called for every job of an answer.
type JobFunc = func(Job) error

// Job is the content of one ad from the queue or the history. Times are Unix seconds, 0 if absent.
type Job struct {
	Cluster, Proc      int
	Own                *int // its number in its HTCJob; nil: Proc
	Launcher           bool // it is no job of the HTCJob, but hands a factory of them to the schedd
	Made               int  // how many jobs its factory makes in all; 0: none has made it
	Tag                Tag
	Node               NodeTag // of nodes of DAGs
	Owner              string
	Status, LastStatus JobStatus

	// How the last execution ended; nil if the ad does not say. Held and removed jobs have these too: use Outcome
	// instead.
	ExitBySignal         *bool
	ExitCode, ExitSignal *int
	SuccessExitCode      int    // success_exit_code of the description, 0 by default
	SuccessCodes         string // instead of it, if the spec lists them: "3,5"

	Deadlines

	HoldReasonCode, HoldReasonSubCode int
	// of the hold before, or, of a job that was removed while it was held, of that one
	LastHoldReasonCode int
	RemoteHost         string

	// HTCondor's reasons, and the paths of the outputs; requested only after ErrReasons, which sets Reasoned.
	HoldReason, LastHoldReason, RemoveReason string
	Outputs                                  string
	Reasoned                                 bool

	// Unread: the job exists, but its ad could not be read. Only Number, Status, Owner, and UID and Attempt of the tag
	// are known.
	Unread bool

	QDate, StageInFinish              int64
	EnteredCurrentStatus              int64
	ServerTime                        int64 // the schedd's clock when it sent the ad; 0 in the history
	JobStartDate, JobFinishedHookDone int64
	CompletionDate                    int64 // 0 also while it has not ended
	NumJobStarts                      int

	TransferOutFinished int64 // when its output had been transferred, or that had failed
	LastVacateTime      int64 // when HTCondor last stopped it

	BytesSent int64 // what its sandbox sent back, over all its starts

	// Of its last execution; Use sums them up.
	JobCurrentStartDate          int64
	UserCPU, SysCPU              float64 // seconds
	MemoryUsage, ResidentSetSize int64   // MiB, 0 if the former is an expression of the latter; KiB
	DiskUsage                    int64   // KiB

	RequestCpus, RequestMemory, RequestDisk int64 // MiB and KiB, on each node; 0 if they are expressions
	MaxHosts                                int64 // how many nodes it has
	MemoryProvisioned                       int64 // MiB, what the slot has

	Factory *Factory // it is none, but what makes the jobs of its cluster: it has no Proc and no Status
}

// Factory is how far a factory of jobs is. How many it makes in all is Job.Made.
type Factory struct {
	Next   int    // number of the job that it makes next: those before were made
	Open   bool   // the launcher has let it make jobs
	Paused string // why it makes no more jobs, though not all were made; empty: it goes on
}

// ID returns the job's number as HTCondor prints it, "cluster.proc".
func (j Job) ID() string { return strconv.Itoa(j.Cluster) + "." + strconv.Itoa(j.Proc) }

// Number returns the job's number in its HTCJob.
func (j Job) Number() int {
	if j.Own != nil {
		return *j.Own
	}
	return j.Proc
}

// Done reports whether the job ran to its end. The history shows a completed job removed with condor_rm as removed,
// with LastJobStatus 4.
func (j Job) Done() bool {
	return j.Status == Completed || j.Status == Removed && j.LastStatus == Completed
}

// Over reports whether the job has ended or was removed.
func (j Job) Over() bool { return j.Status == Completed || j.Status == Removed }

// Held reports whether the job is held for any reason except spooling.
func (j Job) Held() bool { return j.Status == Held && j.HoldReasonCode != HoldCodeSpooling }

// Spooling reports whether the job still waits for its input files. A job whose files have all arrived may show the
// code for another second.
func (j Job) Spooling() bool { return j.Status == Held && j.HoldReasonCode == HoldCodeSpooling }

// Spooled reports whether all input files of the job arrived. Only this distinguishes a cluster that will run from one
// that is stuck because its submit was killed.
func (j Job) Spooled() bool { return j.StageInFinish > 0 }

// spoolTime returns how long a cluster may take to receive its files before it counts as stuck. A killed condor_submit
// leaves one that waits indefinitely; a live one takes 1.5 ms per proc (measured) and is given ten times that.
func spoolTime(procs int) time.Duration {
	return time.Minute + time.Duration(procs)*15*time.Millisecond
}

// Stuck reports whether a job of a cluster of so many procs still waits for files that will never arrive.
func (j Job) Stuck(procs int, now time.Time) bool {
	return j.Spooling() && !j.Spooled() && now.Sub(time.Unix(j.QDate, 0)) > spoolTime(procs)
}

// StagingFailed reports whether the schedd removed the job because its input files never arrived. Such a job never ran;
// it must not count as a run.
func (j Job) StagingFailed() bool {
	return j.Status == Removed && strings.HasPrefix(j.RemoveReason, reasonStagingFailed)
}

// LeftByDAG reports whether the schedd removed the job because DAGMan's job had left the queue.
func (j Job) LeftByDAG() bool {
	return j.Status == Removed && !j.Done() && strings.HasPrefix(j.RemoveReason, reasonDAGLeft)
}

// OutcomeState says whether a job is over, and how.
type OutcomeState int

// The outcomes.
const (
	OutcomeOpen OutcomeState = iota
	OutcomeSucceeded
	OutcomeFailed
	OutcomeRemoved
)

func (s OutcomeState) String() string {
	return [...]string{"Open", "Succeeded", "Failed", "Removed"}[s]
}

// Outcome is what an ad says about the end of its job. Reason and Message are for a condition: a CamelCase word and a
// sentence.
type Outcome struct {
	State   OutcomeState
	Reason  string
	Message string
	// ExitCode and Signal are set only if the script ran to its end.
	ExitCode, Signal *int
}

// Outcome applies, in order:
//
//  1. A job that ran to its end (see Done) succeeded if it exited by itself with the success code; else it failed,
//     because an output is missing, by code or by signal.
//  2. A job that was removed because it ran, or was held or idle, beyond its deadline failed.
//  3. Any other removed job is removed; its Exit attributes are left over from the kill.
//  4. Everything else is open: held is not failed, and an earlier attempt's return code says nothing while retries are
//     left.
func (j Job) Outcome() Outcome {
	late, isLate := j.tooLate()
	switch {
	case j.Done():
		return j.ended()
	case j.StagingFailed():
		return Outcome{State: OutcomeRemoved, Reason: "StagingFailed", Message: j.RemoveReason}
	case isLate:
		return late
	case j.Status == Removed:
		m := j.RemoveReason
		if m == "" {
			m = "removed from the queue; HTCondor gives no reason"
		}
		return Outcome{State: OutcomeRemoved, Reason: "Removed", Message: m}
	}
	return Outcome{State: OutcomeOpen}
}

// Returned returns the return code of a job that HTCondor holds, or held until its removal, although its script had
// ended: by on_exit_hold, or because its output could not be transferred. A job that HTCondor stopped to hold it has a
// return code, too, but that is of the kill (23.9).
func (j Job) Returned() *int {
	code := j.HoldReasonCode
	if j.Status == Removed && j.LastStatus == Held {
		code = j.LastHoldReasonCode
	} else if !j.Held() {
		return nil
	}
	began := j.JobCurrentStartDate
	if began == 0 || j.TransferOutFinished < began || j.ExitBySignal == nil || *j.ExitBySignal {
		return nil
	}
	if stopped := j.LastVacateTime >= began; stopped && code != holdOutputNotTransferred && code != HoldTooMuchOutput {
		return nil
	}
	return j.ExitCode
}

// succeeds reports whether a return code is a success.
func (j Job) succeeds(code int) bool {
	if j.SuccessCodes == "" {
		return code == j.SuccessExitCode
	}
	return slices.Contains(strings.Split(j.SuccessCodes, ","), strconv.Itoa(code))
}

func (j Job) ended() Outcome {
	if o, missing := j.missing(); missing {
		return o
	}
	if o, over := j.interactive(); over {
		return o
	}
	if o, is := j.unsaved(); is {
		return o
	}
	if o, is := j.noImage(); is {
		return o
	}
	switch {
	case j.ExitBySignal != nil && *j.ExitBySignal:
		o := Outcome{State: OutcomeFailed, Reason: "Signalled", Message: "killed by a signal", Signal: j.ExitSignal}
		if j.ExitSignal != nil {
			o.Message = fmt.Sprintf("killed by signal %d", *j.ExitSignal)
		}
		return o
	case j.ExitCode == nil:
		return Outcome{State: OutcomeFailed, Reason: "NoExitCode", Message: "completed, but its ad holds no ExitCode"}
	case j.succeeds(*j.ExitCode):
		return Outcome{
			State:    OutcomeSucceeded,
			Reason:   "Completed",
			Message:  ExitMessage(*j.ExitCode),
			ExitCode: j.ExitCode,
		}
	}
	return Outcome{State: OutcomeFailed, Reason: "ExitCode", Message: ExitMessage(*j.ExitCode), ExitCode: j.ExitCode}
}

// ExitMessage explains an exit code. For a program killed by a signal, shells and container tools return 128 plus the
// signal's number, but a program may also choose such a code itself; as it may 255, which apptainer returns if it
// cannot start a container.
func ExitMessage(code int) string {
	if code == 255 {
		return "exit code 255 (of the script, or of apptainer if there is no such image or it cannot start the container: standard error says which)"
	}
	if name := unix.SignalName(syscall.Signal(code - 128)); code > 128 && name != "" {
		return fmt.Sprintf("exit code %d (128 and %d, as after %s)", code, code-128, name)
	}
	return fmt.Sprintf("exit code %d", code)
}

// Destination fills the place-holders in the URL or the reference to which an output goes.
func (t Tag) Destination(text, proc string) string {
	return strings.NewReplacer(
		"{namespace}",
		t.Namespace,
		"{name}",
		t.Name,
		"{attempt}",
		fmt.Sprint(t.Attempt),
		"{proc}",
		proc,
	).Replace(
		text,
	)
}
