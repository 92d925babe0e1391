package graph

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// loosen notes that the nodes of step k must only have ended.
func (s *Step) loosen(k int) {
	if s.loose == nil {
		s.loose = map[int]bool{}
	}
	s.loose[k] = true
}

// checkLoose refuses what DAGs that are sent one after the other cannot do: one has the sequences in which all before
// has succeeded.
func (g *Graph) checkLoose() error {
	for i, s := range g.Steps {
		for k := range s.loose {
			if from := g.Steps[k]; !s.All && from.Level < s.Level {
				return fmt.Errorf(
					"spec.steps[%d].needs: outcome Any: %q comes after a step that runs once for all sequences, or by whose table there are jobs, and then only in those that have succeeded so far: let it need %q alone, or give it pairing All",
					i,
					s.Name,
					from.Name,
				)
			}
		}
	}
	return nil
}

// MayFail is how many of its nodes may fail, in each sequence or of all, without the step having failed.
func (s Step) MayFail() int {
	if s.maxFailures == nil {
		return 0
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(s.maxFailures, s.Each, true)
	if err != nil { // the apiserver has checked it
		return 0
	}
	return n
}
