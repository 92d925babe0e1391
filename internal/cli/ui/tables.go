package ui

import (
	"context"
	"fmt"
	"sync"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/graph"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

// listings has the nodes and edges that spec.graph lists, also in ConfigMaps, of the workflows that were looked at: an
// attempt reads its tables once, and so does the page.
type listings struct {
	mu    sync.Mutex
	known map[string]map[string][]string
}

// mostListings bounds them; each is of a graph that may be drawn.
const mostListings = 16

// tables returns those of a workflow; none if it has more nodes than are drawn.
func (s *Server) tables(ctx context.Context, w *v1alpha1.HTCWorkflow) (map[string][]string, error) {
	of := w.Spec.Graph
	if of == nil || w.Status.Nodes.Total > graph.MostDrawn+1 { // finally is one
		return nil, nil
	}
	key := fmt.Sprint(w.UID, " ", w.Generation, " ", w.Status.Attempt)
	s.listings.mu.Lock()
	tables, known := s.listings.known[key]
	s.listings.mu.Unlock()
	if known {
		return tables, nil
	}
	_, tables, err := graph.Read(w.Spec, submit.CheckVariable, func(from v1alpha1.ItemsFrom) ([]byte, error) {
		if from.JobRef != nil {
			return nil, nil // from htcd's store
		}
		return s.o.Table(ctx, w.Namespace, from.ConfigMapKeyRef)
	})
	if err != nil {
		return nil, fmt.Errorf("the nodes are not drawn: %w", err)
	}
	nodes := 0
	for _, step := range w.Spec.Steps {
		nodes += len(tables[string(step.Name)])
	}
	if nodes > graph.MostDrawn {
		tables = nil
	}
	s.listings.mu.Lock()
	defer s.listings.mu.Unlock()
	if s.listings.known == nil || len(s.listings.known) >= mostListings {
		s.listings.known = map[string]map[string][]string{}
	}
	s.listings.known[key] = tables
	return tables, nil
}
