package plugin

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
)

func job(phase v1alpha1.Phase, codes ...int32) *v1alpha1.HTCJob {
	j := &v1alpha1.HTCJob{
		ObjectMeta: metav1.ObjectMeta{Name: "zero", Generation: 1},
		Status:     v1alpha1.HTCJobStatus{Phase: phase, ObservedGeneration: 1},
	}
	for _, code := range codes {
		failure := v1alpha1.Failure{}
		if code >= 0 {
			failure.ExitCode = &code
		}
		j.Status.Failures = append(j.Status.Failures, failure)
	}
	return j
}

func objectsOf(jobs ...*v1alpha1.HTCJob) (all []*object) {
	for _, j := range jobs {
		all = append(all, objectOf(j))
	}
	return all
}

func TestItEndsAsTheJobsDid(t *testing.T) {
	for name, c := range map[string]struct {
		jobs []*v1alpha1.HTCJob
		want int
	}{
		"all succeeded":                   {[]*v1alpha1.HTCJob{job(v1alpha1.PhaseSucceeded), job(v1alpha1.PhaseSucceeded)}, 0},
		"one failed":                      {[]*v1alpha1.HTCJob{job(v1alpha1.PhaseSucceeded), job(v1alpha1.PhaseFailed, 42)}, 42},
		"all failed alike":                {[]*v1alpha1.HTCJob{job(v1alpha1.PhaseFailed, 3, 3), job(v1alpha1.PhaseFailed, 3)}, 3},
		"failures differ":                 {[]*v1alpha1.HTCJob{job(v1alpha1.PhaseFailed, 3, 4)}, 1},
		"HTCJobs differ":                  {[]*v1alpha1.HTCJob{job(v1alpha1.PhaseFailed, 3), job(v1alpha1.PhaseFailed, 4)}, 1},
		"a signal":                        {[]*v1alpha1.HTCJob{job(v1alpha1.PhaseFailed, -1)}, 1},
		"another code was to be success":  {[]*v1alpha1.HTCJob{job(v1alpha1.PhaseFailed, 0)}, 1},
		"refused":                         {[]*v1alpha1.HTCJob{job(v1alpha1.PhaseFailed)}, 1},
		"removed":                         {[]*v1alpha1.HTCJob{job(v1alpha1.PhaseRemoved)}, 1},
		"one removed after another fails": {[]*v1alpha1.HTCJob{job(v1alpha1.PhaseFailed, 5), job(v1alpha1.PhaseRemoved)}, 1},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, exitCode(objectsOf(c.jobs...))) })
	}
	aborted := workflowNamed("scan", v1alpha1.PhaseFailed)
	aborted.Status.Failures = []v1alpha1.NodeFailure{nodeFailed("fit/job_2", 7, "")}
	require.Equal(t, 7, exitCode([]*object{objectOf(aborted)}))
	aborted.Status.ExitCode = new(int32(2))
	require.Equal(t, 2, exitCode([]*object{objectOf(aborted)}), "abortReturn of its step")
	submitted := func(generation int64, rerun string) *object {
		return objectOf(
			&v1alpha1.HTCJob{
				ObjectMeta: metav1.ObjectMeta{
					Generation:  generation,
					Annotations: map[string]string{v1alpha1.RerunAnnotation: rerun},
				},
			},
		)
	}
	require.False(t, over(objectOf(job(v1alpha1.PhaseSucceeded)), submitted(2, "")), "that was the spec before")
	require.False(t, over(objectOf(job(v1alpha1.PhaseRunning)), submitted(1, "")))
	require.True(t, over(objectOf(job(v1alpha1.PhaseFailed)), submitted(1, "")))
	again := job(v1alpha1.PhaseSucceeded)
	again.Annotations = map[string]string{v1alpha1.RerunAnnotation: "now"}
	require.False(t, over(objectOf(again), submitted(1, "now")), "that was the attempt before")
	require.True(t, over(objectOf(again), submitted(1, "before")), "somebody has asked for yet another one")
	again.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionRerunRefused, Status: metav1.ConditionTrue, Message: again.RerunRefusal("no")},
	}
	require.True(t, over(objectOf(again), submitted(1, "now")), "there will be none")
	again.Annotations[v1alpha1.RerunProcsAnnotation] = "3"
	require.False(t, over(objectOf(again), submitted(1, "now")), "that was refused before it was corrected")
	again.Status.Rerun = "now"
	require.True(t, over(objectOf(again), submitted(1, "now")))
}

func TestTheLineOfATerminal(t *testing.T) {
	j := job(v1alpha1.PhaseHeld)
	j.Status.Active, j.Status.Idle, j.Status.Running, j.Status.Held, j.Status.Succeeded = 6, 1, 2, 2, 4
	j.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionHeld, Status: metav1.ConditionTrue, Message: "no such\x1b[2J image"},
	}
	for live, want := range map[bool]string{
		false: "zero: no such[2J image\n",
		true:  "zero: no such[2J image\n\r\x1b[KHeld: 1 on their way, 1 idle, 2 running, 4 done, 0 failed, 2 held\n",
	} {
		var b strings.Builder
		d := &display{w: &b, live: live, all: objectsOf(j)}
		d.show(0, objectOf(j))
		d.show(0, objectOf(j))
		d.finish()
		require.Equal(t, want, b.String())
	}
	require.Equal(
		t,
		"Pending: 3 on their way, 0 idle, 0 running, 0 done, 0 failed, 0 held",
		counts(objectsOf(pending(3))),
	)
}

func TestTheEndOfAStandardErrorIsShownOnceItIsHere(t *testing.T) {
	var b strings.Builder
	j := job(v1alpha1.PhaseFailed, 255)
	j.Status.Failures[0].JobID, j.Status.Failures[0].Message = "7.5", "exit code 255"
	fetching := metav1.Condition{
		Type:   v1alpha1.ConditionOutputFetched,
		Status: metav1.ConditionFalse,
		Reason: "Fetching",
	}
	j.Status.Conditions = []metav1.Condition{fetching}
	d := &display{w: &b, all: objectsOf(j)}
	d.show(0, objectOf(j))
	require.Empty(t, b.String())
	require.True(t, owesWords(objectOf(j)))
	j.Status.Failures[0].Stderr = "pulling\nFATAL: no such image\nhtcd: directories are dropped: work\n"
	require.False(t, owesWords(objectOf(j)))
	d.show(0, objectOf(j))
	d.show(0, objectOf(j))
	require.Equal(t, "zero: 7.5: exit code 255: FATAL: no such image\n", b.String())

	for name, change := range map[string]func(*v1alpha1.HTCJob){
		"it has succeeded":          func(j *v1alpha1.HTCJob) { j.Status.Phase = v1alpha1.PhaseSucceeded },
		"it was removed":            func(j *v1alpha1.HTCJob) { j.Status.Failures[0].ExitCode = nil },
		"its output is not fetched": func(j *v1alpha1.HTCJob) { j.Status.Conditions = nil },
		"it will not come":          func(j *v1alpha1.HTCJob) { j.Status.Conditions[0].Reason = "GivenUp" },
		"the volume is full":        func(j *v1alpha1.HTCJob) { j.Status.Conditions[0].Reason = "NoSpace" },
		"it had no standard error":  func(j *v1alpha1.HTCJob) { j.Status.Conditions[0].Status = metav1.ConditionTrue },
	} {
		j := job(v1alpha1.PhaseFailed, 255)
		j.Status.Conditions = []metav1.Condition{fetching}
		change(j)
		require.False(t, owesWords(objectOf(j)), name)
	}
}

func pending(n int32) *v1alpha1.HTCJob {
	j := job(v1alpha1.PhasePending)
	j.Spec.Script.Queue = &n
	return j
}
