package plugin

import (
	"bytes"
	"path/filepath"
	"regexp"
)

// fileKind is what a file holds.
type fileKind int

const (
	aManifest   fileKind = iota
	aSubmitFile          // a submit description file
	aDAGFile             // a DAG file
)

var (
	// dagLine matches what a DAG file begins with, and no submit description file: a command of DAGMan and its words.
	dagLine = regexp.MustCompile(`(?i)^(job|node|subdag|splice|final|provisioner|service|submit-description|vars|` +
		`parent|script|retry|abort-dag-on|config|include|set_job_attr|category|maxjobs|priority|dot|node_status_file|` +
		`jobstate_log|env)[ \t]+[^ \t=:]`)
	queueLine   = regexp.MustCompile(`(?im)^[ \t]*queue([ \t(]|\r?$)`)
	versionLine = regexp.MustCompile(`(?m)^[ \t{]*["']?apiVersion["']?[ \t]*:`)
)

// kindOfFile tells a file by its name or, since people call submit description files and DAG files as they like, by its
// lines.
func kindOfFile(name string, text []byte) fileKind {
	ending := filepath.Ext(name)
	switch {
	case name == "-", ending == ".yaml", ending == ".yml", ending == ".json":
		return aManifest
	case ending == ".dag", dagLine.Match(firstStatement(text)):
		return aDAGFile
	case ending == ".sub", queueLine.Match(text) && !versionLine.Match(text):
		return aSubmitFile
	}
	return aManifest
}

// firstStatement is the first line that is neither empty nor a comment.
func firstStatement(text []byte) []byte {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return line
		}
	}
	return nil
}
