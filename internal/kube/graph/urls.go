package graph

import (
	"fmt"
	"strings"
)

// checkURLs refuses URLs to which several jobs would write.
func (g *Graph) checkURLs() error {
	seen := map[string]bool{}
	for _, s := range g.Steps {
		for _, o := range s.Job.Outputs {
			if o.URL == "" {
				continue
			}
			lacks := func(place, jobs string) error {
				return fmt.Errorf(
					"the step %q: outputs: %s: url %q: expected %s in it: the jobs of all %s would write to the same place",
					s.Name,
					o.Path,
					o.URL,
					place,
					jobs,
				)
			}
			switch {
			case !s.All && g.Listed() && !strings.Contains(o.URL, jobIDPlace):
				return lacks(jobIDPlace, "nodes")
			case !s.All && g.spec.Sequences != nil && !strings.Contains(o.URL, jobIDPlace):
				return lacks(jobIDPlace, "sequences")
			case s.Indexed && !strings.Contains(o.URL, procPlace):
				return lacks(procPlace, "items")
			case seen[o.URL]:
				return fmt.Errorf(
					"the step %q: outputs: %s: url %q: another output has the same",
					s.Name,
					o.Path,
					o.URL,
				)
			}
			seen[o.URL] = true
		}
	}
	return nil
}

// What stands in a URL for a node's JobID and Index.
const (
	jobIDPlace = "{jobid}"
	procPlace  = "{proc}"
)

// URLOf returns where the output of a node goes.
func (g *Graph) URLOf(n Node, url string) string {
	return strings.NewReplacer(jobIDPlace, g.JobID(n), procPlace, fmt.Sprint(n.Index)).Replace(url)
}
