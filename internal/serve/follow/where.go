package follow

import (
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// place is where a job's output is.
type place int

const (
	waiting place = iota // nowhere yet
	running              // on the node that runs it
	ending               // on its way to htcd
	kept                 // in htcd's store
	never                // there is none, and there will be none
)

// whereabouts is a place, with the reason why output is not available there.
type whereabouts struct {
	place place
	why   string
}

// object is the HTCJob or the HTCWorkflow.
type object struct {
	name       string
	phase      v1alpha1.Phase
	conditions []metav1.Condition
}

func objectOf(job *v1alpha1.HTCJob) object {
	return object{job.Name, job.Status.Phase, job.Status.Conditions}
}

// where derives it from the ledger's rows of the job; run and proc are nil if there are none.
func where(of object, run *ledger.Run, proc *ledger.Proc) whereabouts {
	id := "the job"
	if proc != nil {
		id = "job " + proc.JobID()
	}
	switch {
	case proc != nil && (proc.Fetched == ledger.IsFetched || proc.Fetched == ledger.Incomplete):
		return whereabouts{kept, id + " has ended"}

	// Nothing is in HTCondor, or not with certainty.
	case run == nil && of.phase.Terminal():
		return whereabouts{never, fmt.Sprintf("%s was not sent: %s", of.name, explained(of, v1alpha1.ConditionFailed))}
	case run != nil && run.State == ledger.Refused:
		return whereabouts{never, fmt.Sprintf("%s was not sent: %s", of.name, run.Message)}
	case run == nil || proc == nil:
		return whereabouts{
			waiting,
			fmt.Sprintf("%s is in phase %s: %s", of.name, of.phase, explained(of, v1alpha1.ConditionSubmitted)),
		}

	case proc.Fetched == ledger.GivenUp:
		return whereabouts{
			never,
			fmt.Sprintf(
				"the output of %s could not be fetched: %s",
				id,
				explained(of, v1alpha1.ConditionOutputFetched),
			),
		}

	case proc.Status == ledger.StatusOpen && runs(proc.JobStatus):
		return whereabouts{running, id + " runs"}
	case proc.Status == ledger.StatusOpen && condor.JobStatus(proc.JobStatus) == condor.Held:
		return whereabouts{
			waiting,
			fmt.Sprintf("%s is on hold in HTCondor: %s", id, explained(of, v1alpha1.ConditionHeld)),
		}
	// the schedd has just said so; the ledger does not know yet
	case proc.Status == ledger.StatusOpen && over(proc.JobStatus):
		return whereabouts{ending, id + " has ended, and its output is being fetched"}
	case proc.Status == ledger.StatusOpen:
		return whereabouts{waiting, id + " waits in HTCondor for a slot"}

	case run.OutputDir == "":
		return whereabouts{never, id + " was sent by an older htcd, which fetched no output: use condor_transfer_data"}
	// HTCondor discards the output of a removed job.
	case run.State != ledger.Submitted || condor.JobStatus(proc.JobStatus) == condor.Removed:
		return whereabouts{
			never,
			fmt.Sprintf(
				"%s was removed before it had ended, and HTCondor keeps no output of such jobs: %s",
				id,
				proc.Message,
			),
		}
	case proc.Reason == "Lost":
		return whereabouts{never, fmt.Sprintf("%s left HTCondor without a trace, and without output", id)}
	default:
		return whereabouts{ending, fmt.Sprintf("%s has ended, and its output is being fetched", id)}
	}
}

// runs reports whether there is a starter to ask.
func runs(status int) bool {
	s := condor.JobStatus(status)
	return s == condor.Running || s == condor.Suspended
}

// over reports whether the script has ended.
func over(status int) bool {
	s := condor.JobStatus(status)
	return s == condor.TransferringOutput || s == condor.Completed
}

// explained is the sentence of a condition, or another error.
func explained(of object, condition string) string {
	for _, kind := range []string{condition, v1alpha1.ConditionSuspended, v1alpha1.ConditionCredentials,
		v1alpha1.ConditionBackendReachable} {
		c := meta.FindStatusCondition(of.conditions, kind)
		bad := c != nil &&
			(kind == condition || kind == v1alpha1.ConditionSuspended == (c.Status == metav1.ConditionTrue))
		if bad && c.Message != "" {
			return strings.TrimSpace(c.Message)
		}
	}
	return "no details are known"
}

// A refusal in Kubernetes' words.

func notFound(q aggregate.Query, format string, args ...any) error {
	return refuse(http.StatusNotFound, metav1.StatusReasonNotFound, q, format, args...)
}

// notYet is for output that may exist later.
func notYet(q aggregate.Query, format string, args ...any) error {
	return refuse(http.StatusConflict, metav1.StatusReasonConflict, q, format, args...)
}

// absent is for output that cannot be read now. What is on its way arrives within seconds, and the answer says when to
// try again.
func absent(q aggregate.Query, at whereabouts) error {
	err := refuse(http.StatusConflict, metav1.StatusReasonConflict, q, "%s: there is no output yet", at.why)
	if at.place == ending {
		err.ErrStatus.Details.RetryAfterSeconds = 1
	}
	return err
}

func refuse(
	code int32,
	reason metav1.StatusReason,
	q aggregate.Query,
	format string,
	args ...any,
) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: fmt.Sprintf(format, args...),
		Details: &metav1.StatusDetails{Group: aggregate.GroupVersion.Group, Kind: q.Resource, Name: q.Name},
	}}
}
