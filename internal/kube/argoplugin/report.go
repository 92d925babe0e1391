package argoplugin

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
)

// phase is one of Argo's for a step.
type phase string

const (
	pending   phase = "Pending"
	succeeded phase = "Succeeded"
	failed    phase = "Failed"
	errored   phase = "Error" // it could not be run
	skipped   phase = "Skipped"
	omitted   phase = "Omitted"
)

// over reports whether the step, or the workflow, has ended, for Argo.
func (p phase) over() bool {
	return p == succeeded || p == failed || p == errored || p == skipped || p == omitted
}

// report is what a WorkflowTaskSet's status says of a step.
type report struct {
	Phase   phase    `json:"phase"`
	Message string   `json:"message"`
	Outputs *outputs `json:"outputs,omitempty"`
}

type outputs struct {
	Parameters []parameter `json:"parameters,omitempty"`
	Result     *string     `json:"result,omitempty"`
	ExitCode   *string     `json:"exitCode,omitempty"`
}

type parameter struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// nameParameter tells later steps, and a plugin that is started again, which object a step has got.
const nameParameter = "name"

// created reports whether the step has had an object.
func (r report) created() bool {
	return r.Outputs != nil &&
		slices.ContainsFunc(
			r.Outputs.Parameters,
			func(p parameter) bool { return p.Name == nameParameter && p.Value != "" },
		)
}

// same reports whether two reports agree.
func (r report) same(other report) bool {
	a, errA := json.Marshal(r)
	b, errB := json.Marshal(other)
	return errA == nil && errB == nil && string(a) == string(b)
}

// stderrWithin is how long a failure waits for the end of its standard error; usually it takes 2 s.
const stderrWithin = 30 * time.Second

// reportOf says what has become of a step's object.
func reportOf(o *object, now time.Time) report {
	s := o.Status
	fetched := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionOutputFetched)
	givenUp := fetched != nil && fetched.Status == metav1.ConditionFalse &&
		(fetched.Reason == lifecycle.ReasonGivenUp || fetched.Reason == lifecycle.ReasonIncomplete)
	is := report{Phase: pending, Message: s.Message}
	switch s.Phase {
	case v1alpha1.PhaseSucceeded:
		switch {
		case !o.result || s.OutputFetched:
			is.Phase = succeeded
		case givenUp:
			is.Phase, is.Message = failed, "it has succeeded, but there is no result: "+fetched.Message
		default:
			is.Message = "it has succeeded; its result is being fetched"
		}
	case v1alpha1.PhaseFailed, v1alpha1.PhaseRemoved:
		if s.OutputFetched || givenUp || s.CompletionTime == nil || now.Sub(s.CompletionTime.Time) > stderrWithin {
			is.Phase = failed
		}
	}
	if is.Message == "" {
		is.Message = o.name + " " + o.Name
	}
	is.Outputs = outputsOf(o, is.Phase.over())
	return is
}

// outputsOf returns the same parameters for every step that is over, whether it has succeeded or not: other steps may
// refer to each of them.
func outputsOf(o *object, over bool) *outputs {
	is := &outputs{Parameters: []parameter{{nameParameter, o.Name}}}
	if !over {
		return is
	}
	s := o.Status
	exitCode, result, stderr := "", "", ""
	if s.ExitCode != nil {
		exitCode = strconv.Itoa(int(*s.ExitCode))
		is.ExitCode = &exitCode
	}
	if s.Result != nil {
		result = *s.Result
		// Argo reads those of a step with withItems as JSON, and gives up the workflow where it is none.
		if json.Valid([]byte(result)) {
			is.Result = &result
		}
	}
	if len(s.Failures) > 0 {
		stderr = s.Failures[0].Stderr
	}
	is.Parameters = append(
		is.Parameters,
		parameter{"phase", string(s.Phase)},
		parameter{"reason", s.Reason},
		parameter{"message", s.Message},
		parameter{"exitCode", exitCode},
		parameter{"stderr", stderr},
		parameter{"result", result},
	)
	return is
}
