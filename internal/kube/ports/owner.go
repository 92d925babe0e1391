package ports

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/graph"
)

// Target is a port of a job of an HTCJob, or of a node of an HTCWorkflow.
type Target struct {
	Kind, Name      string // of the HTCJob or HTCWorkflow
	Port            int32
	Proc            int32  // of an HTCJob
	Step, Node      string // of an HTCWorkflow, one of them
	Sequence, Index int32  // with Step
}

// of says in words whose port it is.
func (t Target) of() string {
	switch {
	case t.Node != "":
		return "node " + t.Node
	case t.Step != "":
		return fmt.Sprintf("step %s, sequence %d, index %d", t.Step, t.Sequence, t.Index)
	}
	return fmt.Sprintf("job %d", t.Proc)
}

// owner is what is needed here of an HTCJob or HTCWorkflow: a namespace may have thousands.
type owner struct {
	metav1.ObjectMeta
	kind  string
	ports []Target // of its Service
	wrong []string // what is wrong with other ports
}

// small makes an owner of what an informer gets. What it has been given before is one already.
func small(object any) (any, error) {
	switch o := object.(type) {
	case *v1alpha1.HTCJob:
		return ofJob(o), nil
	case *v1alpha1.HTCWorkflow:
		return ofWorkflow(o), nil
	}
	return object, nil
}

func ofJob(job *v1alpha1.HTCJob) *owner {
	o := newOwner(v1alpha1.Kind, job.ObjectMeta)
	if over(job.ObjectMeta, job.Status.Phase, job.Status.ObservedGeneration) {
		return o
	}
	for _, p := range job.Spec.Ports {
		o.ports = append(o.ports, Target{Kind: o.kind, Name: o.Name, Port: int32(p.Port), Proc: p.Proc})
	}
	return o
}

func ofWorkflow(w *v1alpha1.HTCWorkflow) *owner {
	o := newOwner(v1alpha1.WorkflowKind, w.ObjectMeta)
	if len(w.Spec.Ports) == 0 || over(w.ObjectMeta, w.Status.Phase, w.Status.ObservedGeneration) {
		return o
	}
	g, err := graph.New(w.Spec)
	for i, p := range w.Spec.Ports {
		if err == nil { // else the HTCWorkflow is refused, and says so itself
			if wrong := g.CheckPort(i, max(w.Sequences(), int(w.Status.Sequences.Total))); wrong != nil {
				o.wrong = append(o.wrong, wrong.Error())
				continue
			}
		}
		o.ports = append(o.ports, Target{
			Kind: o.kind, Name: o.Name, Port: int32(p.Port),
			Step: string(p.Step), Sequence: p.Sequence, Index: p.Index, Node: string(p.Node),
		})
	}
	return o
}

func newOwner(kind string, of metav1.ObjectMeta) *owner {
	return &owner{kind: kind, ObjectMeta: metav1.ObjectMeta{
		Namespace: of.Namespace, Name: of.Name, UID: of.UID, ResourceVersion: of.ResourceVersion,
	}}
}

// over reports whether nothing of an HTCJob or HTCWorkflow runs any more, or will without a change.
func over(of metav1.ObjectMeta, phase v1alpha1.Phase, observed int64) bool {
	return of.DeletionTimestamp != nil || phase.Terminal() && observed >= of.Generation
}

// wanted are the ports of its Service: none before it is there, and none after its end.
func (o *owner) wanted() []Target {
	if o == nil {
		return nil
	}
	return o.ports
}

func (o *owner) key() key { return key{o.kind, o.Name} }

// reference is it as an Event has it.
func (o *owner) reference() *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: o.kind,
		Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion,
	}
}

// key names an owner in its namespace.
type key struct{ kind, name string }

// namesake is that of the other kind, which wants a Service of the same name.
func (k key) namesake() key {
	if k.kind == v1alpha1.Kind {
		return key{v1alpha1.WorkflowKind, k.name}
	}
	return key{v1alpha1.Kind, k.name}
}
