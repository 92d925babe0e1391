package recovery

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd"
)

func TestJudge(t *testing.T) {
	now := time.Now()
	unspooled := func(cluster int, age time.Duration) schedd.Job {
		return schedd.Job{Cluster: cluster, Status: schedd.Held, HoldReasonCode: 16, QDate: now.Add(-age).Unix()}
	}
	neverRan := func(cluster, proc int) schedd.Job {
		return schedd.Job{Cluster: cluster, Proc: proc, Status: schedd.Removed, RemoveReason: "Staging of job files failed"}
	}
	idle := schedd.Job{Cluster: 7, Proc: 2, Status: schedd.Idle, StageInFinish: 5}
	for name, c := range map[string]struct {
		queued, left, unstaged []schedd.Job
		want                   Finding
	}{
		"nothing found is absent":                          {nil, nil, nil, Finding{}},
		"spooled is whole, with as many procs as its last": {[]schedd.Job{idle}, nil, nil, Finding{Whole, schedd.Cluster{ID: 7, Procs: 3}, 0, "", "", "", "", "", nil, false, nil}},
		"gone from the queue but in the history is whole":  {nil, []schedd.Job{{Cluster: 3, Status: schedd.Completed}}, nil, Finding{Whole, schedd.Cluster{ID: 3, Procs: 1}, 0, "", "", "", "", "", nil, false, nil}},
		"young and without files is spooling":              {[]schedd.Job{unspooled(4, time.Second)}, nil, nil, Finding{Spooling, schedd.Cluster{ID: 4, Procs: 1}, now.Unix() - 1, "", "", "", "", "", nil, false, nil}},
		"old and without files is half-spooled":            {[]schedd.Job{unspooled(4, time.Hour)}, nil, nil, Finding{HalfSpooled, schedd.Cluster{ID: 4, Procs: 1}, now.Unix() - 3600, "", "", "", "", "", nil, false, nil}},
		"a whole one stands above a half-spooled one":      {[]schedd.Job{unspooled(4, time.Hour), idle}, nil, nil, Finding{Whole, schedd.Cluster{ID: 7, Procs: 3}, 0, "", "", "", "", "", nil, false, nil}},
		"a spooled one that still shows code 16 is whole":  {[]schedd.Job{{Cluster: 9, Status: schedd.Held, HoldReasonCode: 16, StageInFinish: 3}}, nil, nil, Finding{Whole, schedd.Cluster{ID: 9, Procs: 1}, 0, "", "", "", "", "", nil, false, nil}},
		"what never ran counts as a part of a whole one":   {[]schedd.Job{idle}, nil, []schedd.Job{neverRan(7, 5)}, Finding{Whole, schedd.Cluster{ID: 7, Procs: 6}, 0, "", "", "", "", "", nil, false, nil}},
		"what never ran alone is absent":                   {nil, nil, []schedd.Job{neverRan(7, 5)}, Finding{}},
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
