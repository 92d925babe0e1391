package argoplugin

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
)

var errTest = errors.New("not a spec")

func ended(p v1alpha1.Phase, ago time.Duration, change ...func(*v1alpha1.HTCJob)) *v1alpha1.HTCJob {
	job := jobFor(pi, "a", in(p))
	job.Status.CompletionTime = &metav1.Time{Time: now.Add(-ago)}
	for _, f := range change {
		f(job)
	}
	return job
}

func asksForResult(job *v1alpha1.HTCJob) { job.Spec.Result = "stdout" }
func isFetched(job *v1alpha1.HTCJob)     { job.Status.OutputFetched = true }
func notSent(job *v1alpha1.HTCJob)       { job.Status.CompletionTime = nil }
func outputLost(job *v1alpha1.HTCJob) {
	job.Status.Conditions = []metav1.Condition{
		{
			Type:    v1alpha1.ConditionOutputFetched,
			Status:  metav1.ConditionFalse,
			Reason:  lifecycle.ReasonGivenUp,
			Message: "gone",
		},
	}
}

func TestWhenAStepIsOver(t *testing.T) {
	for what, c := range map[string]struct {
		job  *v1alpha1.HTCJob
		want phase
	}{
		"one on hold is not":                                     {jobFor(pi, "a", in(v1alpha1.PhaseHeld)), pending},
		"success is, without a result":                           {ended(v1alpha1.PhaseSucceeded, 0), succeeded},
		"success waits for the result, however long":             {ended(v1alpha1.PhaseSucceeded, time.Hour, asksForResult), pending},
		"success with its result is":                             {ended(v1alpha1.PhaseSucceeded, 0, asksForResult, isFetched), succeeded},
		"a result that never comes is a failure":                 {ended(v1alpha1.PhaseSucceeded, 0, asksForResult, outputLost), failed},
		"a failure waits a moment for its standard error":        {ended(v1alpha1.PhaseFailed, time.Second), pending},
		"a failure does not wait for it longer":                  {ended(v1alpha1.PhaseFailed, time.Minute), failed},
		"a failure with its standard error is":                   {ended(v1alpha1.PhaseFailed, time.Second, isFetched), failed},
		"a failure whose output is lost is":                      {ended(v1alpha1.PhaseFailed, time.Second, outputLost), failed},
		"one that was refused is":                                {ended(v1alpha1.PhaseFailed, 0, notSent), failed},
		"one that somebody has removed from HTCondor has failed": {ended(v1alpha1.PhaseRemoved, time.Minute), failed},
	} {
		t.Run(what, func(t *testing.T) { require.Equal(t, c.want, reportOf(objectOf(c.job), now).Phase) })
	}
}

func TestAFailureHasOutputs(t *testing.T) {
	job := ended(v1alpha1.PhaseFailed, time.Second, isFetched)
	job.Status.Message, job.Status.Reason, job.Status.ExitCode = "7.0: exit code 3: no number", "JobsFailed", new(
		int32(3),
	)
	job.Status.Failures = []v1alpha1.Failure{{Stderr: "no number\n"}}
	is := reportOf(objectOf(job), now)
	require.Equal(t, "7.0: exit code 3: no number", is.Message)
	require.Equal(t, "3", *is.Outputs.ExitCode)
	require.Nil(t, is.Outputs.Result)
	require.Equal(
		t,
		[]parameter{
			{"name", job.Name},
			{"phase", "Failed"},
			{"reason", "JobsFailed"},
			{"message", "7.0: exit code 3: no number"},
			{"exitCode", "3"},
			{"stderr", "no number\n"},
			{"result", ""},
		},
		is.Outputs.Parameters,
	)
}

// In a loop Argo reads them as JSON and gives up the workflow if it cannot.
func TestOnlyAResultInJSONIsTheStepsResult(t *testing.T) {
	for text, is := range map[string]bool{"3.14": true, `["a"]`: true, `"a"`: true, "a word": false, "1\n2": false, "": false} {
		job := ended(v1alpha1.PhaseSucceeded, 0, asksForResult, isFetched)
		job.Status.Result = &text
		o := reportOf(objectOf(job), now).Outputs
		require.Equal(t, is, o.Result != nil, text)
		require.Equal(t, parameter{"result", text}, o.Parameters[len(o.Parameters)-1])
	}
}

func TestAWorkflowsStepHasWhatItsNodesHaveDone(t *testing.T) {
	flow := &v1alpha1.HTCWorkflow{ObjectMeta: metav1.ObjectMeta{Name: "w"}}
	flow.Spec.Result = "stdout"
	flow.Status = v1alpha1.HTCWorkflowStatus{
		Phase: v1alpha1.PhaseSucceeded, Message: "3 nodes are done", ExitCode: new(int32(0)), Result: new("42"),
	}
	require.Equal(t, pending, reportOf(objectOf(flow), now).Phase, "its output is not here")
	flow.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionOutputFetched, Status: metav1.ConditionTrue}}
	is := reportOf(objectOf(flow), now)
	require.Equal(t, succeeded, is.Phase)
	require.Equal(t, []string{"42", "0"}, []string{*is.Outputs.Result, *is.Outputs.ExitCode})

	flow.Status = v1alpha1.HTCWorkflowStatus{
		Phase: v1alpha1.PhaseFailed, Reason: "Failed", Message: "1 of 3 nodes failed", ExitCode: new(int32(4)),
		Failures:       []v1alpha1.NodeFailure{{Node: "fit/job_1", Failure: v1alpha1.Failure{Stderr: "oh no"}}},
		CompletionTime: &metav1.Time{Time: now.Add(-time.Hour)},
	}
	is = reportOf(objectOf(flow), now)
	require.Equal(t, failed, is.Phase)
	require.Equal(t, []parameter{
		{"name", "w"}, {"phase", "Failed"}, {"reason", "Failed"}, {"message", "1 of 3 nodes failed"}, {"exitCode", "4"},
		{"stderr", "oh no"}, {"result", ""},
	}, is.Outputs.Parameters)
}
