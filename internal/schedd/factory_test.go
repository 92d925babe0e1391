package schedd

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

func TestWhatAFactorysAdSays(t *testing.T) {
	ad := classad.Ad{
		{
			Name:  "ClusterId",
			Value: classad.IntValue(7),
		}, {Name: "Owner", Value: classad.StringValue("robot")}, {Name: "HTCJobUID", Value: classad.StringValue("u")},
		{
			Name:  "HTCJobAttempt",
			Value: classad.IntValue(2),
		}, {Name: "HTCJobFactory", Value: classad.IntValue(20)}, {Name: "JobMaterializeNextProcId", Value: classad.IntValue(3)},
		{
			Name:  "QDate",
			Value: classad.IntValue(5),
		}, {Name: "JobMaterializeMaxIdle", Value: classad.IntValue(0)}, {Name: "JobMaterializePauseReason", Value: classad.StringValue("why")},
		{Name: "HTCWorkflowUID", Value: classad.StringValue("w")}, {Name: "HTCWorkflowDAG", Value: classad.IntValue(4)},
		{Name: "HTCPool", Value: classad.StringValue("grid")}, {Name: "JobFactoryPaused", Value: classad.IntValue(1)},
	}
	require.Equal(
		t,
		condor.Job{
			Cluster: 7,
			Tag:     condor.Tag{UID: "u", Attempt: 2, Pool: "grid"},
			Node:    condor.NodeTag{UID: "w", DAG: 4},
			Owner:   "robot",
			Made:    20,
			QDate:   5,
			Factory: &condor.Factory{Next: 3, Open: true, Paused: "why"},
		},
		newFactory(ad),
	)
	for mode, paused := range map[int64]string{-1: "why", 0: "", 1: "why", 2: "", 3: "it was removed"} {
		ad[len(ad)-1].Value = classad.IntValue(mode)
		require.Equal(t, paused, newFactory(ad).Factory.Paused, mode)
	}
}

func TestAFactoryIsOpenFromItsFirstJobOnAlsoWhenItMayMakeNoneForNow(t *testing.T) {
	for name, try := range map[string]struct {
		next, idle int64
		open       bool
	}{"handed over": {0, 0, false}, "about to make some": {0, 1, true}, "makes none for now": {1, 0, true}} {
		ad := classad.Ad{
			{Name: "JobMaterializeNextProcId", Value: classad.IntValue(try.next)},
			{Name: "JobMaterializeMaxIdle", Value: classad.IntValue(try.idle)},
		}
		require.Equal(t, try.open, newFactory(ad).Factory.Open, name)
	}
}
