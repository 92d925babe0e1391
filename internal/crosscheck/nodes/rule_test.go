package nodes

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

var start = time.Unix(1_800_000_000, 0).UTC()

// waiting is a node of which nothing is known.
func waiting(deferred bool) ledger.Node {
	return ledger.Node{
		Proc:     ledger.Proc{UID: "u1", Attempt: 1, Status: ledger.StatusOpen, Changed: start},
		Deferred: deferred,
	}
}

// event changes a node, as something that is heard of it does.
type event struct {
	name string
	do   func(n ledger.Node, at time.Time) ledger.Node
}

func shows(j condor.Job) event {
	j.Reasoned = true
	return event{fmt.Sprintf("ad of %d: %s", j.Cluster, j.Status), func(n ledger.Node, at time.Time) ledger.Node {
		n, _ = word{cluster: j.Cluster, says: crosscheck.Ad(j, at)}.apply(n, "")
		return n
	}}
}

func idle(cluster int) event {
	return shows(condor.Job{Cluster: cluster, Status: condor.Idle, StageInFinish: 1})
}

func runs(cluster int) event {
	return shows(condor.Job{Cluster: cluster, Status: condor.Running, StageInFinish: 1})
}

func held(cluster int) event {
	return shows(condor.Job{Cluster: cluster, Status: condor.Held, HoldReasonCode: 12, HoldReason: "no file"})
}

func exits(cluster, code int) event {
	no := false
	return shows(condor.Job{Cluster: cluster, Status: condor.Completed, ExitBySignal: &no, ExitCode: &code})
}

func killed(cluster, signal int) event {
	yes := true
	return shows(condor.Job{Cluster: cluster, Status: condor.Completed, ExitBySignal: &yes, ExitSignal: &signal})
}

func removed(cluster int) event {
	return shows(
		condor.Job{Cluster: cluster, Status: condor.Removed, LastStatus: condor.Running, RemoveReason: "via condor_rm"},
	)
}

func stopped(cluster int) event {
	return shows(
		condor.Job{
			Cluster:      cluster,
			Status:       condor.Removed,
			LastStatus:   condor.Running,
			RemoveReason: crosscheck.RemoveReason(crosscheck.StopAborted),
		},
	)
}

func says(cluster, code, exit int) event {
	c := notify.Callback{Retcode: code, Node: &notify.Node{Exit: exit}}
	return event{
		fmt.Sprintf("callback of %d: %d, %d", cluster, code, exit),
		func(n ledger.Node, at time.Time) ledger.Node {
			n, _ = callback(n, cluster, c, at)
			return n
		},
	}
}

// gone is an answer of queue and history that does not show what the row knows of; ended, that it came after the end of
// the DAG.
func gone(ended bool) event {
	return event{"absence", func(n ledger.Node, at time.Time) ledger.Node {
		if n.Cluster != 0 {
			n, _ = miss(n, dag{run: ledger.Run{Confirmed: ended}}, "", at)
		}
		return n
	}}
}

// futile is the end of the DAG for a node that nobody has seen.
var futile = event{"end of the DAG", func(n ledger.Node, at time.Time) ledger.Node {
	if n.Waiting() {
		n.Status, n.Reason, n.Source, n.Changed = ledger.StatusFutile, ReasonFutile, crosscheck.FromHTCondor, at
	}
	return n
}}

func TestTheOrderInWhichThingsAreHeardOfANodeDoesNotMatter(t *testing.T) {
	for name, tt := range map[string]struct {
		deferred bool
		last     event   // is heard at some time, as HTCondor keeps it
		others   []event // are heard never, once or twice
		status   ledger.Status
		code     int
		cluster  int
	}{
		"a success":                           {false, exits(95, 0), []event{idle(95), runs(95), says(95, 0, 0)}, ledger.StatusSucceeded, 0, 95},
		"a failure":                           {false, exits(95, 3), []event{idle(95), runs(95), held(95), says(95, 3, 3)}, ledger.StatusFailed, 3, 95},
		"a callback before HTCondor's denial": {false, exits(95, 0), []event{says(95, 3, 3), runs(95), idle(95)}, ledger.StatusSucceeded, 0, 95},
		"a failure that is tried again":       {true, exits(95, 0), []event{says(95, 75, 75), runs(95), says(95, 0, 0)}, ledger.StatusSucceeded, 0, 95},
		"one that uses up its retries":        {true, exits(95, 75), []event{says(95, 75, 75), runs(95), says(95, 7, 7)}, ledger.StatusFailed, 75, 95},
		"0 that is no success, tried again":   {true, exits(95, 1), []event{says(95, 0, 1), runs(95)}, ledger.StatusFailed, 1, 95},
		"a signal":                            {false, killed(95, 9), []event{says(95, 137, 137), runs(95)}, ledger.StatusFailed, -1, 95},
		"a removal":                           {false, removed(95), []event{says(95, 143, 143), runs(95)}, ledger.StatusFailed, -1, 95},
		"a removal by htcd":                   {false, stopped(95), []event{says(95, 143, 143), runs(95)}, ledger.StatusFutile, -1, 95},
		"a second job":                        {false, exits(96, 0), []event{idle(95), exits(95, 3), says(95, 3, 3), runs(96), says(96, 0, 0)}, ledger.StatusSucceeded, 0, 96},
		"a callback that names no job":        {false, exits(95, 3), []event{says(999_999, 0, 0), runs(95), says(95, 3, 3)}, ledger.StatusFailed, 3, 95},
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			for range 3000 {
				heard := []event{tt.last}
				for _, e := range append(tt.others, gone(false), gone(true), futile) {
					for range random.IntN(3) {
						heard = append(heard, e)
					}
				}
				random.Shuffle(len(heard), func(i, j int) { heard[i], heard[j] = heard[j], heard[i] })
				n, at, order := waiting(tt.deferred), start, ""
				for _, e := range heard {
					at = at.Add(time.Duration(random.IntN(40)) * time.Second)
					n, order = e.do(n, at), order+"; "+e.name
				}
				require.Equal(t, tt.status, n.Status, order)
				require.Equal(t, tt.cluster, n.Cluster, order)
				require.Equal(t, crosscheck.FromHTCondor, n.Source, order)
				require.False(t, n.Claimed, order)
				if tt.code < 0 {
					require.Nil(t, n.ExitCode, order)
					continue
				}
				require.Equal(t, tt.code, *n.ExitCode, order)
				require.Equal(t, int(condor.Completed), n.JobStatus, order)
			}
		})
	}
}

func TestAFailureThatACallbackHasToldStandsWhileTheDAGIsStopped(t *testing.T) {
	says := func(j condor.Job) func(ledger.Node) ledger.Node {
		return func(n ledger.Node) ledger.Node {
			j.Cluster, j.Reasoned = 95, true
			w := word{cluster: 95, says: crosscheck.Ad(j, start.Add(time.Minute))}
			n, _ = w.apply(n, crosscheck.StopAborted)
			return n
		}
	}
	again := says(
		condor.Job{Status: condor.Running, StageInFinish: 1, JobStartDate: start.Add(30 * time.Second).Unix()},
	)
	queued := says(condor.Job{Status: condor.Idle, StageInFinish: 1})
	taken := says(condor.Job{Status: condor.Removed, LastStatus: condor.Running, RemoveReason: "by DAGMan"})
	no := false
	ended := says(condor.Job{Status: condor.Completed, ExitBySignal: &no, ExitCode: new(int)})

	n := callbackOf(runs(95).do(waiting(false), start), 3)
	require.Equal(t, n, queued(n))
	require.Equal(t, n, again(n))
	last := taken(again(n))
	require.Equal(t, ledger.StatusFailed, last.Status)
	require.Equal(t, 3, *last.ExitCode)
	require.Equal(t, n.Reason, last.Reason)
	require.Equal(t, crosscheck.FromHTCondor, last.Source, "HTCondor will say no more")
	require.Equal(t, last, taken(last))
	require.Equal(t, ledger.StatusSucceeded, ended(again(n)).Status, "it has run to another end")

	done := callbackOf(runs(95).do(waiting(false), start), 0)
	require.Equal(t, ledger.StatusFutile, taken(again(done)).Status, "a success needs the output")
	require.Equal(t, ledger.StatusFutile, taken(again(waiting(false))).Status)
}

// callbackOf is a node of which a callback has told the end.
func callbackOf(n ledger.Node, code int) ledger.Node { return says(95, code, code).do(n, start) }

func TestTheScriptsOwnCodeStandsWhateverIsHeardFirst(t *testing.T) {
	for name, tt := range map[string]struct {
		deferred   bool
		code, exit int
		status     ledger.Status
	}{
		"a code that counts as success":              {false, 3, 0, ledger.StatusSucceeded},
		"the same where failures are tried again":    {true, 3, 0, ledger.StatusSucceeded},
		"0 that counts as failure":                   {false, 0, 1, ledger.StatusFailed},
		"a code that the wrapper passes on as it is": {false, 5, 5, ledger.StatusFailed},
	} {
		t.Run(name, func(t *testing.T) {
			report, ad := says(95, tt.code, tt.exit), exits(95, tt.exit)
			var last []ledger.Node
			for _, order := range [][]event{{report, ad}, {ad, report}, {report, report, ad, ad},
				{runs(95), ad, report, ad}} {
				n := waiting(tt.deferred)
				for _, e := range order {
					n = e.do(n, start)
				}
				require.Equal(t, tt.status, n.Status)
				require.Equal(t, tt.code, *n.ExitCode)
				require.Equal(t, condor.ExitMessage(tt.code), n.Message)
				last = append(last, n)
			}
			for _, n := range last {
				require.True(t, same(last[0], n), n)
			}
		})
	}
}

func TestANodeThatNobodyHasSeenIsNeverLost(t *testing.T) {
	n := waiting(false)
	require.True(t, n.Waiting())
	n = says(95, 0, 0).do(n, start)
	for i := range 5 {
		n = gone(false).do(n, start.Add(time.Duration(i)*time.Minute))
	}
	require.Equal(t, ledger.StatusSucceeded, n.Status)
	require.Equal(t, crosscheck.FromCallback, n.Source, "as long as its DAG goes on HTCondor may show another job")
	for i := range 2 {
		n = gone(true).do(n, start.Add(time.Hour+time.Duration(i)*time.Minute))
	}
	require.Equal(t, ledger.StatusSucceeded, n.Status)
	require.Equal(t, crosscheck.FromHTCondor, n.Source)
}

func TestAJobThatVanishedIsLostUnlessItsDAGHasSucceeded(t *testing.T) {
	ended := ledger.Run{Confirmed: true}
	for name, tt := range map[string]struct {
		of     dag
		status ledger.Status
		reason string
	}{
		"its DAG goes on":       {dag{}, ledger.StatusFailed, crosscheck.ReasonLost},
		"its DAG has failed":    {dag{ended, ledger.Proc{Status: ledger.StatusFailed}}, ledger.StatusFailed, crosscheck.ReasonLost},
		"its DAG has succeeded": {dag{ended, ledger.Proc{Status: ledger.StatusSucceeded}}, ledger.StatusSucceeded, reasonDone},
		"htcd has stopped it":   {dag{run: ledger.Run{Stop: crosscheck.StopDeadline}}, ledger.StatusFutile, crosscheck.StopDeadline},
	} {
		t.Run(name, func(t *testing.T) {
			n := runs(95).do(waiting(false), start)
			n, changed := miss(n, tt.of, "", start.Add(time.Minute))
			require.True(t, changed)
			require.Equal(t, ledger.StatusOpen, n.Status)
			n, changed = miss(n, tt.of, "", start.Add(time.Minute+crosscheck.LostAfter-1))
			require.False(t, changed)
			n, _ = miss(n, tt.of, "", start.Add(time.Minute+crosscheck.LostAfter))
			require.Equal(t, tt.status, n.Status)
			require.Equal(t, tt.reason, n.Reason)
		})
	}
}

func TestTheStandardErrorIsThatOfTheFailure(t *testing.T) {
	report := func(n ledger.Node, code int, text string) ledger.Node {
		n, _ = callback(n, 95, notify.Callback{Retcode: code, Stderr: text, Node: &notify.Node{Exit: code}}, start)
		return n
	}
	n := report(waiting(false), 3, "why")
	require.Equal(t, "why", n.Stderr)
	require.Equal(t, "why", exits(95, 3).do(n, start).Stderr)
	require.Equal(t, "why", report(exits(95, 3).do(waiting(false), start), 3, "why").Stderr, "the ad may come first")
	require.Empty(t, report(exits(95, 3).do(waiting(false), start), 4, "of another try").Stderr)
	require.Empty(t, report(exits(95, 0).do(waiting(false), start), 3, "of an earlier try").Stderr)

	n = report(waiting(true), 75, "first try")
	require.True(t, n.Waiting())
	n = runs(95).do(n, start)
	require.Equal(t, "first try", n.Stderr)
	require.Equal(t, "first try", exits(95, 75).do(n, start).Stderr)
	require.Empty(t, exits(95, 0).do(n, start).Stderr, "the second try has succeeded")
	require.Empty(t, says(95, 0, 0).do(n, start).Stderr, "and says so")
}
