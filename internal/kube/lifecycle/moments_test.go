package lifecycle

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

func TestWhatAnAttemptSpentItsTimeWith(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(1000+s), 0) }
	for name, c := range map[string]struct {
		moments Moments
		want    []string
	}{
		"all of it": {
			Moments{at(0), at(3), at(4), at(6), at(10), at(30), at(31), at(33), at(40)},
			[]string{"admission 3", "staging 1", "condor_submit 2", "queue 4", "run 20", "notice 1", "fetch 2", "push 7"},
		},
		"an attempt after the first has no admission": {
			Moments{Created: at(0), Handed: at(4), Sent: at(6), Started: at(10), Finished: at(30), Known: at(31)},
			[]string{"staging 4", "condor_submit 2", "queue 4", "run 20", "notice 1"},
		},
		"its jobs never started": {
			Moments{Created: at(0), Handed: at(4), Sent: at(6), Known: at(31)},
			[]string{"staging 4", "condor_submit 2", "queue 25"},
		},
		"they never ended": {
			Moments{Created: at(0), Handed: at(4), Sent: at(6), Started: at(10), Known: at(31)},
			[]string{"staging 4", "condor_submit 2", "queue 4", "run 21"},
		},
		"htcd refused it":          {Moments{Created: at(0), Begun: at(3), Known: at(5)}, []string{"admission 3", "staging 2"}},
		"condor_submit refused it": {Moments{Created: at(0), Handed: at(3), Known: at(5)}, []string{"staging 3", "condor_submit 2"}},
		"it was found at the schedd": {
			Moments{Created: at(0), Sent: at(6), Started: at(10), Finished: at(30), Known: at(31)},
			[]string{"condor_submit 6", "queue 4", "run 20", "notice 1"},
		},
		"HTCondor's clock is behind": {
			Moments{Created: at(0), Handed: at(4), Sent: at(6), Started: at(1), Finished: at(20), Known: at(31)},
			[]string{"staging 4", "condor_submit 2", "queue 0", "run 14", "notice 11"},
		},
		"HTCondor's clock is ahead": {
			Moments{Created: at(0), Handed: at(4), Sent: at(6), Started: at(100), Finished: at(120), Known: at(31),
				Fetched: at(32)},
			[]string{"staging 4", "condor_submit 2", "queue 25", "run 0", "notice 0", "fetch 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			end := at(0)
			for _, s := range c.moments.Spans("") {
				require.Equal(t, end, s.Start)
				got = append(got, fmt.Sprintf("%s %v", s.Name, s.End.Sub(s.Start).Seconds()))
				end = s.End
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestATraceTellsOfAnAttemptOnceItsOutputIsHere(t *testing.T) {
	output := func(is metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.ConditionOutputFetched, Status: is, Reason: reason}}
	}
	running := Traced{v1alpha1.PhaseRunning, 1, output(metav1.ConditionFalse, "NotEnded")}
	fetching := Traced{v1alpha1.PhaseSucceeded, 1, output(metav1.ConditionFalse, "Fetching")}
	here := Traced{v1alpha1.PhaseSucceeded, 1, output(metav1.ConditionTrue, "Fetched")}
	givenUp := Traced{v1alpha1.PhaseSucceeded, 1, output(metav1.ConditionFalse, ReasonGivenUp)}
	refused := Traced{v1alpha1.PhaseFailed, 2, output(metav1.ConditionTrue, "NothingToFetch")}
	require.False(t, Ended(running, fetching))
	require.True(t, Ended(fetching, here))
	require.True(t, Ended(running, here), "also in one step")
	require.False(t, Ended(here, here))
	require.True(t, Ended(fetching, givenUp), "what will never come is not waited for")
	require.True(t, Ended(here, refused), "the next attempt")
}

func TestTheWholeOfATraceCoversItsParts(t *testing.T) {
	begun := time.Unix(1000, 0)
	job := &v1alpha1.HTCJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         "ns",
			Name:              "scan",
			UID:               "u",
			CreationTimestamp: metav1.NewTime(begun),
		},
	}
	run := ledger.Run{
		UID:       "u",
		Attempt:   1,
		Created:   begun.Add(time.Second),
		Submitted: begun.Add(2 * time.Second),
		Cluster:   7,
		Schedd:    "s",
		Procs:     3,
		Ended:     begun.Add(time.Minute),
	}
	got := TraceOf(Situation{Job: job, Run: &run}, v1alpha1.HTCJobStatus{
		Phase:   v1alpha1.PhaseFailed,
		Attempt: 1,
		Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Message: "1 of 3 jobs failed"},
		},
	}, time.Time{})
	whole := got.Spans[0]
	require.Equal(
		t,
		[]any{"", begun, run.Ended, "1 of 3 jobs failed"},
		[]any{whole.Path, whole.Start, whole.End, whole.Error},
	)
	require.Equal(t, map[string]string{
		"k8s.namespace.name": "ns",
		"htc.name":           "scan",
		"htc.uid":            "u",
		"htc.attempt":        "1",
		"htc.phase":          "Failed",
		"htc.schedd":         "s",
		"htc.cluster":        "7",
		"htc.jobs":           "3",
		"htc.pool":           "",
	}, whole.Attributes)
}
