package metrics

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/artifact"
	"htc.cern.ch/htcd/internal/inputs"
)

// waiting is an HTCJob that waits, created at the beginning of time, with a condition that turned an hour later.
func waiting(phase v1alpha1.Phase, kind string, is metav1.ConditionStatus, reason string) *v1alpha1.HTCJob {
	job := &v1alpha1.HTCJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         "ns",
			Name:              "j",
			CreationTimestamp: metav1.NewTime(time.Unix(1000, 0)),
		},
		Status: v1alpha1.HTCJobStatus{Phase: phase},
	}
	if kind != "" {
		job.Status.Conditions = []metav1.Condition{
			{Type: kind, Status: is, Reason: reason, LastTransitionTime: metav1.NewTime(time.Unix(4600, 0))},
		}
	}
	return job
}

func TestWhyAnHTCJobWaits(t *testing.T) {
	deleted := waiting("Pending", "Submitted", "False", "Waiting")
	deleted.DeletionTimestamp = new(metav1.NewTime(time.Unix(5000, 0)))
	both := waiting("Submitting", "Submitted", "False", "Retrying")
	both.Status.Conditions = append(
		both.Status.Conditions,
		metav1.Condition{Type: "Credentials", Status: "False", Reason: "BadPassword"},
	)
	for name, c := range map[string]struct {
		job  *v1alpha1.HTCJob
		want string
	}{
		"it is new":                           {waiting("", "", "", ""), "NoStatus"},
		"its turn has not come":               {waiting("Pending", "Submitted", "False", "Waiting"), "Waiting"},
		"it is looked for":                    {waiting("Submitting", "Submitted", "Unknown", "AskingSchedd"), "AskingSchedd"},
		"the schedd is away":                  {waiting("Submitting", "BackendReachable", "False", "Timeout"), "Timeout"},
		"the password is wrong":               {both, "BadPassword"},
		"another HTCJob has not ended":        {waiting("Pending", "Submitted", "False", inputs.ReasonHTCJobNotEnded), "HTCJobNotEnded"},
		"another HTCJob has failed":           {waiting("Pending", "Submitted", "False", inputs.ReasonHTCJobFailed), "HTCJobFailed"},
		"an input is not there":               {waiting("Pending", "Submitted", "False", inputs.ReasonUploadNotFound), "UploadNotFound"},
		"others' artifacts come first":        {waiting("Pending", "Submitted", "False", artifact.ReasonWaits), "ArtifactWaits"},
		"an artifact is not there":            {waiting("Pending", "Submitted", "False", artifact.ReasonNotFound), "ArtifactNotFound"},
		"a registry is away":                  {waiting("Pending", "Submitted", "False", artifact.ReasonUnreachable), "RegistryUnreachable"},
		"somebody wrote something of his own": {waiting("Pending", "Submitted", "False", "Whatever"), "Other"},
		"it runs":                             {waiting("Running", "Credentials", "False", "BadPassword"), ""},
		"it is suspended":                     {waiting("Suspended", "Submitted", "False", "Suspended"), ""},
		"it is being deleted":                 {deleted, ""},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, waiterOf(c.job).why()) })
	}
}

func TestTheTimeInWhichAnHTCJobWaitsForAnotherDoesNotCount(t *testing.T) {
	w := newWaits(nil, nil)
	w.now = func() time.Time { return time.Unix(9000, 0) }
	w.seen("ns/j", waiterOf(waiting("Pending", "InputsReady", "False", "")))
	w.seen("ns/j", waiterOf(waiting("Pending", "Submitted", "False", inputs.ReasonHTCJobNotEnded)))
	w.seen("ns/j", waiterOf(waiting("Pending", "Submitted", "False", inputs.ReasonHTCJobFailed)))
	require.Equal(t, time.Unix(1000, 0), w.m["ns/j"].since)
	w.seen("ns/j", waiterOf(waiting("Pending", "Submitted", "False", "Waiting")))
	require.Equal(t, time.Unix(9000, 0), w.m["ns/j"].since)
}

// What the alert leaves out while it lasts would set it off when it is over, if that time counted.
func TestWhatTheAlertLeavesOutDoesNotCountLater(t *testing.T) {
	rules, err := os.ReadFile("../../deploy/monitoring/alerts.yaml")
	require.NoError(t, err)
	leftOut := regexp.MustCompile(`waiting_since_timestamp_seconds\{reason!~"(.*?)"\}`).FindAllSubmatch(rules, -1)
	require.Len(t, leftOut, 2)
	for _, of := range leftOut {
		pattern := regexp.MustCompile("^(" + string(of[1]) + ")$")
		for _, reason := range waitReasons {
			require.Equal(t, pattern.MatchString(reason), slices.Contains(limited, reason), reason)
		}
	}
}

func TestHTCJobsThatWaitAreCountedByReasonWithTheOldest(t *testing.T) {
	m := New(Build{})
	require.NoError(t, m.registry.Register(m.waits))
	m.waits.now = func() time.Time { return time.Unix(9000, 0) }
	seen := m.phases()
	n := func(reason string) string {
		return value(t, page(t, m), fmt.Sprintf("htcd_waiting_htcjobs{reason=%q}", reason))
	}
	since := func(reason string) string {
		return value(t, page(t, m), fmt.Sprintf("htcd_waiting_since_timestamp_seconds{reason=%q}", reason))
	}
	require.Equal(t, "0", n("Waiting"))
	require.Empty(t, since("Waiting"))

	first := waiting("", "", "", "")
	seen.OnAdd(first, false)
	require.Equal(t, "1000", since("NoStatus"))
	asked := waiting("Submitting", "Submitted", "Unknown", "AskingSchedd")
	seen.OnUpdate(first, asked)
	require.Equal(t, "1000", since("AskingSchedd"), "another reason is no new beginning")
	require.Empty(t, n("NoStatus"))
	full := waiting("Pending", "Submitted", "False", "NamespaceLimit")
	seen.OnUpdate(asked, full)
	require.Equal(t, "1000", since("NamespaceLimit"))
	room := waiting("Pending", "Submitted", "False", "Waiting")
	seen.OnUpdate(full, room)
	require.Equal(t, "9000", since("Waiting"), "there is room now")

	old := waiting("Pending", "Submitted", "False", "Waiting")
	old.Name = "old"
	seen.OnAdd(old, true)
	require.Equal(t, "4600", since("Waiting"), "since the attempt began, not since it was created")
	require.Equal(t, "2", n("Waiting"))
	seen.OnUpdate(room, waiting("Idle", "Submitted", "True", "Submitted"))
	require.Equal(t, "1", n("Waiting"))
	seen.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/old", Obj: old})
	require.Equal(t, "0", n("Waiting"))
	require.Empty(t, m.waits.m)
}

func TestHTCWorkflowsThatWaitAreCountedAlsoForAFurtherDAG(t *testing.T) {
	is := func(phase v1alpha1.Phase, is metav1.ConditionStatus, reason string) *v1alpha1.HTCWorkflow {
		job := waiting(phase, "Submitted", is, reason)
		return &v1alpha1.HTCWorkflow{
			ObjectMeta: job.ObjectMeta,
			Status:     v1alpha1.HTCWorkflowStatus{Phase: phase, Conditions: job.Status.Conditions},
		}
	}
	m := New(Build{})
	require.NoError(t, m.registry.Register(m.workflows.waits))
	seen := m.workflows.count()
	n := func(reason string) string {
		return value(t, page(t, m), fmt.Sprintf("htcd_waiting_htcworkflows{reason=%q}", reason))
	}
	since := func(reason string) string {
		return value(t, page(t, m), fmt.Sprintf("htcd_htcworkflows_waiting_since_timestamp_seconds{reason=%q}", reason))
	}
	first := is("", "", "")
	first.Status.Conditions = nil
	seen.OnAdd(first, false)
	require.Equal(t, "1", n("NoStatus"))
	require.Equal(t, "1000", since("NoStatus"))

	runs := is("Running", "True", "Submitted")
	seen.OnUpdate(first, runs)
	require.Empty(t, n("NoStatus"))
	full := is("Idle", "False", "NoSpace")
	seen.OnUpdate(runs, full)
	require.Equal(t, "4600", since("NoSpace"), "since there is no room for its second DAG")
	for _, over := range []*v1alpha1.HTCWorkflow{
		is("Suspended", "False", "Suspended"), is("Failed", "False", "Refused"), is("Succeeded", "True", "Submitted"),
	} {
		seen.OnUpdate(full, over)
		require.Empty(t, m.workflows.waits.m, over.Status.Phase)
		seen.OnUpdate(over, full)
	}
	require.Equal(t, "1", n("NoSpace"))
	seen.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/j", Obj: full})
	require.Empty(t, m.workflows.waits.m)
}
