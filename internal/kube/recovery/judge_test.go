package recovery

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

func TestJudge(t *testing.T) {
	now := time.Now()
	unspooled := func(cluster int, age time.Duration) condor.Job {
		return condor.Job{Cluster: cluster, Status: condor.Held, HoldReasonCode: 16, QDate: now.Add(-age).Unix()}
	}
	neverRan := func(cluster, proc int) condor.Job {
		return condor.Job{
			Cluster:      cluster,
			Proc:         proc,
			Status:       condor.Removed,
			RemoveReason: "Staging of job files failed",
		}
	}
	idle := condor.Job{Cluster: 7, Proc: 2, Status: condor.Idle, StageInFinish: 5}
	for name, c := range map[string]struct {
		queued, left, unstaged []condor.Job
		want                   Finding
	}{
		"nothing found is absent":                          {nil, nil, nil, Finding{}},
		"spooled is whole, with as many procs as its last": {[]condor.Job{idle}, nil, nil, Finding{Whole, condor.Cluster{ID: 7, Procs: 3}, 0, "", "", "", "", "", nil, false, nil}},
		"gone from the queue but in the history is whole":  {nil, []condor.Job{{Cluster: 3, Status: condor.Completed}}, nil, Finding{Whole, condor.Cluster{ID: 3, Procs: 1}, 0, "", "", "", "", "", nil, false, nil}},
		"young and without files is spooling":              {[]condor.Job{unspooled(4, time.Second)}, nil, nil, Finding{Spooling, condor.Cluster{ID: 4, Procs: 1}, now.Unix() - 1, "", "", "", "", "", nil, false, nil}},
		"old and without files is half-spooled":            {[]condor.Job{unspooled(4, time.Hour)}, nil, nil, Finding{HalfSpooled, condor.Cluster{ID: 4, Procs: 1}, now.Unix() - 3600, "", "", "", "", "", nil, false, nil}},
		"a whole one stands above a half-spooled one":      {[]condor.Job{unspooled(4, time.Hour), idle}, nil, nil, Finding{Whole, condor.Cluster{ID: 7, Procs: 3}, 0, "", "", "", "", "", nil, false, nil}},
		"a spooled one that still shows code 16 is whole":  {[]condor.Job{{Cluster: 9, Status: condor.Held, HoldReasonCode: 16, StageInFinish: 3}}, nil, nil, Finding{Whole, condor.Cluster{ID: 9, Procs: 1}, 0, "", "", "", "", "", nil, false, nil}},
		"what never ran counts as a part of a whole one":   {[]condor.Job{idle}, nil, []condor.Job{neverRan(7, 5)}, Finding{Whole, condor.Cluster{ID: 7, Procs: 6}, 0, "", "", "", "", "", nil, false, nil}},
		"what never ran alone is absent":                   {nil, nil, []condor.Job{neverRan(7, 5)}, Finding{}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, Judge(c.queued, c.left, c.unstaged, now)) })
	}
}

func TestAClusterWasSubmittedWhenTheScheddTookItAndNeverLaterThanNow(t *testing.T) {
	now := time.Unix(1000, 0)
	require.Equal(t, time.Unix(940, 0), Finding{QDate: 940}.Since(now))
	require.Equal(t, now, Finding{QDate: 1060}.Since(now), "the schedd's clock is ahead")
	require.Equal(t, now, Finding{}.Since(now))
}
