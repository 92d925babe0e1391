package graph

import "fmt"

// loosen notes that the nodes of step k must only have ended.
func (s *Step) loosen(k int) {
	if s.loose == nil {
		s.loose = map[int]bool{}
	}
	s.loose[k] = true
}

// checkLoose refuses what DAGs that are sent one after the other cannot do: one has the sequences in which all before has succeeded.
func (g *Graph) checkLoose() error {
	for i, s := range g.Steps {
		for k := range s.loose {
			if from := g.Steps[k]; !s.All && from.Level < s.Level {
				return fmt.Errorf("spec.steps[%d].needs: outcome Any: %q comes after a step that runs once for all sequences, and then only in those that have succeeded so far: let it need %q alone, or give it pairing All",
					i, s.Name, from.Name)
			}
		}
	}
	return nil
}
