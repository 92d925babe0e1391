package matching

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/ledger/ledgertest"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// condor answers what a test sets.
type fakeCondor struct {
	mu       sync.Mutex
	sizes    map[string]schedd.Size // of jobs that have been idle for long
	inVain   int64                  // how often they were started
	slots    Slots
	silent   error
	analysis schedd.Analysis
	analysed []string
	listed   int
}

func (c *fakeCondor) Requests(
	_ context.Context,
	_ schedd.Identity,
	jobIDs []string,
	_ time.Duration,
	fn func(schedd.Request),
) error {
	for _, id := range jobIDs {
		if size, idle := c.sizes[id]; idle {
			r := schedd.Request{Size: size, InVain: c.inVain}
			_, _ = fmt.Sscanf(id, "%d.%d", &r.Cluster, &r.Proc)
			fn(r)
		}
	}
	return nil
}

func (c *fakeCondor) Slots(_ context.Context, _ schedd.Identity, fn func(schedd.Slot)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listed++
	for _, s := range c.slots {
		fn(s)
	}
	return c.silent
}

func (c *fakeCondor) Analyse(_ context.Context, _ schedd.Identity, jobID string, _ []string) (schedd.Analysis, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.analysed = append(c.analysed, jobID)
	return c.analysis, nil
}

type anybody struct{ backend.Credentials }

func (anybody) Any(context.Context, schedd.Endpoint) (schedd.Identity, error) {
	return schedd.Identity{}, nil
}

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// world is a Watch over a ledger in which each run has one idle job, its cluster's first.
func world(t *testing.T, c *fakeCondor, clusters ...int) (*Watch, *ledger.Ledger, *time.Time) {
	l := ledgertest.Open(t)
	require.NoError(t, l.Write(t.Context(), func(tx *ledger.Tx) error {
		for _, cluster := range clusters {
			r := ledger.Run{
				UID:       fmt.Sprint(cluster),
				Attempt:   1,
				Namespace: "n",
				Name:      fmt.Sprint(cluster),
				State:     ledger.Submitted,
				Schedd:    "s",
				Cluster:   cluster,
				Procs:     1,
				Created:   noon,
				Submitted: noon,
			}
			require.NoError(t, tx.InsertRun(r))
			require.NoError(t, tx.InsertProcs(r, 1))
			p, err := tx.Proc(r.UID, 1, 0)
			require.NoError(t, err)
			p.JobStatus = int(condor.Idle)
			require.NoError(t, tx.UpdateProc(p))
		}
		return nil
	}))
	now := new(noon.Add(2 * time.Minute))
	return &Watch{Ledger: l, Condor: c, Credentials: anybody{}, Now: func() time.Time { return *now }}, l, now
}

func TestJobsThatAreAlikeShareAnAnalysisAndSlotsAreAskedForOnce(t *testing.T) {
	like, other := schedd.Size{CPUs: 1, Memory: 1 << 10}, schedd.Size{CPUs: 2, Memory: 1 << 10}
	c := &fakeCondor{
		slots: pool,
		sizes: map[string]schedd.Size{"1.0": like, "2.0": like, "3.0": other, "4.0": {CPUs: 1, Memory: 500 << 10}},
	}
	w, _, now := world(t, c, 1, 2, 3, 4)
	w.Look(t.Context())
	require.Equal(t, 1, c.listed)
	require.Equal(t, []string{"1.0"}, c.analysed, "one analysis in each pass")
	require.Equal(t, ReasonRoom, w.Of("1", 1).Reason)
	require.Equal(t, ReasonRoom, w.Of("2", 1).Reason)
	require.Equal(t, ReasonNoMachine, w.Of("4", 1).Reason)
	c.analysis = schedd.Analysis{Slots: 1, Rejects: 1, Steps: []schedd.Step{{Condition: "HasFPGA"}}}
	w.Look(t.Context())
	require.Equal(t, []string{"1.0", "3.0"}, c.analysed)
	require.Equal(t, ReasonNoneMeets, w.Of("3", 1).Reason)
	w.Look(t.Context())
	require.Len(t, c.analysed, 2, "what is known serves for some time")
	*now = now.Add(analysisAge)
	w.Look(t.Context())
	require.Len(t, c.analysed, 3)
}

func TestNumbersThatChangeAreNotNewsEachMinute(t *testing.T) {
	c := &fakeCondor{slots: pool, sizes: map[string]schedd.Size{"1.0": {CPUs: 1, Memory: 20 << 10}}}
	w, _, now := world(t, c, 1)
	w.Look(t.Context())
	require.Equal(t, ReasonRoom, w.Of("1", 1).Reason)
	c.slots = pool[:1]
	*now = now.Add(time.Minute)
	w.Look(t.Context())
	require.Equal(t, ReasonRoom, w.Of("1", 1).Reason)
	*now = now.Add(goodNewsAge)
	w.Look(t.Context())
	require.Equal(t, ReasonAllBusy, w.Of("1", 1).Reason)
	c.sizes["1.0"] = schedd.Size{CPUs: 1, Memory: 500 << 10}
	w.Look(t.Context())
	require.Equal(t, ReasonNoMachine, w.Of("1", 1).Reason, "at once")
}

func TestNothingIsSaidOfJobsThatDoNotWait(t *testing.T) {
	c := &fakeCondor{slots: pool, sizes: map[string]schedd.Size{"1.0": {CPUs: 1}}}
	w, l, now := world(t, c, 1, 2)
	*now = noon.Add(30 * time.Second)
	w.Look(t.Context())
	require.Zero(t, c.listed, "they were sent a moment ago")
	*now = noon.Add(2 * time.Minute)
	w.Look(t.Context())
	require.NotNil(t, w.Of("1", 1))
	require.Nil(t, w.Of("2", 1), "HTCondor says that it has not been idle for long")
	require.NoError(t, l.Write(t.Context(), func(tx *ledger.Tx) error {
		p, err := tx.Proc("1", 1, 0)
		require.NoError(t, err)
		p.JobStatus = int(condor.Running)
		return tx.UpdateProc(p)
	}))
	w.Look(t.Context())
	require.Nil(t, w.Of("1", 1))
}

func TestAJobThatIsStartedInVainIsToldAlsoWhileItIsSeenRunning(t *testing.T) {
	c := &fakeCondor{slots: pool, sizes: map[string]schedd.Size{"1.0": {CPUs: 1}}, inVain: schedd.ManyInVain - 1}
	w, l, now := world(t, c, 1)
	w.Look(t.Context())
	require.Equal(t, ReasonRoom, w.Of("1", 1).Reason)
	c.inVain = 348
	w.Look(t.Context())
	require.Equal(t, ReasonInVain, w.Of("1", 1).Reason)
	require.Contains(t, w.Of("1", 1).Message, "started the job 348 times")
	require.NoError(t, l.Write(t.Context(), func(tx *ledger.Tx) error {
		p, err := tx.Proc("1", 1, 0)
		require.NoError(t, err)
		p.JobStatus = int(condor.Running)
		return tx.UpdateProc(p)
	}))
	w.Look(t.Context())
	require.Equal(t, ReasonInVain, w.Of("1", 1).Reason)
	*now = now.Add(inVainAge)
	w.Look(t.Context())
	require.Nil(t, w.Of("1", 1), "it runs")
}

func TestACollectorThatDoesNotAnswerIsUnknown(t *testing.T) {
	c := &fakeCondor{slots: pool, sizes: map[string]schedd.Size{"1.0": {CPUs: 1}}, silent: errors.New("no answer")}
	w, _, _ := world(t, c, 1)
	w.Look(t.Context())
	require.Equal(
		t,
		Verdict{
			metav1.ConditionUnknown,
			ReasonUnknown,
			"whether there are slots for the jobs that wait is not known: no answer",
		},
		*w.Of("1", 1),
	)
	require.Empty(t, c.analysed)
	c.silent = nil
	w.Look(t.Context())
	require.Equal(t, ReasonRoom, w.Of("1", 1).Reason)
}
