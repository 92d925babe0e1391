package ui

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// network is a workflow of 300 nodes that depend on each other in no pattern.
func network() (w v1alpha1.HTCWorkflow) {
	w.TypeMeta = metav1.TypeMeta{APIVersion: "htc.cern.ch/v1alpha1", Kind: v1alpha1.WorkflowKind}
	w.ObjectMeta = metav1.ObjectMeta{Namespace: "atlas-higgs", Name: "network", UID: "network", ResourceVersion: "1"}
	w.Spec.Graph = &v1alpha1.Graph{}
	steps := []v1alpha1.StepName{"simulate", "fit", "merge"}
	for _, s := range steps {
		w.Spec.Steps = append(w.Spec.Steps, v1alpha1.Step{StepWork: v1alpha1.StepWork{Name: s}})
	}
	random := rand.New(rand.NewPCG(1, 2))
	name := func(i int) v1alpha1.NodeName {
		return v1alpha1.NodeName(fmt.Sprintf("%s_muons_2018_%03d", steps[i%len(steps)], i))
	}
	for i := range 300 {
		w.Spec.Graph.Nodes = append(w.Spec.Graph.Nodes, v1alpha1.GraphNode{Name: name(i), Step: steps[i%len(steps)]})
		if i >= 20 {
			edge := v1alpha1.GraphEdge{Children: []v1alpha1.NodeName{name(i)}}
			for range 1 + random.IntN(2) {
				edge.Parents = append(edge.Parents, name(i-1-random.IntN(min(i, 40))))
			}
			w.Spec.Graph.Edges = append(w.Spec.Graph.Edges, edge)
		}
	}
	w.Status.Phase, w.Status.Attempt, w.Status.Nodes.Total = v1alpha1.PhaseRunning, 1, 300
	return w
}

// overlaps lists nodes that lie on another one, and names that are wider than their box.
const overlaps = `(() => {
	const boxes = [...document.querySelectorAll(".nodes a")].map((a) => [a.getAttribute("aria-label"), a.querySelector("rect").getBoundingClientRect(), a.querySelector("text").getBoundingClientRect()]);
	return boxes.filter(([name, box, text], i) => text.right > box.right || text.bottom > box.bottom || boxes.some(([, o], k) => k < i && o.left < box.right && box.left < o.right && o.top < box.bottom && box.top < o.bottom)).map(([name]) => name);
})()`

func TestAGraphOfThreeHundredNodesIsReadable(t *testing.T) {
	b := trial.New(t)
	_, kubeconfig := pretended(t, 1)
	p := tab{t, browser(t)}
	p.size(1400, 900)
	run(p, chromedp.Navigate(served(t, b, "--kubeconfig", kubeconfig)))
	p.goes(`a[href$="/workflows"]`, seen("#rows a"))
	p.goes(`#rows a[href$="/network"]`, `document.querySelectorAll(".nodes a").length == 300`)
	require.Empty(t, eval[[]string](p, overlaps))
	eval[any](p, `document.querySelector(".nodes").scrollIntoView()`)
	p.picture("ui-network")
	eval[any](
		p,
		`document.querySelector('.nodes a[aria-label^="fit_muons_2018_100"] text').dispatchEvent(new MouseEvent("mouseover", {bubbles: true}))`,
	)
	require.NotZero(t, eval[int](p, `document.querySelectorAll(".nodes .near").length`))
	p.goes(
		`.nodes a[aria-label^="fit_muons_2018_100"]`,
		`document.querySelector("#one") && document.querySelector(".nodes .current")`,
	)
	require.Contains(t, eval[string](p, `document.getElementById("one").innerText`), "fit/fit_muons_2018_100")
	require.NotZero(t, eval[int](p, `document.querySelectorAll(".nodes .near").length`))
	p.readable()
	p.size(390, 800)
	eval[any](p, `document.querySelector(".nodes").scrollIntoView()`)
	p.picture("ui-network-phone")
}
