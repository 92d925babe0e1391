package jobcredentials

import (
	"fmt"
	"net/url"
	"path"
	"strings"
)

// URL returns where the jobs of an attempt ask for their credentials, beside the URL of callbacks; empty if that is not https: a job asks by
// nothing else.
func URL(callback, uid string, attempt int) string {
	u, err := url.Parse(callback)
	if err != nil || u.Scheme != "https" {
		return ""
	}
	u.Path = strings.TrimSuffix(path.Dir("/"+u.Path), "/") + Path + fmt.Sprintf("%s/%d", uid, attempt)
	u.RawPath, u.RawQuery, u.Fragment = "", "", ""
	return u.String()
}

// Served reports whether jobs get new credentials; otherwise they keep those that they were sent with.
func Served(callback string) bool { return URL(callback, "uid", 1) != "" }
