package kube

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

func TestPlan(t *testing.T) {
	finalized := func(job *v1alpha1.HTCJob) { job.Finalizers = []string{v1alpha1.Finalizer} }
	deleted := func(job *v1alpha1.HTCJob) { job.DeletionTimestamp = new(metav1.Now()) }
	changed := func(job *v1alpha1.HTCJob) { job.Generation = 2 }
	ran := func(job *v1alpha1.HTCJob) { job.Status.Attempt = 4 }
	sent := func(job *v1alpha1.HTCJob) { job.Status.Attempt, job.Status.ClusterID = 4, 9 }
	run := func(state ledger.RunState) *ledger.Run { return &ledger.Run{Attempt: 1, Generation: 1, State: state} }
	stopped := func(why string, confirmed bool) *ledger.Run {
		return &ledger.Run{Attempt: 1, Generation: 1, State: ledger.Submitted, Stop: why, Confirmed: confirmed}
	}
	edited := func(job *v1alpha1.HTCJob) { job.Generation, job.Spec.LogsPod = 2, true }
	repeated := func(job *v1alpha1.HTCJob) { job.Annotations = map[string]string{v1alpha1.RerunAnnotation: "x"} }
	sentAs := func(job *v1alpha1.HTCJob) *ledger.Run {
		return &ledger.Run{Attempt: 1, Generation: 1, State: ledger.Submitted, SpecHash: job.SpecHash(), Submitted: time.Unix(100, 0)}
	}
	active := ledger.Counts{Active: 1}
	for name, c := range map[string]struct {
		s    situation
		want decision
	}{
		"a new HTCJob is submitted":                               {situation{job: htcjob("a")}, decision{actSubmit, 1}},
		"one with our finalizer and no row is asked about":        {situation{job: htcjob("a", finalized)}, decision{actRecover, 1}},
		"one whose status knows of an open intent as well":        {situation{job: htcjob("a", finalized, ran)}, decision{actRecover, 4}},
		"one whose status names its cluster is restored from it":  {situation{job: htcjob("a", finalized, sent)}, decision{action: actRestore}},
		"an open intent is asked about":                           {situation{job: htcjob("a"), run: run(ledger.Intent)}, decision{actRecover, 1}},
		"a submitted one is left alone":                           {situation{job: htcjob("a"), run: run(ledger.Submitted), counts: ledger.Counts{Active: 1}}, decision{action: actRest}},
		"a changed spec waits for what is active":                 {situation{job: htcjob("a", changed), run: run(ledger.Submitted), counts: ledger.Counts{Active: 1}}, decision{action: actRest}},
		"a changed spec of an ended one runs again":               {situation{job: htcjob("a", changed), run: run(ledger.Submitted)}, decision{actSubmit, 2}},
		"a refused one rests":                                     {situation{job: htcjob("a"), run: run(ledger.Refused)}, decision{action: actRest}},
		"a refused one is tried again when changed":               {situation{job: htcjob("a", changed), run: run(ledger.Refused)}, decision{actSubmit, 2}},
		"a run whose cluster never got its files is begun anew":   {situation{job: htcjob("a"), run: run(ledger.Removed)}, decision{actSubmit, 2}},
		"a deleted one is removed, whatever state it is in":       {situation{job: htcjob("a", finalized, deleted), run: run(ledger.Intent)}, decision{action: actRemove}},
		"an edit of what is not sent begins nothing":              {situation{job: htcjob("a", edited), run: sentAs(htcjob("a"))}, decision{action: actRest}},
		"a new value of the annotation runs it again":             {situation{job: htcjob("a", repeated), run: sentAs(htcjob("a"))}, decision{actSubmit, 2}},
		"but not before everything has ended":                     {situation{job: htcjob("a", repeated), run: sentAs(htcjob("a")), counts: active}, decision{action: actRest}},
		"a refused one is tried again when the annotation is new": {situation{job: htcjob("a", repeated), run: run(ledger.Refused)}, decision{actSubmit, 2}},
		"a suspended new one is not sent":                         {situation{job: htcjob("a", suspended)}, decision{action: actRest}},
		"a suspended active one is stopped":                       {situation{job: htcjob("a", suspended), run: run(ledger.Submitted), counts: active}, decision{actSuspend, 1}},
		"a suspended ended one is left alone":                     {situation{job: htcjob("a", suspended), run: run(ledger.Submitted)}, decision{action: actRest}},
		"one of which nobody knows is asked about first":          {situation{job: htcjob("a", suspended), run: run(ledger.Intent)}, decision{actRecover, 1}},
		"a stop that was begun is carried through":                {situation{job: htcjob("a"), run: stopped(crosscheck.StopSuspended, true)}, decision{actSuspend, 1}},
		"a suspended one stays so":                                {situation{job: htcjob("a", suspended), run: run(ledger.Removed)}, decision{action: actRest}},
		"a resumed one is begun anew":                             {situation{job: htcjob("a"), run: run(ledger.Removed)}, decision{actSubmit, 2}},
		"before its deadline one is left alone":                   {situation{job: htcjob("a", deadlineOf(5)), run: sentAs(htcjob("a")), counts: active, now: time.Unix(104, 0)}, decision{action: actRest}},
		"at its deadline it is stopped":                           {situation{job: htcjob("a", deadlineOf(5)), run: sentAs(htcjob("a")), counts: active, now: time.Unix(105, 0)}, decision{actExpire, 1}},
		"and until HTCondor has confirmed it":                     {situation{job: htcjob("a"), run: stopped(crosscheck.StopDeadline, false)}, decision{actExpire, 1}},
		"what was stopped at its deadline rests":                  {situation{job: htcjob("a"), run: stopped(crosscheck.StopDeadline, true)}, decision{action: actRest}},
		"a deleted one that others hold back is none of ours":     {situation{job: htcjob("a", deleted)}, decision{action: actRest}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, plan(c.s)) })
	}
}

func TestJudge(t *testing.T) {
	now := time.Now()
	unspooled := func(cluster int, age time.Duration) schedd.Job {
		return schedd.Job{Cluster: cluster, Status: schedd.Held, HoldReasonCode: 16, QDate: now.Add(-age).Unix()}
	}
	idle := schedd.Job{Cluster: 7, Proc: 2, Status: schedd.Idle, StageInFinish: 5}
	for name, c := range map[string]struct {
		queued, left []schedd.Job
		want         finding
	}{
		"nothing found is absent":                          {nil, nil, finding{}},
		"spooled is whole, with as many procs as its last": {[]schedd.Job{idle}, nil, finding{whole, schedd.Cluster{ID: 7, Procs: 3}, 0, ""}},
		"gone from the queue but in the history is whole":  {nil, []schedd.Job{{Cluster: 3, Status: schedd.Completed}}, finding{whole, schedd.Cluster{ID: 3, Procs: 1}, 0, ""}},
		"young and without files is spooling":              {[]schedd.Job{unspooled(4, time.Second)}, nil, finding{spooling, schedd.Cluster{ID: 4, Procs: 1}, now.Unix() - 1, ""}},
		"old and without files is half-spooled":            {[]schedd.Job{unspooled(4, time.Hour)}, nil, finding{halfSpooled, schedd.Cluster{ID: 4, Procs: 1}, now.Unix() - 3600, ""}},
		"a whole one stands above a half-spooled one":      {[]schedd.Job{unspooled(4, time.Hour), idle}, nil, finding{whole, schedd.Cluster{ID: 7, Procs: 3}, 0, ""}},
		"a spooled one that still shows code 16 is whole":  {[]schedd.Job{{Cluster: 9, Status: schedd.Held, HoldReasonCode: 16, StageInFinish: 3}}, nil, finding{whole, schedd.Cluster{ID: 9, Procs: 1}, 0, ""}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, judge(c.queued, c.left, now)) })
	}
}
