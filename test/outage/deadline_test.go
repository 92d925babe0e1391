package outage

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// slow is a site's program that condor_submit runs in the description's directory and that does not end for one HTCJob.
const slow = `grep -q '"slow"' job.sub && exec sleep 1000
cat "${KRB5CCNAME#FILE:}"
`

func TestADeadlineOfOneUsersSubmissionIsNobodyElsesOutage(t *testing.T) {
	o := begin(t, "--command-timeout=20s", "--condor-config="+credentials(t, slow))
	o.Create("other", "sleep 1000\n")
	o.running("other")
	before := o.Get("other").Status
	o.Create("slow", "exit 0\n")
	o.says("slow", v1alpha1.ConditionSubmitted, "Timeout")
	reachable := func(job *v1alpha1.HTCJob) *metav1.Condition {
		return meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionBackendReachable)
	}
	require.Equal(t, metav1.ConditionTrue, reachable(o.Get("slow")).Status, "the schedd answers")
	require.Equal(
		t,
		meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionBackendReachable),
		reachable(o.Get("other")),
	)

	o.Create("new", "exit 0\n")
	o.succeeded("new")
	o.gone()
}
