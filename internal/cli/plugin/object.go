package plugin

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/cli/setting"
)

// kind is one of the two that the commands take.
type kind struct {
	name     string
	resource string
	prefixes []string // what may stand before a name, the shortest first
}

var (
	jobKind      = &kind{v1alpha1.Kind, v1alpha1.Resource, []string{"job", "htcj", "htcjob", "htcjobs"}}
	workflowKind = &kind{v1alpha1.WorkflowKind, v1alpha1.WorkflowResource,
		[]string{"wf", "htcw", "htcworkflow", "htcworkflows"}}
	kinds = []*kind{jobKind, workflowKind}
)

// fullName is how kubectl names an object of the kind.
func (k *kind) fullName(name string) string {
	return strings.ToLower(k.name) + "." + v1alpha1.GroupVersion.Group + "/" + name
}

// short is a name with its kind, as the commands take it.
func (k *kind) short(name string) string { return k.prefixes[0] + "/" + name }

// bothKinds is what the help of a command says that takes either.
const bothKinds = `
A name is looked up as an HTCJob and as an HTCWorkflow. job/NAME or htcjob/NAME means the HTCJob, wf/NAME or
htcworkflow/NAME the HTCWorkflow: one of these is needed where both have the name.`

// object is an HTCJob, or an HTCWorkflow seen as one whose jobs are its nodes: the commands treat both alike.
type object struct {
	*kind
	metav1.ObjectMeta
	Status v1alpha1.HTCJobStatus

	rerun    string // what asks for one more attempt
	refused  bool   // the status says that there will be none
	expected int32  // how many jobs it will have

	job      *v1alpha1.HTCJob      // nil of an HTCWorkflow
	workflow *v1alpha1.HTCWorkflow // nil of an HTCJob
}

// objectOf returns nil for anything but an HTCJob or HTCWorkflow.
func objectOf(of runtime.Object) *object {
	switch of := of.(type) {
	case *v1alpha1.HTCJob:
		return &object{
			kind:       jobKind,
			ObjectMeta: of.ObjectMeta,
			Status:     of.Status,
			job:        of,
			rerun:      of.Rerun(),
			refused:    of.RerunRefused(),
			expected:   int32(of.Queue()),
		} // #nosec G115 -- 100,000 at most
	case *v1alpha1.HTCWorkflow:
		return &object{kind: workflowKind, ObjectMeta: of.ObjectMeta, Status: of.Status.AsJobs(), workflow: of,
			rerun: of.Rerun()}
	}
	return nil
}

// shown is the name of an object in a table.
func (o *object) shown() string {
	if o.kind == jobKind {
		return o.Name
	}
	return o.short(o.Name)
}

// reference is what an argument names.
type reference struct {
	kind *kind // nil: either
	name string
}

// named reads an argument: a name, perhaps with a kind as the commands or kubectl write it. A kind that is not among
// these is refused.
func named(argument string, among ...*kind) (reference, error) {
	wrong := setting.Usage{Err: fmt.Errorf("%q: want the name of %s", argument, either(among))}
	prefix, name, both := strings.Cut(argument, "/")
	ref := reference{name: name}
	if !both {
		ref.name = argument
	} else {
		prefix, group, _ := strings.Cut(prefix, ".")
		for _, k := range among {
			if slices.Contains(k.prefixes, prefix) &&
				(group == "" || strings.HasSuffix(group, v1alpha1.GroupVersion.Group)) {
				ref.kind = k
			}
		}
		if ref.kind == nil {
			return ref, wrong
		}
	}
	if len(among) == 1 {
		ref.kind = among[0]
	}
	if ref.name == "" || strings.Contains(ref.name, "/") {
		return ref, wrong
	}
	return ref, nil
}

// either names kinds in a sentence.
func either(among []*kind) string {
	var words []string
	for _, k := range among {
		words = append(words, "an "+k.name)
	}
	return strings.Join(words, " or ")
}
