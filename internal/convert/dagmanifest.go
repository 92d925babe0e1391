package convert

import (
	"fmt"
	"strings"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// metadata is what a manifest says of an object.
type metadata struct {
	Annotations map[string]string `json:"annotations,omitempty"`
	Name        string            `json:"name"`
}

// workflow is the manifest of the HTCWorkflow, with the lines about which there is something to do or to know above it.
func (r Result) workflow() ([]byte, error) {
	text, err := manifest(struct {
		APIVersion string                   `json:"apiVersion"`
		Kind       string                   `json:"kind"`
		Metadata   metadata                 `json:"metadata"`
		Spec       v1alpha1.HTCWorkflowSpec `json:"spec"`
	}{r.Workflow.APIVersion, r.Workflow.Kind, metadata{r.Workflow.Annotations, r.Workflow.Name},
		r.Workflow.Spec})
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString("---\n")
	for _, l := range r.Lines {
		if l.matters() {
			fmt.Fprintf(&b, "# %s, line %d: %s\n#     %s\n", l.File, l.Line, shortLine(l.Text), oneLine(l.String()))
		}
	}
	return append([]byte(b.String()), text...), nil
}
