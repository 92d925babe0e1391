package convert

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// notes are the comments at the fields of an HTCJob, and at its top.
type notes struct {
	top    []string
	fields map[string][]string
}

// notes collects them; all HTCJobs of a file have the same.
func (c *converter) notes(groups []*group) []notes {
	n := notes{fields: map[string][]string{}}
	for _, l := range c.table() {
		where := fmt.Sprintf("%s, line %d: ", l.File, l.Line)
		switch {
		case l.matters():
			n.top = append(n.top, where+shortLine(l.Text), "    "+l.String())
		case l.field != "":
			n.fields[l.field] = append(n.fields[l.field], where+shortLine(l.Text))
		}
	}
	return slices.Repeat([]notes{n}, len(groups))
}

// shortLine is the beginning of a text in one line.
func shortLine(text string) string {
	text = oneLine(text)
	if len(text) > 90 {
		text = strings.ToValidUTF8(text[:87], "") + "..."
	}
	return text
}

func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "?"), unicode.IsControl), " ")
}

// unreadable matches the characters that a YAML file cannot hold as they are.
var unreadable = regexp.MustCompile("[\x7f-\u009f\ufeff\ufffe\uffff]")

// manifest writes an object as YAML.
func manifest(object any) ([]byte, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(unreadable.ReplaceAllFunc(text, func(c []byte) []byte {
		r, _ := utf8.DecodeRune(c)
		return fmt.Appendf(nil, `\u%04x`, r)
	}))
}

// YAML is the manifest of all objects, each field with the lines that it comes from.
func (r Result) YAML() ([]byte, error) {
	var b strings.Builder
	for _, maps := range r.ConfigMaps {
		for _, m := range maps {
			if err := writeConfigMap(&b, m); err != nil {
				return nil, err
			}
		}
	}
	jobs, err := r.Jobs()
	return append([]byte(b.String()), jobs...), err
}

// Jobs is the manifest of the HTCJobs, or of the HTCWorkflow, alone.
func (r Result) Jobs() ([]byte, error) {
	if r.Workflow != nil {
		return r.workflow()
	}
	var b strings.Builder
	for i, job := range r.HTCJobs {
		text, err := manifest(struct {
			APIVersion string              `json:"apiVersion"`
			Kind       string              `json:"kind"`
			Metadata   map[string]string   `json:"metadata"`
			Spec       v1alpha1.HTCJobSpec `json:"spec"`
		}{job.APIVersion, job.Kind, map[string]string{"name": job.Name}, job.Spec})
		if err != nil {
			return nil, err
		}
		b.WriteString("---\n")
		for _, line := range r.notes[i].top {
			b.WriteString("# " + line + "\n")
		}
		b.WriteString(annotate(string(text), r.notes[i].fields))
	}
	return []byte(b.String()), nil
}

// annotate writes the comments above their fields. The text is as yaml.Marshal writes it: two blanks for each level.
func annotate(text string, comments map[string][]string) string {
	var b strings.Builder
	var path []string
	block := -1 // indentation of the key whose text of several lines this is
	for line := range strings.Lines(text) {
		trimmed := strings.TrimLeft(line, " ")
		indent := len(line) - len(trimmed)
		key, rest, isKey := strings.Cut(strings.TrimRight(trimmed, "\n"), ":")
		if block >= 0 && (indent > block || trimmed == "\n") {
			b.WriteString(line)
			continue
		}
		block = -1
		if isKey && !strings.HasPrefix(trimmed, "- ") && indent%2 == 0 && indent/2 <= len(path) {
			path = append(path[:indent/2], key)
			for _, comment := range comments[strings.Join(path, ".")] {
				b.WriteString(line[:indent] + "# " + comment + "\n")
			}
			if rest = strings.TrimSpace(rest); strings.HasPrefix(rest, "|") || strings.HasPrefix(rest, ">") {
				block = indent
			}
		}
		b.WriteString(line)
	}
	return b.String()
}

func writeConfigMap(b *strings.Builder, m corev1.ConfigMap) error {
	text, err := manifest(struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Metadata   map[string]string `json:"metadata"`
		Immutable  *bool             `json:"immutable"`
		Data       map[string]string `json:"data,omitempty"`
		BinaryData map[string][]byte `json:"binaryData,omitempty"`
	}{m.APIVersion, m.Kind, map[string]string{"name": m.Name}, m.Immutable, m.Data, m.BinaryData})
	if err == nil {
		b.WriteString("---\n" + string(text))
	}
	return err
}
