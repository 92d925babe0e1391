package argoplugin

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// nodeAnnotation is the id of the step that an object is for.
const nodeAnnotation = "htc.cern.ch/argo-node"

// workflowLabel is Argo's own, on the pods of a workflow.
const workflowLabel = "workflows.argoproj.io/workflow"

// situation is all that a decision depends on.
type situation struct {
	Workflow workflow
	Tasks    []task                // that are to be executed
	Objects  map[reference]*object // of the workflow
	Reported map[string]report     // by node
	Refused  map[string]refusal    // by node: why there is no object yet
	Now      time.Time
}

// refusal is the apiserver's answer to a creation.
type refusal struct {
	Final   bool // trying again cannot help
	Message string
}

// plan lists the actions of one pass.
type plan struct {
	Create map[string]task // by the object's name
	Delete []*object
	Report map[string]report // by node, only what has changed
}

// decide is the whole decision of a pass.
func decide(s situation) plan {
	p := plan{Create: map[string]task{}, Report: map[string]report{}}
	wanted := map[reference]bool{}
	leaving := map[string]*object{}
	for _, t := range s.Tasks {
		wanted[s.Workflow.reference(t)] = true
	}
	for _, ref := range slices.SortedFunc(maps.Keys(s.Objects), byName) {
		o := s.Objects[ref]
		if wanted[ref] || !s.Workflow.owns(o) || o.Status.Phase.Terminal() {
			continue
		}
		leaving[o.Annotations[nodeAnnotation]] = o
		if o.DeletionTimestamp == nil {
			p.Delete = append(p.Delete, o)
		}
	}
	for _, t := range s.Tasks {
		ref := s.Workflow.reference(t)
		create, is := s.step(t, s.Objects[ref], leaving[t.Node])
		if create {
			p.Create[ref.name] = t
		}
		if is.Phase != "" && !is.same(s.Reported[t.Node]) {
			p.Report[t.Node] = is
		}
	}
	return p
}

func byName(a, b reference) int {
	return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.kind.key, b.kind.key))
}

// reference is that of a step's object.
func (w workflow) reference(t task) reference { return reference{t.kind, objectName(w, t)} }

// step decides about one step: whether to create its object, and what to report, if anything.
func (s situation) step(t task, o, leaving *object) (create bool, is report) {
	refused := s.Refused[t.Node]
	what := t.kind.name + " " + objectName(s.Workflow, t)
	switch {
	case s.Reported[t.Node].Phase.over():
		return false, report{} // Argo has not seen it yet
	case t.Err != nil:
		return false, report{Phase: errored, Message: t.Err.Error()}
	case o == nil && s.Reported[t.Node].created():
		return false, report{Phase: failed, Message: what + " was deleted"}
	case o == nil && refused.Final:
		return false, report{Phase: errored, Message: refused.Message}
	case o == nil && leaving != nil:
		return false, report{
			Phase:   pending,
			Message: leaving.name + " " + leaving.Name + " of an earlier try is being removed",
		}
	case o == nil && refused.Message != "":
		return true, report{Phase: pending, Message: refused.Message}
	case o == nil:
		return true, report{}
	case !s.Workflow.owns(o) || o.Annotations[nodeAnnotation] != t.Node:
		return false, report{
			Phase:   errored,
			Message: "there is an " + what + " already, which is not of this workflow",
		}
	case o.DeletionTimestamp != nil:
		return false, report{Phase: failed, Message: what + " was deleted"}
	}
	return false, reportOf(o, s.Now)
}

// owns reports whether an object was created for this workflow, not for another of its name.
func (w workflow) owns(o *object) bool {
	for _, owner := range o.OwnerReferences {
		if string(owner.UID) == w.UID {
			return o.Annotations[nodeAnnotation] != ""
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
