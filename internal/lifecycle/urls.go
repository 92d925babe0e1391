package lifecycle

import (
	"path"
	"slices"
	"strings"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
)

// inputFailed begins HTCondor's reason for a hold because of input files.
const inputFailed = "Transfer input files failure"

// maxURLs is how many URLs a message names.
const maxURLs = 3

// NameURL adds to HTCondor's words on a failed transfer which URL they are about. Some transfer plugins name only the file that
// they were to make.
func NameURL(spec v1alpha1.HTCJobSpec, message string) string {
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
