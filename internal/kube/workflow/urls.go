package workflow

import (
	"slices"
	"strconv"
	"strings"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/graph"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/ledger"
)

// nameURLs completes what HTCondor says about files of nodes that it could not transfer.
func (s Situation) nameURLs() {
	nodes := [][]ledger.Node{s.Failures}
	for _, d := range s.DAGs {
		nodes = append(nodes, d.Held)
	}
	for _, some := range nodes {
		for i, n := range some {
			if s.hasStepOf(n) {
				some[i].Message = lifecycle.NameURL(s.jobOf(n), n.Proc)
			}
		}
	}
}

// jobOf returns the spec of the HTCJob that a node would be on its own.
func (s Situation) jobOf(n ledger.Node) v1alpha1.HTCJobSpec {
	spec := stepJob(s.Workflow, s.Graph, n.Step).Spec
	at := graph.Node{Step: n.Step, Sequence: n.Sequence, Index: n.Item, Name: n.Label}
	spec.Outputs = slices.Clone(spec.Outputs)
	for i, o := range spec.Outputs {
		spec.Outputs[i].URL = s.Graph.URLOf(at, ofAttempt(o.URL, s.Attempt))
	}
	return spec
}

// ofAttempt fills the number of an attempt into the URL of an output: submit knows only that of the DAG.
func ofAttempt(url string, attempt int) string {
	return strings.ReplaceAll(url, "{attempt}", strconv.Itoa(attempt))
}
