package argoplugin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// workflow is what identifies a run of a workflow, and what of it is over. Argo's retry of one has another start.
type workflow struct {
	Name, UID string
	Started   time.Time
	Completed bool
	Over      map[string]bool // steps, by their ids
}

// task is a step that is to be an HTCJob or HTCWorkflow.
type task struct {
	kind     *kind
	Node     string // the step's id, which is unique in its workflow
	Template string // its template's name
	Spec     map[string]any
	Err      error // why there is no Spec
}

// template is the part of an Argo template that is read.
type template struct {
	Name   string
	Plugin map[string]json.RawMessage
}

// kind returns what the template is for; nil: for another plugin.
func (t template) kind() *kind {
	for _, k := range kinds {
		if t.Plugin[k.key] != nil {
			return k
		}
	}
	return nil
}

// task returns the template, which is for this plugin, as a step. The spec may be a text, so that parameters can stand
// for numbers in it.
func (t template) task(node string) task {
	is := task{kind: t.kind(), Node: node, Template: t.Name}
	text := []byte(t.Plugin[is.kind.key])
	var written string
	if json.Unmarshal(text, &written) == nil {
		text = []byte(written)
	}
	if err := yaml.UnmarshalStrict(text, &is.Spec); err != nil {
		is.Err = fmt.Errorf("plugin.%s is no %s's spec: %w", is.kind.key, is.kind.name, err)
	} else if is.Spec == nil {
		is.Err = fmt.Errorf("plugin.%s is empty; want an %s's spec", is.kind.key, is.kind.name)
	}
	return is
}

// maxName leaves names short enough for labels.
const maxName = 63

// objectName depends on the step and on the start of its workflow alone, so that its object is found again after a
// restart. No two steps share one.
func objectName(w workflow, t task) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%d\n%s", w.UID, w.Started.Unix(), t.Node))
	hash := hex.EncodeToString(sum[:5])
	name := w.Name + "-" + strings.Map(inNames, strings.ToLower(t.Template))
	name = name[:min(len(name), maxName-len(hash)-1)]
	return strings.TrimRight(name, "-.") + "-" + hash
}

// inNames replaces what a name in Kubernetes cannot have.
func inNames(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
		return r
	}
	return '-'
}
