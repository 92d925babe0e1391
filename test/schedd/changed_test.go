package schedd_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/krb"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
	"htc.cern.ch/htcd/test/lab/parts"
)

// changed returns the states of the bench's jobs that have changed in a period.
func (b *bench) changed(p schedd.Period) (states map[int]condor.JobStatus, clock int64) {
	b.t.Helper()
	if p.Most == 0 {
		p.Most = 10
	}
	states = map[int]condor.JobStatus{}
	require.NoError(
		b.t,
		b.Query(b.t.Context(), b.id, schedd.Query{Where: b.d.Tag.Constraint(), Changed: &p}, func(j condor.Job) error {
			states[j.Proc], clock = j.Status, j.ServerTime
			return nil
		}),
	)
	return states, clock
}

// do runs a command of HTCondor for some of the bench's jobs, as their account.
func (b *bench) do(program, which string, more ...string) {
	b.t.Helper()
	cmd := exec.CommandContext(
		b.t.Context(),
		program,
		append([]string{"-constraint", string(b.d.Tag.Constraint()) + " && " + which}, more...)...)
	cmd.Env = append(
		os.Environ(),
		"CONDOR_CONFIG="+b.options().CondorConfig,
		"KRB5_CONFIG="+b.options().Krb5Config,
		"KRB5CCNAME="+b.id.CCache,
	)
	out, err := cmd.CombinedOutput()
	require.NoError(b.t, err, "%s", out)
}

func TestTheQueueShowsWhatHasChangedInAPeriod(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.d.Queue, b.d.Source = 3, "sleep 1000"
	cluster := b.submit()
	b.until("running", func(j condor.Job) bool { return j.Status == condor.Running })
	always := schedd.Period{Age: time.Hour}
	all, clock := b.changed(always)
	require.Len(t, all, 3)
	require.InDelta(t, time.Now().Unix(), clock, 60)

	// Once a second has passed they are old.
	const never = 1 << 40
	require.Eventually(t, func() bool {
		old, _ := b.changed(schedd.Period{From: never})
		return len(old) == 0
	}, patience, 200*time.Millisecond)
	_, clock = b.changed(always)

	b.do("condor_hold", "ProcId == 0")
	held, _ := b.changed(schedd.Period{From: clock})
	require.Equal(t, map[int]condor.JobStatus{0: condor.Held}, held, "by the schedd's clock")
	held, _ = b.changed(schedd.Period{From: never, Age: 30 * time.Second})
	require.Contains(t, held, 0, "by ours")

	// A shadow that suspends its job does not date it.
	b.do("condor_suspend", "ProcId == 1")
	require.Eventually(t, func() bool {
		suspended, _ := b.changed(schedd.Period{From: never})
		return suspended[1] == condor.Suspended
	}, patience, 200*time.Millisecond)
	b.do("condor_continue", "ProcId == 1")
	require.Eventually(t, func() bool {
		b.until("continued", func(j condor.Job) bool { return j.Proc != 1 || j.Status == condor.Running })
		suspended, _ := b.changed(schedd.Period{From: never})
		return len(suspended) == 0
	}, patience, 200*time.Millisecond)

	require.ErrorIs(
		t,
		b.Query(
			t.Context(),
			b.id,
			schedd.Query{Where: b.d.Tag.Constraint(), Changed: &schedd.Period{Age: time.Hour, Most: 2}},
			func(condor.Job) error { return nil },
		),
		schedd.ErrTooMany,
	)
	require.NotZero(t, cluster.ID)
}

func TestTheCollectorSaysWhenTheScheddWasStarted(t *testing.T) {
	b := newBench(t)
	first, err := b.Daemon(t.Context(), b.id)
	require.NoError(t, err)
	require.Less(t, first.Started, time.Now().Unix()+1)
	require.Positive(t, first.Started)
	require.GreaterOrEqual(t, first.DutyCycle, 0.0)
	elsewhere := b.id
	elsewhere.Endpoint.Schedd = "no.such.schedd"
	_, err = b.Daemon(t.Context(), elsewhere)
	require.Error(t, err)

	restart(t)
	require.Eventually(t, func() bool {
		again, err := b.Daemon(t.Context(), b.id)
		return err == nil && again.Started > first.Started
	}, patience, 200*time.Millisecond)
}

func TestManyJobsSayWhyTheyAreHeld(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.d.Queue, b.d.Options = 150, "requirements = false\n"
	b.submit()
	b.until("spooled", func(j condor.Job) bool { return j.Status == condor.Idle })
	b.do("condor_hold", "ProcId % 2 == 0") // so that no two numbers follow each other
	reasons := map[int]string{}
	require.NoError(t, b.Query(t.Context(), b.id, schedd.Query{Where: b.d.Tag.Constraint()}, func(j condor.Job) error {
		if j.Held() && !j.Reasoned {
			return schedd.ErrReasons
		}
		reasons[j.Proc] = j.HoldReason
		return nil
	}))
	require.Len(t, reasons, 150)
	for proc, reason := range reasons {
		require.Equal(t, proc%2 == 0, reason == "via condor_hold (by user robot)", "%d: %q", proc, reason)
	}
}

func TestWhatIsInTheQueueIsToldInBrief(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.d.Queue, b.d.Options = 3, "requirements = false\n"
	cluster := b.submit()
	b.until("spooled", func(j condor.Job) bool { return j.Status == condor.Idle })
	var there []condor.Job
	require.NoError(
		t,
		b.Query(
			t.Context(),
			b.id,
			schedd.Query{Where: b.d.Tag.Constraint(), Presence: true},
			func(j condor.Job) error { there = append(there, j); return nil },
		),
	)
	require.Len(t, there, 3)
	require.Contains(t, there, condor.Job{Cluster: cluster.ID, Proc: 2, Status: condor.Idle, Owner: "robot"})
	there = nil
	require.NoError(
		t,
		b.Query(
			t.Context(),
			b.id,
			schedd.Query{Where: condor.UIDsConstraint([]string{"another", b.d.Tag.UID}...), Presence: true, UIDs: true},
			func(j condor.Job) error { there = append(there, j); return nil },
		),
	)
	require.Len(t, there, 3)
	require.Contains(
		t,
		there,
		condor.Job{
			Cluster: cluster.ID,
			Proc:    2,
			Status:  condor.Idle,
			Owner:   "robot",
			Tag:     condor.Tag{UID: b.d.Tag.UID},
		},
	)
	require.NoError(
		t,
		scheddtest.Err(
			b.Change(
				t.Context(),
				b.id,
				schedd.Remove{Where: "(" + b.d.Tag.Constraint() + ") && JobStatus =!= 1", Reason: "none"},
			),
		),
		"nothing is to be removed",
	)
}

// TestOneRemovalOfSeveralObjectsPassesOverWhatIsOthers: a condor_rm removes what it may, whatever else its constraint
// names.
func TestOneRemovalOfSeveralObjectsPassesOverWhatIsOthers(t *testing.T) {
	t.Parallel()
	mine, theirs := newBench(t), newBench(t)
	ticket, err := keeper(
		t,
		theirs.world,
	).Ticket(
		t.Context(),
		krb.Credential{Username: "alice", Password: parts.Passwords["alice"]},
	)
	require.NoError(t, err)
	theirs.id.CCache = ticket.CCache
	var uids []string
	for _, b := range []*bench{theirs, mine} {
		b.d.Options = "requirements = false\n"
		b.submit()
		b.until("spooled", func(j condor.Job) bool { return j.Status == condor.Idle })
		uids = append(uids, b.d.Tag.UID)
	}
	require.NoError(
		t,
		scheddtest.Err(
			mine.Change(
				t.Context(),
				mine.id,
				schedd.Remove{Where: condor.UIDsConstraint(uids...), Reason: "both are deleted"},
			),
		),
	)
	left := map[string]condor.JobStatus{}
	require.NoError(
		t,
		mine.Query(
			t.Context(),
			mine.id,
			schedd.Query{Where: condor.UIDsConstraint(uids...), Presence: true, UIDs: true},
			func(j condor.Job) error { left[j.Tag.UID] = j.Status; return nil },
		),
	)
	require.Equal(t, condor.Idle, left[uids[0]])
	require.NotEqual(t, condor.Idle, left[uids[1]])
}

func TestReasonsAreFitToBeShown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.d.Options = "requirements = false\n"
	b.submit()
	b.until("spooled", func(j condor.Job) bool { return j.Status == condor.Idle })
	b.do("condor_hold", "true", "-reason", "\x1b]0;owned\a disk \u202efull \xff\xfe")
	said := ""
	require.NoError(t, b.Query(t.Context(), b.id, schedd.Query{Where: b.d.Tag.Constraint()}, func(j condor.Job) error {
		if !j.Reasoned {
			return schedd.ErrReasons
		}
		said = j.HoldReason
		return nil
	}))
	require.Equal(t, "␛]0;owned␇ disk �full �� (by user robot)", said)
}
