package lifecycle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/ledger/procset"
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
		return &ledger.Run{
			Attempt:    1,
			Generation: 1,
			State:      ledger.Submitted,
			SpecHash:   job.SpecHash(),
			Submitted:  time.Unix(100, 0),
		}
	}
	active := ledger.Counts{Active: 1}
	paced := func(job *v1alpha1.HTCJob) { job.Spec.Parallelism = new(int32(2)) }
	made := func(atOnce int) *ledger.Run {
		return &ledger.Run{Attempt: 1, Generation: 1, State: ledger.Submitted, Factory: atOnce, Procs: 9}
	}
	unwanted := procset.Of([]int{3})
	for name, c := range map[string]struct {
		s    Situation
		want Decision
	}{
		"a new HTCJob is submitted":                               {Situation{Job: htcjob("a")}, Decision{Action: Submit, Attempt: 1}},
		"one with our finalizer and no row is asked about":        {Situation{Job: htcjob("a", finalized)}, Decision{Action: Recover, Attempt: 1}},
		"one whose status knows of an open intent as well":        {Situation{Job: htcjob("a", finalized, ran)}, Decision{Action: Recover, Attempt: 4}},
		"one whose status names its cluster is restored from it":  {Situation{Job: htcjob("a", finalized, sent)}, Decision{Action: Restore}},
		"an open intent is asked about":                           {Situation{Job: htcjob("a"), Run: run(ledger.Intent)}, Decision{Action: Recover, Attempt: 1}},
		"a submitted one is left alone":                           {Situation{Job: htcjob("a"), Run: run(ledger.Submitted), Counts: ledger.Counts{Active: 1}}, Decision{Action: Rest}},
		"a changed spec waits for what is active":                 {Situation{Job: htcjob("a", changed), Run: run(ledger.Submitted), Counts: ledger.Counts{Active: 1}}, Decision{Action: Rest}},
		"a changed spec of an ended one runs again":               {Situation{Job: htcjob("a", changed), Run: run(ledger.Submitted)}, Decision{Action: Submit, Attempt: 2}},
		"a refused one rests":                                     {Situation{Job: htcjob("a"), Run: run(ledger.Refused)}, Decision{Action: Rest}},
		"a refused one is tried again when changed":               {Situation{Job: htcjob("a", changed), Run: run(ledger.Refused)}, Decision{Action: Submit, Attempt: 2}},
		"a run whose cluster never got its files begins again":    {Situation{Job: htcjob("a"), Run: run(ledger.Removed)}, Decision{Action: Submit, Attempt: 2}},
		"a deleted one is removed, whatever state it is in":       {Situation{Job: htcjob("a", finalized, deleted), Run: run(ledger.Intent)}, Decision{Action: Remove}},
		"but not again before the cache shows that it is gone":    {Situation{Job: htcjob("a", finalized, deleted), Released: true}, Decision{Action: Rest}},
		"one without quota is not sent":                           {Situation{Job: htcjob("a"), Quota: &Quota{Waits: true}}, Decision{Action: Rest}},
		"one with quota is":                                       {Situation{Job: htcjob("a"), Quota: &Quota{}}, Decision{Action: Submit, Attempt: 1}},
		"one that loses its quota is stopped":                     {Situation{Job: htcjob("a"), Run: run(ledger.Submitted), Counts: active, Quota: &Quota{Waits: true, Stops: true}}, Decision{Action: Stop, Attempt: 1, Reason: crosscheck.StopSuspended, Message: crosscheck.StopMessage(crosscheck.StopSuspended)}},
		"but not while nothing is known of its quota":             {Situation{Job: htcjob("a"), Run: run(ledger.Submitted), Counts: active, Quota: &Quota{Waits: true}}, Decision{Action: Rest}},
		"one that was stopped for want of quota waits for it":     {Situation{Job: htcjob("a"), Run: run(ledger.Removed), Quota: &Quota{Waits: true, Stops: true}}, Decision{Action: Rest}},
		"an edit of what is not sent begins nothing":              {Situation{Job: htcjob("a", edited), Run: sentAs(htcjob("a"))}, Decision{Action: Rest}},
		"a new value of the annotation runs it again":             {Situation{Job: htcjob("a", repeated), Run: sentAs(htcjob("a"))}, Decision{Action: Submit, Attempt: 2}},
		"but not before everything has ended":                     {Situation{Job: htcjob("a", repeated), Run: sentAs(htcjob("a")), Counts: active}, Decision{Action: Rest}},
		"a refused one is tried again when the annotation is new": {Situation{Job: htcjob("a", repeated), Run: run(ledger.Refused)}, Decision{Action: Submit, Attempt: 2}},
		"a suspended new one is not sent":                         {Situation{Job: htcjob("a", suspended)}, Decision{Action: Rest}},
		"a suspended active one is stopped":                       {Situation{Job: htcjob("a", suspended), Run: run(ledger.Submitted), Counts: active}, Decision{Action: Stop, Attempt: 1, Reason: crosscheck.StopSuspended, Message: "spec.suspend is true"}},
		"a suspended ended one is left alone":                     {Situation{Job: htcjob("a", suspended), Run: run(ledger.Submitted)}, Decision{Action: Rest}},
		"one of which nobody knows is asked about first":          {Situation{Job: htcjob("a", suspended), Run: run(ledger.Intent)}, Decision{Action: Recover, Attempt: 1}},
		"a stop that was begun is carried through":                {Situation{Job: htcjob("a"), Run: stopped(crosscheck.StopSuspended, true)}, Decision{Action: Stop, Attempt: 1, Reason: crosscheck.StopSuspended}},
		"a suspended one stays so":                                {Situation{Job: htcjob("a", suspended), Run: run(ledger.Removed)}, Decision{Action: Rest}},
		"a resumed one begins again":                              {Situation{Job: htcjob("a"), Run: run(ledger.Removed)}, Decision{Action: Submit, Attempt: 2}},
		"before its deadline one is left alone":                   {Situation{Job: htcjob("a", deadlineOf(5)), Run: sentAs(htcjob("a")), Counts: active, Now: time.Unix(104, 0)}, Decision{Action: Rest, Again: time.Unix(105, 0)}},
		"at its deadline it is stopped":                           {Situation{Job: htcjob("a", deadlineOf(5)), Run: sentAs(htcjob("a")), Counts: active, Now: time.Unix(105, 0)}, Decision{Action: Stop, Attempt: 1, Reason: crosscheck.StopDeadline, Message: "5 seconds have passed since the submission (spec.activeDeadlineSeconds)"}},
		"and until HTCondor has confirmed it":                     {Situation{Job: htcjob("a"), Run: stopped(crosscheck.StopDeadline, false)}, Decision{Action: Stop, Attempt: 1, Reason: crosscheck.StopDeadline}},
		"what was stopped at its deadline rests":                  {Situation{Job: htcjob("a"), Run: stopped(crosscheck.StopDeadline, true)}, Decision{Action: Rest}},
		"fewer at once are made before any is cancelled":          {Situation{Job: htcjob("a", paced), Run: made(5), Counts: ledger.Counts{Active: 9, Waiting: 4}, Unwanted: unwanted}, Decision{Action: Pace, Attempt: 1}},
		"then what is cancelled is removed":                       {Situation{Job: htcjob("a", paced), Run: made(2), Counts: active, Unwanted: unwanted}, Decision{Action: Cancel, Attempt: 1}},
		"a deleted one that others hold back is none of ours":     {Situation{Job: htcjob("a", deleted)}, Decision{Action: Rest}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, Plan(c.s)) })
	}
}

func htcjob(name string, change ...func(*v1alpha1.HTCJob)) *v1alpha1.HTCJob {
	job := &v1alpha1.HTCJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), Generation: 1},
		Spec: v1alpha1.HTCJobSpec{
			Script: v1alpha1.Script{Program: v1alpha1.Program{Image: "centos", Command: "bash", Source: "exit 0\n"}},
		},
	}
	for _, f := range change {
		f(job)
	}
	return job
}

func suspended(job *v1alpha1.HTCJob) { job.Spec.Suspend = true }

func deadlineOf(seconds int64) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) { job.Spec.ActiveDeadlineSeconds = &seconds }
}

func TestHowFarAnAttemptHasGot(t *testing.T) {
	sent := func(stop string, confirmed bool) *ledger.Run {
		return &ledger.Run{State: ledger.Submitted, Stop: stop, Confirmed: confirmed}
	}
	for name, c := range map[string]struct {
		s    Situation
		want stage
	}{
		"nothing was begun":                     {Situation{}, notBegun},
		"an open intent":                        {Situation{Run: &ledger.Run{State: ledger.Intent}}, begun},
		"refused":                               {Situation{Run: &ledger.Run{State: ledger.Refused}}, refused},
		"removed":                               {Situation{Run: &ledger.Run{State: ledger.Removed}}, withdrawn},
		"some jobs have not ended":              {Situation{Run: sent("", false), Counts: ledger.Counts{Active: 1, Failed: 1}}, active},
		"all jobs have ended":                   {Situation{Run: sent("", false)}, ended},
		"being suspended":                       {Situation{Run: sent(crosscheck.StopSuspended, true)}, stopping},
		"past its deadline":                     {Situation{Run: sent(crosscheck.StopDeadline, false)}, stopping},
		"past its deadline, HTCondor says so":   {Situation{Run: sent(crosscheck.StopDeadline, true)}, ended},
		"past its deadline, and active somehow": {Situation{Run: sent(crosscheck.StopDeadline, true), Counts: ledger.Counts{Active: 1}}, active},
	} {
		require.Equal(t, c.want, c.s.stage(), name)
	}
}
