package jobcredentials

import (
	"fmt"
	"net/url"
	"path"
	"strings"
)

// URL returns where the jobs of an attempt ask for their credentials, beside the URL of callbacks; empty if that is not
// https: a job asks by nothing else.
func URL(callback, uid string, attempt int) string {
	u, err := url.Parse(callback)
	if err != nil || u.Scheme != "https" {
		return ""
	}
	u.Path = strings.TrimSuffix(path.Dir("/"+u.Path), "/") + Path + fmt.Sprintf("%s/%d", uid, attempt)
	u.RawPath, u.RawQuery, u.Fragment = "", "", ""
	return u.String()
}

// StepURL is URL for a step of a workflow's DAG.
func StepURL(callback, uid string, attempt, step int) string {
	u := URL(callback, uid, attempt)
	if u == "" {
		return ""
	}
	return fmt.Sprintf("%s/%d", u, step)
}

// Served reports whether jobs get new credentials; otherwise they keep those that they were sent with.
func Served(callback string) bool { return URL(callback, "uid", 1) != "" }
