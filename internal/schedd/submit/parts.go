package submit

import (
	_ "embed"
	"strings"
	"unicode/utf8"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

//go:embed parts.sh
var partsBody string

// Part is what runs in a job before its script or after it, in a container of the same image and with the same files.
type Part struct {
	Command string // as Description.Command; empty: that, which there is then
	Source  string
	Args    []string // as Description.Args
}

// maxPart limits the source of a part in bytes: every job spools its own copy.
const maxPart = 64 << 10

// What the parts are called in a sandbox. The wrapper moves them, and nothing with such a name is output.
const (
	fileBefore = ".htcd-before"
	fileAfter  = ".htcd-after"
)

// namedPart is a part by the name that a user has for it.
type namedPart struct {
	*Part
	name, file string
}

// parts lists those that there are.
func (d Description) parts() []namedPart {
	var all []namedPart
	if d.Before != nil {
		all = append(all, namedPart{d.Before, "before", fileBefore})
	}
	if d.After != nil {
		all = append(all, namedPart{d.After, "after", fileAfter})
	}
	return all
}

// checkParts refuses parts that could not run.
func (d Description) checkParts() error {
	for _, p := range d.parts() {
		field := "spec.script." + p.name
		switch {
		case d.Nodes > 0:
			return condor.Refusal(
				"%s: found nodes, too: what should run before and after on several machines belongs into the script",
				field,
			)
		case strings.TrimSpace(p.Source) == "":
			return condor.Refusal("%s.source: expected at least one command", field)
		case len(p.Source) > maxPart:
			return condor.Refusal(
				"%s.source: expected at most 64 KiB of UTF-8, found %d bytes: put more into the script, or into an input",
				field,
				len(p.Source),
			)
		case strings.ContainsRune(p.Source, 0) || !utf8.ValidString(p.Source):
			return condor.Refusal(
				"%s.source: expected text without NUL characters: encode binary data, as base64 for example",
				field,
			)
		case p.Command == "" && d.Executable != "":
			return condor.Refusal("%s.command: expected one beside spec.script.executable, such as sh", field)
		}
		if p.Command != "" {
			if err := checkCommand(field+".command", p.Command); err != nil {
				return err
			}
		}
	}
	return nil
}

// partFiles returns the files of the parts.
func (d Description) partFiles() []File {
	var files []File
	for _, p := range d.parts() {
		files = append(files, File{Name: p.file, Mode: 0o600, Content: p.Source})
	}
	return files
}

// partsShell returns the shell's functions that run the parts, with what goes on between them.
func (d Description) partsShell() string {
	var b strings.Builder
	for _, p := range d.parts() {
		command := p.Command
		if command == "" {
			command = d.Command
		}
		b.WriteString(
			"run_" + p.name + "() {\n\trun" + commandWords(command) + ` "$scratch/` + p.file + `"` + argumentWords(p.Args) + "\n}\n",
		)
	}
	if b.Len() > 0 {
		b.WriteString(partsBody)
	}
	return b.String()
}
