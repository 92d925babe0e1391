package workflow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/graph"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// The workflow of these tests has two sequences of the step a, then b for all of them, then finally.
func newSituation(t *testing.T, change ...func(*v1alpha1.HTCWorkflow)) Situation {
	w := &v1alpha1.HTCWorkflow{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "w", UID: "uid-w", Generation: 1},
	}
	w.Spec = v1alpha1.HTCWorkflowSpec{
		Sequences: &v1alpha1.Sequences{Count: new(int32(2))},
		Steps: []v1alpha1.Step{
			{StepWork: v1alpha1.StepWork{Name: "a"}},
			{StepWork: v1alpha1.StepWork{Name: "b"}, Pairing: v1alpha1.PairAll},
		},
		Finally: &v1alpha1.StepWork{Name: "c"},
	}
	for _, f := range change {
		f(w)
	}
	g, err := graph.New(w.Spec)
	require.NoError(t, err)
	return Situation{Workflow: w, Graph: g, Now: time.Unix(100, 0)}
}

// with adds DAGs, each of the level of its place.
func (s Situation) with(dags ...DAG) Situation {
	for i, d := range dags {
		d.Run.Attempt, d.Run.SpecHash = i+1, s.Workflow.SpecHash()
		if d.Run.State == "" {
			d.Run.State = ledger.Submitted
		}
		d.Run.Submitted = time.Unix(90, 0)
		s.DAGs = append(s.DAGs, d)
	}
	s.Attempt = 1
	return s
}

// of returns a DAG of one step.
func of(step int, n ledger.Counts, change ...func(*DAG)) DAG {
	d := DAG{Steps: []ledger.StepCounts{{Step: ledger.Step{Number: step}, NodeCounts: ledger.NodeCounts{Counts: n}}}}
	if step == 0 {
		d.Sequences = ledger.SequenceCounts{Active: n.Active, Succeeded: n.Succeeded, Failed: n.Failed}
	}
	if d.Settled = n.Active == 0; d.Settled {
		d.Run.Confirmed, d.Run.Ended = true, time.Unix(95, 0)
	}
	for _, f := range change {
		f(&d)
	}
	return d
}

func TestPlan(t *testing.T) {
	finalized := func(w *v1alpha1.HTCWorkflow) { w.Finalizers = []string{v1alpha1.Finalizer} }
	deleted := func(w *v1alpha1.HTCWorkflow) { w.DeletionTimestamp = new(metav1.Now()) }
	suspended := func(w *v1alpha1.HTCWorkflow) { w.Spec.Suspend = true }
	aborts := func(w *v1alpha1.HTCWorkflow) { w.Spec.FailurePolicy = v1alpha1.FailureAbort }
	oneIsEnough := func(w *v1alpha1.HTCWorkflow) { w.Spec.Sequences.Complete = new(int32(1)) }
	deadline := func(w *v1alpha1.HTCWorkflow) { w.Spec.ActiveDeadlineSeconds = new(int64(5)) }
	kept := func(w *v1alpha1.HTCWorkflow) { w.Spec.TTLSecondsAfterFinished = new(int32(60)) }
	again := func(w *v1alpha1.HTCWorkflow) { w.Annotations = map[string]string{v1alpha1.RerunAnnotation: "x"} }
	state := func(s ledger.RunState) func(*DAG) { return func(d *DAG) { d.Run.State = s } }
	stopped := func(why string) func(*DAG) { return func(d *DAG) { d.Run.Stop = why } }
	unsettled := func(d *DAG) { d.Settled = false }
	removed := func(d *DAG) { d.Job = &ledger.Proc{Status: ledger.StatusFailed, Reason: crosscheck.ReasonRemoved} }
	active, done := ledger.Counts{Active: 2}, ledger.Counts{Succeeded: 2}
	one, failed := ledger.Counts{Succeeded: 1}, ledger.Counts{Failed: 2}

	for name, c := range map[string]struct {
		s    Situation
		want Decision
	}{
		"a new one is sent": {newSituation(t), Decision{Action: Submit, Again: true}},
		"one with our finalizer and no row is asked about":  {newSituation(t, finalized), Decision{Action: Recover}},
		"a suspended new one is not sent":                   {newSituation(t, suspended), Decision{Action: Rest}},
		"an open intent is asked about":                     {newSituation(t).with(of(0, active, state(ledger.Intent))), Decision{Action: Recover}},
		"so is that of a suspended one":                     {newSituation(t, suspended).with(of(0, active, state(ledger.Intent))), Decision{Action: Recover}},
		"a deleted one is removed, whatever state it is in": {newSituation(t, finalized, deleted).with(of(0, active, state(ledger.Intent))), Decision{Action: Remove}},
		"one that is let go of rests":                       {newSituation(t, deleted).with(of(0, done)), Decision{Action: Rest}},
		"an active one rests":                               {newSituation(t).with(of(0, active)), Decision{Action: Rest}},
		"one that has ended is settled":                     {newSituation(t).with(of(0, done, unsettled)), Decision{Action: Settle}},
		"a suspended one is stopped":                        {newSituation(t, suspended).with(of(0, active)), stop(crosscheck.StopSuspended)},
		"a stop that was begun is carried through":          {newSituation(t).with(of(0, active, stopped(crosscheck.StopDeadline))), Decision{Action: Stop, Reason: crosscheck.StopDeadline}},
		"a suspended one stays so":                          {newSituation(t, suspended).with(of(0, done, stopped(crosscheck.StopSuspended))), Decision{Action: Rest}},
		"a resumed one begins again":                        {newSituation(t).with(of(0, done, stopped(crosscheck.StopSuspended))), Decision{Action: Submit, Again: true}},
		"a failure that aborts stops it":                    {newSituation(t, aborts).with(of(0, ledger.Counts{Active: 1, Failed: 1})), stop(crosscheck.StopAborted)},
		"enough that succeeded stop it":                     {newSituation(t, oneIsEnough).with(of(0, ledger.Counts{Active: 1, Succeeded: 1})), stop(crosscheck.StopCompleted)},
		"before its deadline it rests":                      {newSituation(t, func(w *v1alpha1.HTCWorkflow) { w.Spec.ActiveDeadlineSeconds = new(int64(20)) }).with(of(0, active)), Decision{Action: Rest, At: time.Unix(110, 0)}},
		"at its deadline it is stopped":                     {newSituation(t, deadline).with(of(0, active)), Decision{Action: Stop, Reason: crosscheck.StopDeadline, Message: "5 seconds have passed since the submission (spec.activeDeadlineSeconds)"}},
		"the next level is sent":                            {newSituation(t).with(of(0, done)), Decision{Action: Submit, Level: 1}},
		"also when some sequences have failed":              {newSituation(t).with(of(0, ledger.Counts{Succeeded: 1, Failed: 1})), Decision{Action: Submit, Level: 1}},
		"also when enough have succeeded":                   {newSituation(t, oneIsEnough).with(of(0, one, stopped(crosscheck.StopCompleted))), Decision{Action: Submit, Level: 1}},
		"but not while it is suspended":                     {newSituation(t, suspended).with(of(0, done)), Decision{Action: Rest}},
		"what could not succeed is left out":                {newSituation(t).with(of(0, failed)), Decision{Action: Submit, Level: 2}},
		"also if nothing was left to stop":                  {newSituation(t, aborts).with(of(0, ledger.Counts{Succeeded: 1, Failed: 1})), Decision{Action: Submit, Level: 2}},
		"after an abort finally is sent":                    {newSituation(t, aborts).with(of(0, failed, stopped(crosscheck.StopAborted))), Decision{Action: Submit, Level: 2}},
		"a level that was not sent in time never is":        {newSituation(t, deadline).with(of(0, done)), Decision{Action: Stop, Reason: crosscheck.StopDeadline, Message: "5 seconds have passed since the submission (spec.activeDeadlineSeconds)"}},
		"after a deadline, too":                             {newSituation(t, deadline).with(of(0, one, stopped(crosscheck.StopDeadline))), Decision{Action: Submit, Level: 2}},
		"when somebody has removed it, too":                 {newSituation(t).with(of(0, one, removed)), Decision{Action: Submit, Level: 2}},
		"finally has no deadline":                           {newSituation(t, deadline).with(of(0, done), of(1, one), of(2, active)), Decision{Action: Rest}},
		"after finally it rests":                            {newSituation(t).with(of(0, done), of(1, one), of(2, one)), Decision{Action: Rest}},
		"until it expires":                                  {newSituation(t, kept).with(of(0, done), of(1, one), of(2, one)), Decision{Action: Rest, At: time.Unix(155, 0)}},
		"a new value of the annotation runs it again":       {newSituation(t, again).with(of(0, done), of(1, one), of(2, one)), Decision{Action: Submit, Again: true}},
		"but not before its DAG has ended":                  {newSituation(t, again).with(of(0, active)), Decision{Action: Rest}},
		"a refused one rests":                               {newSituation(t).with(DAG{Run: ledger.Run{State: ledger.Refused}}), Decision{Action: Rest}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, Plan(c.s)) })
	}
}

func TestAttemptsAreToldApartByTheirDAGs(t *testing.T) {
	run := func(number int, hash, rerun, stop string, state ledger.RunState) ledger.Run {
		return ledger.Run{Attempt: number, SpecHash: hash, Rerun: rerun, Stop: stop, State: state}
	}
	runs := []ledger.Run{
		run(1, "a", "", "", ledger.Submitted), run(2, "a", "", crosscheck.StopSuspended, ledger.Submitted),
		run(3, "a", "", crosscheck.StopDeadline, ledger.Submitted), run(4, "a", "", "", ledger.Submitted),
		run(5, "a", "x", "", ledger.Removed), run(6, "a", "x", "", ledger.Refused), run(7, "b", "x", "", ledger.Intent),
	}
	for wanted, want := range map[int][]ledger.Run{0: runs[6:], 1: runs[:2], 2: runs[2:4], 3: runs[4:5], 5: runs[6:],
		6: nil} {
		got, number := Attempt(runs, wanted)
		require.Equal(t, want, got)
		if wanted > 0 && want != nil {
			require.Equal(t, wanted, number)
		}
	}
}

func TestAWorkflowRunsBetweenItsNodes(t *testing.T) {
	dagman := func(status condor.JobStatus) func(*DAG) {
		return func(d *DAG) { d.Job = &ledger.Proc{Status: ledger.StatusOpen, JobStatus: int(status)} }
	}
	for name, c := range map[string]struct {
		dag  DAG
		want v1alpha1.Phase
	}{
		"nothing has run":            {of(0, ledger.Counts{Active: 2}, dagman(condor.Running)), v1alpha1.PhaseIdle},
		"the next node is not there": {of(0, ledger.Counts{Active: 1, Succeeded: 1}, dagman(condor.Running)), v1alpha1.PhaseRunning},
		"the next node waits":        {of(0, ledger.Counts{Active: 1, Succeeded: 1, Idle: 1}, dagman(condor.Running)), v1alpha1.PhaseIdle},
		"DAGMan waits":               {of(0, ledger.Counts{Active: 1, Succeeded: 1}, dagman(condor.Idle)), v1alpha1.PhaseIdle},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, newSituation(t).with(c.dag).phase()) })
	}
}

func TestFailuresThatAStepForgivesEndNothing(t *testing.T) {
	forgives := func(w *v1alpha1.HTCWorkflow) {
		w.Spec.FailurePolicy = v1alpha1.FailureAbort
		w.Spec.Steps[0].ForEach, w.Spec.Steps[0].MaxFailures = &v1alpha1.ForEach{
			Count: 20,
		}, new(
			intstr.FromString("5%"),
		)
		w.Spec.Steps[1].ForEach, w.Spec.Steps[1].MaxFailures = &v1alpha1.ForEach{Count: 3}, new(intstr.FromInt32(1))
	}
	within := func(d *DAG) { d.Sequences = ledger.SequenceCounts{Succeeded: 2} }
	s := newSituation(
		t,
		forgives,
	).with(
		of(
			0,
			ledger.Counts{Active: 30, Succeeded: 9, Failed: 1},
			func(d *DAG) { d.Sequences = ledger.SequenceCounts{Active: 2} },
		),
	)
	require.False(t, s.aborts())
	s.DAGs[0].Sequences = ledger.SequenceCounts{Active: 1, Failed: 1}
	require.True(t, s.aborts(), "more failed in a sequence than may")

	first := of(0, ledger.Counts{Succeeded: 38, Failed: 2}, within)
	s = newSituation(t, forgives).with(first, of(1, ledger.Counts{Succeeded: 2, Failed: 1}))
	require.True(t, s.succeededBefore())
	require.False(t, s.aborts())
	s = newSituation(t, forgives).with(first, of(1, ledger.Counts{Succeeded: 1, Failed: 2}))
	require.False(t, s.succeededBefore())
	require.True(t, s.aborts())
	s = newSituation(
		t,
		forgives,
	).with(first, of(1, ledger.Counts{Succeeded: 2}, func(d *DAG) { d.Steps[0].Futile = 1 }))
	require.False(t, s.succeededBefore(), "what could not run is not forgiven")
}
