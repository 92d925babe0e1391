package crosscheck

import (
	"fmt"
	"time"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Sources of observations: the source column of the ledger.
const (
	FromCallback  = "callback"
	FromHTCondor  = "crosscheck"
	reasonHeld    = "Held"
	ReasonRemoved = "Removed"
	ReasonLost    = "Lost"

	// ReasonPoolSuspended: htcd holds the job because its pool is suspended.
	ReasonPoolSuspended = "PoolSuspended"

	// ReasonStagingFailed: the job's files never arrived at the schedd.
	ReasonStagingFailed = "StagingFailed"
)

// Observation is what one source says about one proc.
type Observation struct {
	source string
	at     time.Time
	start  bool   // the job says that its script begins; no other field is set
	wrote  bool   // the job says what its script wrote, and nothing else; only stderr is set
	stderr string // the end of its standard error, as the job tells it
	// queue and history answered and showed no such job; of the fields below only lostAfter and stop are set
	absent    bool
	lostAfter time.Duration // how long it must leave no trace to be lost
	stop      string        // why htcd removes this run's jobs, "" if it does not
	jobStatus condor.JobStatus
	outcome   condor.Outcome
	hold      string        // why it is held
	byPool    bool          // it is held because its pool is suspended
	started   time.Time     // when HTCondor first started it, by the schedd's clock
	ahead     time.Duration // of the schedd's clock, if it is more than Settling covers
	finished  time.Time     // when it ended; zero: it has not, or never started
	account   string        // its Owner
	usage     string        // what it used, in the form of usage.Use

	read     *ledger.Proc // the row before HTCondor was asked; nil: unknown
	told     string       // what the job had told of its standard error before HTCondor was asked
	evidence string       // for humans: who showed what
}

// Callback returns what a job's own report of its return code says.
func Callback(code int, at time.Time) Observation { return CallbackOf(code, code, at) }

// CallbackOf is Callback for a job that ends with another code than its script, 0 if that is a success.
func CallbackOf(code, exit int, at time.Time) Observation {
	o := Observation{source: FromCallback, at: at, outcome: condor.Outcome{
		State: condor.OutcomeSucceeded, Reason: "Completed", ExitCode: &code, Message: condor.ExitMessage(code),
	}}
	if exit != 0 {
		o.outcome.State, o.outcome.Reason = condor.OutcomeFailed, "ExitCode"
	}
	return o
}

// Wrote returns that observation with what a job tells of its standard error.
func (o Observation) Wrote(stderr string) Observation {
	o.stderr = stderr
	return o
}

// Writing returns what a job says of its standard error when its script has ended and the job has not.
func Writing(stderr string, at time.Time) Observation {
	return Observation{source: FromCallback, at: at, wrote: true, stderr: stderr}
}

// Start returns what a job's own report of its start says.
func Start(at time.Time) Observation { return Observation{source: FromCallback, at: at, start: true} }

// Ad returns what a job's ad says.
func Ad(j condor.Job, at time.Time) Observation {
	o := Observation{source: FromHTCondor, at: at, jobStatus: j.Status, outcome: j.Outcome()}
	if j.Spooling() {
		o.jobStatus = 0 // held only until its files arrive: nobody needs to act
	}
	if j.Held() {
		o.hold = j.HoldReason + holdCode(j)
		if code := j.Returned(); code != nil {
			o.hold += "; its script had ended before, with " + condor.ExitMessage(*code)
		}
		if j.HoldReasonCode == condor.HoldTooMuchOutput {
			o.hold += "; the site bounds what a job may leave behind (--max-output): leave less, or name what is wanted in transfer_output_files"
		}
	}
	if j.HeldByPool() {
		o.hold, o.byPool = "its HTCPool is suspended"+holdCode(j), true
	}
	if stop := StopOf(j); stop != "" {
		o.outcome.Reason = stop
	}
	if NeverRan(j) {
		o.outcome.Reason = ReasonStagingFailed
		o.outcome.Message = "its files never arrived at the schedd, and so it never ran: " + j.RemoveReason
	}
	if j.JobStartDate > 0 {
		o.started, o.finished = time.Unix(j.JobStartDate, 0), finished(j)
		if ahead := time.Unix(j.ServerTime, 0).Sub(at); ahead > Settling {
			o.ahead = ahead
		}
	}
	o.account = j.Owner
	if o.outcome.State != condor.OutcomeOpen {
		o.usage = j.Use(at).String()
	}
	return o
}

// Absence returns what it says that neither queue nor history shows a job; stop is why htcd removes the jobs of its
// run, "" if it does not.
func Absence(stop string, doubt Doubt, at time.Time) Observation {
	return Observation{
		source:    FromHTCondor,
		at:        at,
		absent:    true,
		lostAfter: doubt.After(),
		stop:      stop,
		evidence:  NoTrace,
	}
}

// Stopped says of a job that HTCondor removed that it did so on behalf of htcd, if htcd stops its run: HTCondor removes
// the nodes of a DAG that htcd removes.
func (o Observation) Stopped(stop string) Observation {
	if stop != "" && o.outcome.State == condor.OutcomeRemoved && o.outcome.Reason == ReasonRemoved {
		o.outcome.Reason = stop
	}
	return o
}

// After returns an observation that was made after the row had been read.
func (o Observation) After(read ledger.Proc) Observation {
	o.read, o.told = &read, read.Stderr
	return o
}

// holdCode returns the text that follows a hold reason.
func holdCode(j condor.Job) string {
	return fmt.Sprintf(" (hold code %d/%d)", j.HoldReasonCode, j.HoldReasonSubCode)
}

// Repeats reports whether an ad says nothing new about an open proc of which only that state is known: the rule would
// change nothing.
func (o Observation) Repeats(was condor.JobStatus) bool {
	return o.outcome.State == condor.OutcomeOpen && o.hold == "" && o.jobStatus == was
}
