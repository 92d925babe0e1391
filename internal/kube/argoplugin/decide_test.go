package argoplugin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/api/v1alpha1"
)

var (
	now   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	pi    = workflow{Name: "pi-x2b", UID: "11", Started: now.Add(-time.Hour)}
	later = workflow{Name: "pi-x2b", UID: "11", Started: now.Add(-time.Minute)} // the same, retried
)

func step(node string) task {
	return task{kind: jobKind, Node: node, Template: "simulate", Spec: map[string]any{}}
}

// jobFor returns the HTCJob of a step.
func jobFor(w workflow, node string, change ...func(*v1alpha1.HTCJob)) *v1alpha1.HTCJob {
	job := &v1alpha1.HTCJob{ObjectMeta: metav1.ObjectMeta{
		Name: objectName(w, step(node)), Annotations: map[string]string{nodeAnnotation: node},
		OwnerReferences: []metav1.OwnerReference{{UID: types.UID(w.UID)}},
	}}
	job.Status.Phase, job.Status.Message = v1alpha1.PhaseRunning, "1 job runs"
	for _, f := range change {
		f(job)
	}
	return job
}

func in(p v1alpha1.Phase) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) { job.Status.Phase = p }
}

func leavingNow(job *v1alpha1.HTCJob) { job.DeletionTimestamp = &metav1.Time{Time: now} }

func TestDecide(t *testing.T) {
	name := objectName(pi, step("a"))
	had := report{
		Phase:   pending,
		Message: "1 job runs",
		Outputs: &outputs{Parameters: []parameter{{nameParameter, name}}},
	}
	for what, c := range map[string]struct {
		tasks    []task
		jobs     []*v1alpha1.HTCJob
		reported *report
		refused  *refusal
		creates  bool
		deletes  int
		phase    phase
		message  string
	}{
		"a new step gets an HTCJob":                                 {tasks: []task{step("a")}, creates: true},
		"how far it is is reported as Pending":                      {tasks: []task{step("a")}, jobs: []*v1alpha1.HTCJob{jobFor(pi, "a")}, phase: pending, message: "1 job runs"},
		"what Argo knows is not reported again":                     {tasks: []task{step("a")}, jobs: []*v1alpha1.HTCJob{jobFor(pi, "a")}, reported: &had},
		"success is reported":                                       {tasks: []task{step("a")}, jobs: []*v1alpha1.HTCJob{jobFor(pi, "a", in(v1alpha1.PhaseSucceeded))}, reported: &had, phase: succeeded, message: "1 job runs"},
		"an end that Argo has not taken yet is not reported again":  {tasks: []task{step("a")}, jobs: []*v1alpha1.HTCJob{jobFor(pi, "a")}, reported: &report{Phase: failed}},
		"an HTCJob that somebody deleted is not created again":      {tasks: []task{step("a")}, reported: &had, phase: failed, message: "HTCJob " + name + " was deleted"},
		"one that is being deleted has failed":                      {tasks: []task{step("a")}, jobs: []*v1alpha1.HTCJob{jobFor(pi, "a", leavingNow)}, phase: failed, message: "HTCJob " + name + " was deleted"},
		"a spec that is none is an error":                           {tasks: []task{{kind: jobKind, Node: "a", Err: errTest}}, phase: errored, message: "not a spec"},
		"a spec that the apiserver refuses is an error":             {tasks: []task{step("a")}, refused: &refusal{true, "unknown field"}, phase: errored, message: "unknown field"},
		"what cannot be created now is tried again, and said":       {tasks: []task{step("a")}, refused: &refusal{false, "forbidden"}, creates: true, phase: pending, message: "forbidden"},
		"the HTCJob of a step that has vanished is deleted":         {jobs: []*v1alpha1.HTCJob{jobFor(pi, "a")}, deletes: 1},
		"it is deleted once":                                        {jobs: []*v1alpha1.HTCJob{jobFor(pi, "a", leavingNow)}},
		"one that has ended keeps its output":                       {jobs: []*v1alpha1.HTCJob{jobFor(pi, "a", in(v1alpha1.PhaseFailed))}},
		"another workflow of this name keeps its HTCJobs":           {jobs: []*v1alpha1.HTCJob{jobFor(workflow{Name: pi.Name, UID: "10"}, "a")}},
		"an HTCJob of somebody else is neither used nor deleted":    {tasks: []task{step("a")}, jobs: []*v1alpha1.HTCJob{jobFor(pi, "a", func(job *v1alpha1.HTCJob) { job.OwnerReferences = nil })}, phase: errored, message: "there is an HTCJob " + name + " already, which is not of this workflow"},
		"a retried workflow runs the step again":                    {tasks: []task{step("a")}, jobs: []*v1alpha1.HTCJob{jobFor(later, "a", in(v1alpha1.PhaseFailed))}, creates: true},
		"a retried workflow waits for what still runs of the first": {tasks: []task{step("a")}, jobs: []*v1alpha1.HTCJob{jobFor(later, "a")}, deletes: 1, phase: pending, message: "HTCJob " + objectName(later, step("a")) + " of an earlier try is being removed"},
	} {
		t.Run(what, func(t *testing.T) {
			s := situation{
				Workflow: pi,
				Tasks:    c.tasks,
				Objects:  map[reference]*object{},
				Reported: map[string]report{},
				Refused:  map[string]refusal{},
				Now:      now,
			}
			for _, job := range c.jobs {
				s.Objects[reference{jobKind, job.Name}] = objectOf(job)
			}
			if c.reported != nil {
				s.Reported["a"] = *c.reported
			}
			if c.refused != nil {
				s.Refused["a"] = *c.refused
			}
			p := decide(s)
			require.Equal(t, c.creates, len(p.Create) == 1)
			require.Len(t, p.Delete, c.deletes)
			require.Equal(t, c.phase, p.Report["a"].Phase)
			require.Equal(t, c.message, p.Report["a"].Message)
		})
	}
}

func TestANameIsOfOneStepOfOneStart(t *testing.T) {
	long := step("a")
	long.Template = "Of_a-template-with-a-very-long-name-which-no-label-could-hold"
	names := map[string]bool{}
	for _, name := range []string{objectName(pi, step("a")), objectName(pi, step("b")), objectName(later, step("a")), objectName(workflow{Name: pi.Name, UID: "12", Started: pi.Started}, step("a")), objectName(pi, long)} {
		require.LessOrEqual(t, len(name), maxName)
		require.Regexp(t, `^pi-x2b-[a-z0-9-]+-[0-9a-f]{10}$`, name)
		names[name] = true
	}
	require.Len(t, names, 5)
	require.Equal(t, objectName(pi, step("a")), objectName(pi, step("a")))
}

func TestEndsComeFirstAndNotTooManyAtOnce(t *testing.T) {
	far, end := report{Phase: pending, Message: "further"}, report{Phase: succeeded}
	all := map[string]report{"new": far, "known": far}
	reported := map[string]report{"known": {Phase: pending}}
	require.Equal(t, map[string]report{"new": far}, urgent(all, reported, false))
	require.Equal(t, all, urgent(all, reported, true))

	for i := range 2 * maxOver {
		all["end-"+string(rune('A'+i))] = end
	}
	require.Len(t, urgent(all, map[string]report{"known": {}, "taken": end}, false), 1+maxOver-1)
}
