package schedd

import "time"

// StartsWithin is how long a job of the scheduler universe may wait for its start. A schedd starts them within seconds,
// unless something keeps it from that.
const StartsWithin = time.Minute

// SchedulerLimits is what keeps a schedd from starting a job of the scheduler universe, of which the schedd itself says
// nothing.
const SchedulerLimits = "the schedd has at most MAX_RUNNING_SCHEDULER_JOBS_PER_OWNER (200 unless it says otherwise) HTCWorkflows and HTCJobs with parallelism " +
	"of an account at work, START_SCHEDULER_UNIVERSE bounds those of all accounts, and after a failure or a restart a schedd of HTCondor 25.10 or " +
	"later waits SCHEDULER_UNIVERSE_COOL_DOWN_DURATION (300 s)"
