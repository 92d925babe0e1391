package lifecycle

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Beginnings of HTCondor's reasons for a hold because of files.
const (
	inputFailed  = "Transfer input files failure"
	outputFailed = "Transfer output files failure"
)

// sentFile is how the wrapper calls a file that is written to a URL.
var sentFile = regexp.MustCompile(`/\.htcd-out/\.url/([0-9]{1,2})\b`)

// maxURLs is how many URLs a message names.
const maxURLs = 3

// NameURL returns what HTCondor says about a job, and adds to its words on a failed transfer which URL they are about.
// Some transfer plugins name only the file that they were to make.
func NameURL(spec v1alpha1.HTCJobSpec, p ledger.Proc) string {
	message := p.Message
	if m := sentFile.FindStringSubmatch(message); m != nil && strings.Contains(message, outputFailed) {
		if n, err := strconv.Atoi(m[1]); err == nil && n < len(spec.Outputs) && spec.Outputs[n].URL != "" {
			of := condor.Tag{Namespace: p.Namespace, Name: p.Name, Attempt: p.Attempt}
			return withURLs(
				message,
				"spec.outputs: ",
				[]string{of.Destination(spec.Outputs[n].URL, strconv.Itoa(p.Proc))},
			)
		}
	}
	if !strings.Contains(message, inputFailed) {
		return message
	}
	var all, alike []string
	for _, in := range spec.Inputs {
		if in.URL == "" {
			continue
		}
		if strings.Contains(message, in.URL) {
			return message
		}
		all = append(all, in.URL)
		url, _, _ := strings.Cut(in.URL, "?")
		if strings.Contains(message, "/"+path.Base(url)) {
			alike = append(alike, in.URL)
		}
	}
	if len(alike) > 0 {
		all = alike
	}
	return withURLs(message, "spec.inputs: ", all)
}

func withURLs(message, from string, urls []string) string {
	if len(urls) == 0 {
		return message
	}
	more := ""
	if n := len(urls) - maxURLs; n > 0 {
		more = ", and " + Plural(n, "other")
	}
	return message + "; " + from + strings.Join(slices.Clip(urls[:min(len(urls), maxURLs)]), " or ") + more
}
