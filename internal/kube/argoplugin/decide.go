package argoplugin

import (
	"maps"
	"slices"
	"strings"
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// nodeAnnotation is the id of the step that an HTCJob is for.
const nodeAnnotation = "htc.cern.ch/argo-node"

// workflowLabel is Argo's own, on the pods of a workflow.
const workflowLabel = "workflows.argoproj.io/workflow"

// situation is all that a decision depends on.
type situation struct {
	Workflow workflow
	Tasks    []task                      // that are to be executed
	Jobs     map[string]*v1alpha1.HTCJob // of the workflow, by name
	Reported map[string]report           // by node
	Refused  map[string]refusal          // by node: why there is no HTCJob yet
	Now      time.Time
}

// refusal is the apiserver's answer to a creation.
type refusal struct {
	Final   bool // trying again cannot help
	Message string
}

// plan lists the actions of one pass.
type plan struct {
	Create map[string]task // by the HTCJob's name
	Delete []*v1alpha1.HTCJob
	Report map[string]report // by node, only what has changed
}

// decide is the whole decision of a pass.
func decide(s situation) plan {
	p := plan{Create: map[string]task{}, Report: map[string]report{}}
	wanted := map[string]bool{}
	leaving := map[string]*v1alpha1.HTCJob{}
	for _, t := range s.Tasks {
		wanted[jobName(s.Workflow, t)] = true
	}
	for _, name := range slices.Sorted(maps.Keys(s.Jobs)) {
		job := s.Jobs[name]
		if wanted[name] || !s.Workflow.owns(job) || job.Status.Phase.Terminal() {
			continue
		}
		leaving[job.Annotations[nodeAnnotation]] = job
		if job.DeletionTimestamp == nil {
			p.Delete = append(p.Delete, job)
		}
	}
	for _, t := range s.Tasks {
		name := jobName(s.Workflow, t)
		create, is := s.step(t, name, s.Jobs[name], leaving[t.Node])
		if create {
			p.Create[name] = t
		}
		if is.Phase != "" && !is.same(s.Reported[t.Node]) {
			p.Report[t.Node] = is
		}
	}
	return p
}

// step decides about one step: whether to create its HTCJob, and what to report, if anything.
func (s situation) step(t task, name string, job, leaving *v1alpha1.HTCJob) (create bool, is report) {
	refused := s.Refused[t.Node]
	switch {
	case s.Reported[t.Node].Phase.over():
		return false, report{} // Argo has not seen it yet
	case t.Err != nil:
		return false, report{Phase: errored, Message: t.Err.Error()}
	case job == nil && s.Reported[t.Node].created():
		return false, report{Phase: failed, Message: "HTCJob " + name + " was deleted"}
	case job == nil && refused.Final:
		return false, report{Phase: errored, Message: refused.Message}
	case job == nil && leaving != nil:
		return false, report{Phase: pending, Message: "HTCJob " + leaving.Name + " of an earlier try is being removed"}
	case job == nil && refused.Message != "":
		return true, report{Phase: pending, Message: refused.Message}
	case job == nil:
		return true, report{}
	case !s.Workflow.owns(job) || job.Annotations[nodeAnnotation] != t.Node:
		return false, report{
			Phase:   errored,
			Message: "there is an HTCJob " + name + " already, which is not of this workflow",
		}
	case job.DeletionTimestamp != nil:
		return false, report{Phase: failed, Message: "HTCJob " + name + " was deleted"}
	}
	return false, reportOf(job, s.Now)
}

// owns reports whether an HTCJob was created for this workflow, not for another of its name.
func (w workflow) owns(job *v1alpha1.HTCJob) bool {
	for _, owner := range job.OwnerReferences {
		if string(owner.UID) == w.UID {
			return job.Annotations[nodeAnnotation] != ""
		}
	}
	return false
}

// maxOver is the number of ends in a task set that Argo has not taken out yet. With their messages and results they
// must fit beside the steps into what etcd stores of an object.
const maxOver = 40

// urgent returns the reports to be written now: ends first, as far as there is room for them; how far a step is only if
// it is time for that, or it is the first that Argo hears of it.
func urgent(all, reported map[string]report, progress bool) map[string]report {
	room := maxOver
	for _, r := range reported {
		if r.Phase.over() {
			room--
		}
	}
	now := map[string]report{}
	for _, node := range slices.SortedFunc(maps.Keys(all), strings.Compare) {
		is := all[node]
		_, known := reported[node]
		switch {
		case is.Phase.over() && room > 0:
			room--
			now[node] = is
		case !is.Phase.over() && (progress || !known || is.created() && !reported[node].created()):
			now[node] = is
		}
	}
	return now
}
