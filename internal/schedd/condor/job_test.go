package condor

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/classad"
)

func TestOutcome(t *testing.T) {
	yes, no := true, false
	n := func(i int) *int { return &i }
	for name, c := range map[string]struct {
		job    Job
		state  OutcomeState
		reason string
		words  string
	}{
		"an idle job is open":                            {Job{Status: Idle}, OutcomeOpen, "", ""},
		"a running job that failed before is open":       {Job{Status: Running, ExitBySignal: &no, ExitCode: n(5), NumJobStarts: 2}, OutcomeOpen, "", ""},
		"a held job with an exit code is open":           {Job{Status: Held, HoldReasonCode: 12, ExitBySignal: &no, ExitCode: n(0)}, OutcomeOpen, "", ""},
		"a job that transfers its output is open":        {Job{Status: TransferringOutput}, OutcomeOpen, "", ""},
		"exit 0 succeeded":                               {Job{Status: Completed, ExitBySignal: &no, ExitCode: n(0)}, OutcomeSucceeded, "Completed", "exit code 0"},
		"exit 3 failed":                                  {Job{Status: Completed, ExitBySignal: &no, ExitCode: n(3)}, OutcomeFailed, "ExitCode", "exit code 3"},
		"a shell's word for a signal is said as both":    {Job{Status: Completed, ExitBySignal: &no, ExitCode: n(137)}, OutcomeFailed, "ExitCode", "exit code 137 (128 and 9, as after SIGKILL)"},
		"128 and more need not be a signal":              {Job{Status: Completed, ExitBySignal: &no, ExitCode: n(255)}, OutcomeFailed, "ExitCode", ExitMessage(255)},
		"the declared success code succeeded":            {Job{Status: Completed, ExitBySignal: &no, ExitCode: n(3), SuccessExitCode: 3}, OutcomeSucceeded, "Completed", "exit code 3"},
		"exit 0 fails where another code is success":     {Job{Status: Completed, ExitBySignal: &no, ExitCode: n(0), SuccessExitCode: 3}, OutcomeFailed, "ExitCode", "exit code 0"},
		"a signal failed":                                {Job{Status: Completed, ExitBySignal: &yes, ExitSignal: n(9)}, OutcomeFailed, "Signalled", "killed by signal 9"},
		"completed without a code is no success":         {Job{Status: Completed}, OutcomeFailed, "NoExitCode", "completed, but its ad holds no ExitCode"},
		"a completed job that was removed is completed":  {Job{Status: Removed, LastStatus: Completed, ExitBySignal: &no, ExitCode: n(0), RemoveReason: "via condor_rm"}, OutcomeSucceeded, "Completed", "exit code 0"},
		"a removed job is removed, whatever its code":    {Job{Status: Removed, LastStatus: Running, ExitBySignal: &no, ExitCode: n(0), RemoveReason: "via condor_rm (by user alice)"}, OutcomeRemoved, "Removed", "via condor_rm (by user alice)"},
		"a removed job without a reason says that":       {Job{Status: Removed, LastStatus: Idle}, OutcomeRemoved, "Removed", "removed from the queue; HTCondor gives no reason"},
		"a listed code succeeded":                        {Job{Status: Completed, ExitBySignal: &no, ExitCode: n(5), SuccessCodes: "3,5"}, OutcomeSucceeded, "Completed", "exit code 5"},
		"0 fails where it is not listed":                 {Job{Status: Completed, ExitBySignal: &no, ExitCode: n(0), SuccessCodes: "3,5"}, OutcomeFailed, "ExitCode", "exit code 0"},
		"a part of a listed code is none":                {Job{Status: Completed, ExitBySignal: &no, ExitCode: n(3), SuccessCodes: "33,13"}, OutcomeFailed, "ExitCode", "exit code 3"},
		"the list stands above HTCondor's own code":      {Job{Status: Completed, ExitBySignal: &no, ExitCode: n(5), SuccessExitCode: 3, SuccessCodes: "3,5"}, OutcomeSucceeded, "Completed", "exit code 5"},
		"held beyond its deadline failed":                {tooLate(Held, 600), OutcomeFailed, "HeldDeadlineExceeded", "removed: on hold for more than 600 s (heldDeadlineSeconds); HTCondor held it because: no such file"},
		"idle beyond its deadline failed":                {tooLate(Idle, 86400), OutcomeFailed, "IdleDeadlineExceeded", "removed: no slot within 86400 s (idleDeadlineSeconds)"},
		"run beyond its deadline failed":                 {ranTooLong, OutcomeFailed, "RunDeadlineExceeded", "removed: it ran for more than 60 s (runDeadlineSeconds)"},
		"run beyond it, removed while it ran, failed":    {removedRunning, OutcomeFailed, "RunDeadlineExceeded", "removed: it ran for more than 60 s (runDeadlineSeconds)"},
		"removed sooner by a condition of the user's":    {with(removedRunning, func(j *Job) { j.JobFinishedHookDone = 1030 }), OutcomeRemoved, "Removed", periodic},
		"a limit of htcopts is none of htcd's":           {with(ranTooLong, func(j *Job) { j.RunDeadline = 0 }), OutcomeRemoved, "Removed", periodic},
		"held after its run was too long is open":        {with(ranTooLong, func(j *Job) { j.Status, j.HoldReasonCode = Held, 47 }), OutcomeOpen, "", ""},
		"run too long, and removed by hand is removed":   {with(ranTooLong, func(j *Job) { j.RemoveReason = "via condor_rm" }), OutcomeRemoved, "Removed", "via condor_rm"},
		"removed by hand while held is removed":          {with(tooLate(Held, 600), func(j *Job) { j.RemoveReason = "via condor_rm" }), OutcomeRemoved, "Removed", "via condor_rm"},
		"the deadline alone can have removed it":         {with(tooLate(Idle, 7), func(j *Job) { j.HeldDeadline, j.RemoveReason = 0, alone }), OutcomeFailed, "IdleDeadlineExceeded", "removed: no slot within 86400 s (idleDeadlineSeconds)"},
		"held too shortly for it to be the deadline":     {with(tooLate(Held, 600), func(j *Job) { j.JobFinishedHookDone-- }), OutcomeRemoved, "Removed", periodic},
		"idle too shortly for it to be the deadline":     {with(tooLate(Idle, 86400), func(j *Job) { j.JobFinishedHookDone-- }), OutcomeRemoved, "Removed", periodic},
		"removed while it ran, whatever the deadlines":   {with(tooLate(Held, 600), func(j *Job) { j.LastStatus = Running }), OutcomeRemoved, "Removed", periodic},
		"removed by a condition without any deadline":    {with(tooLate(Held, 600), func(j *Job) { j.HeldDeadline, j.IdleDeadline = 0, 0 }), OutcomeRemoved, "Removed", periodic},
		"a cluster whose files never came is no failure": {Job{Status: Removed, LastStatus: Held, RemoveReason: "Staging of job files failed"}, OutcomeRemoved, "StagingFailed", "Staging of job files failed"},
	} {
		t.Run(name, func(t *testing.T) {
			o := c.job.Outcome()
			require.Equal(t, c.state, o.State)
			require.Equal(t, c.reason, o.Reason)
			require.Equal(t, c.words, o.Message)
		})
	}
}

const periodic = "The job attribute PeriodicRemove expression 'x' evaluated to TRUE"

const alone = "The job attribute PeriodicRemove expression 'JobStatus == 1 && time() - EnteredCurrentStatus > 86400' evaluated to TRUE"

// tooLate returns a job that PeriodicRemove removed after exactly that time in a state.
func tooLate(state JobStatus, seconds int64) Job {
	return Job{
		Status:               Removed,
		LastStatus:           state,
		RemoveReason:         periodic,
		LastHoldReason:       "no such file",
		Deadlines:            Deadlines{HeldDeadline: 600, IdleDeadline: 86400},
		EnteredCurrentStatus: 1000,
		JobFinishedHookDone:  1000 + seconds,
	}
}

// removedRunning is a job that PeriodicRemove removed while it ran.
var removedRunning = Job{
	Status:               Removed,
	LastStatus:           Running,
	RemoveReason:         periodic,
	EnteredCurrentStatus: 1000,
	JobFinishedHookDone:  1061,
	Deadlines:            Deadlines{RunDeadline: 60},
}

// ranTooLong is a job that was held after it had run for too long, and that PeriodicRemove then removed.
var ranTooLong = Job{
	Status:             Removed,
	LastStatus:         Held,
	LastHoldReasonCode: 47,
	RemoveReason:       periodic,
	Deadlines:          Deadlines{RunDeadline: 60, HeldDeadline: 600},
}

func with(j Job, change func(*Job)) Job {
	change(&j)
	return j
}

func TestSpoolingIsNotHeld(t *testing.T) {
	require.True(t, Job{Status: Held, HoldReasonCode: 16}.Spooling())
	require.False(t, Job{Status: Held, HoldReasonCode: 16}.Held())
	require.True(t, Job{Status: Held, HoldReasonCode: 1}.Held())
	require.False(t, Job{Status: Idle, HoldReasonCode: 16}.Spooling(), "a code that stayed behind says nothing")
	require.True(t, Job{StageInFinish: 1}.Spooled())
}

func TestConstraintsAreExpressions(t *testing.T) {
	for _, c := range []Constraint{Tag{UID: `a"b\`, Attempt: 2}.Constraint(), UIDConstraint("x"), Tagged, ClusterConstraint(), ClusterConstraint(1, 2)} {
		_, err := classad.ParseExpr(string(c))
		require.NoError(t, err, c)
	}
	require.EqualValues(t, "HTCJobUID =!= undefined && member(ClusterId, {1,2})", ClusterConstraint(1, 2))
}

// The ads are HTCondor 23.9's, of jobs of which the deadline of heldDeadlineSeconds then passed.
func TestAHeldJobKeepsTheReturnCodeOfItsScript(t *testing.T) {
	by := func(code int, change func(*Job)) Job {
		exited := false
		j := Job{Status: Held, HoldReasonCode: 3, ExitBySignal: &exited, ExitCode: &code, JobCurrentStartDate: 844}
		change(&j)
		return j
	}
	for name, c := range map[string]struct {
		job  Job
		want *int
	}{
		"by on_exit_hold": {by(7, func(j *Job) { j.TransferOutFinished = 847 }), new(7)},
		"by on_exit_hold, after it was stopped before": {by(7, func(j *Job) { j.TransferOutFinished, j.LastVacateTime = 847, 800 }), new(7)},
		"as an output file is missing":                 {by(3, func(j *Job) { j.HoldReasonCode, j.TransferOutFinished, j.LastVacateTime = 12, 845, 845 }), new(3)},
		"as it left too much":                          {by(139, func(j *Job) { j.HoldReasonCode, j.TransferOutFinished, j.LastVacateTime = HoldTooMuchOutput, 845, 845 }), new(139)},
		"by periodic_hold: 143 is the kill":            {by(143, func(j *Job) { j.LastVacateTime = 855 }), nil},
		"the same, after output of an execution before": {by(143, func(j *Job) {
			j.LastVacateTime, j.TransferOutFinished = 855, 830
		}), nil},
		"the same, with output of an evicted job":  {by(143, func(j *Job) { j.LastVacateTime, j.TransferOutFinished = 855, 856 }), nil},
		"before it was started":                    {by(0, func(j *Job) { j.JobCurrentStartDate = 0 }), nil},
		"while its files arrive":                   {by(7, func(j *Job) { j.TransferOutFinished, j.HoldReasonCode = 847, 16 }), nil},
		"a job that runs has the code of a former": {by(7, func(j *Job) { j.TransferOutFinished, j.Status = 847, Running }), nil},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, c.job.Returned())
			if c.job.Status != Held || c.job.Spooling() {
				return
			}
			c.job.Status, c.job.LastStatus, c.job.HeldDeadline, c.job.JobFinishedHookDone = Removed, Held, 60, 1000
			c.job.HoldReasonCode, c.job.LastHoldReasonCode = 0, c.job.HoldReasonCode
			c.job.RemoveReason = reasonPeriodicRemove + " '...' evaluated to TRUE"
			o := c.job.Outcome()
			require.Equal(t, ReasonHeldTooLong, o.Reason)
			require.Equal(t, c.want, o.ExitCode)
			if c.want != nil {
				require.Contains(t, o.Message, fmt.Sprintf("its script had ended before, with exit code %d", *c.want))
			}
		})
	}
}
