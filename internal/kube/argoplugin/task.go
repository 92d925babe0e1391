package argoplugin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
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

// task is a step that is to be an HTCJob.
type task struct {
	Node     string // the step's id, which is unique in its workflow
	Template string // its template's name
	Spec     map[string]any
	Err      error // why there is no Spec
}

// pluginKey is the field of a template's plugin by which steps are for HTCJobs.
const pluginKey = "htcjob"

// template is the part of an Argo template that is read.
type template struct {
	Name   string
	Plugin map[string]json.RawMessage
}

// is reports whether a template is for this plugin.
func (t template) is() bool { return t.Plugin[pluginKey] != nil }

// task returns the template as a step. The spec may be a text, so that parameters can stand for numbers in it.
func (t template) task(node string) task {
	is := task{Node: node, Template: t.Name}
	text := []byte(t.Plugin[pluginKey])
	var written string
	if json.Unmarshal(text, &written) == nil {
		text = []byte(written)
	}
	if err := yaml.UnmarshalStrict(text, &is.Spec); err != nil {
		is.Err = fmt.Errorf("plugin.%s is no HTCJob's spec: %w", pluginKey, err)
	} else if is.Spec == nil {
		is.Err = errors.New("plugin." + pluginKey + " is empty; want an HTCJob's spec")
	}
	return is
}

// maxName leaves names short enough for labels.
const maxName = 63

// jobName depends on the step and on the start of its workflow alone, so that the HTCJob is found again after a
// restart. No two steps share one.
func jobName(w workflow, t task) string {
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
