package artifact

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Registries are the hosts that artifacts, and tokens for them, may come from.
type Registries []host

type host struct {
	scheme, name, port string
	below              bool // everything below name
}

var hostRE = regexp.MustCompile(
	`^(http://|https://)?([*][.])?([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)(:([0-9]{1,5}))?$`,
)

// ParseRegistries reads a list of host[:port]. *.domain stands for every host below a domain; with http:// in front a
// host is asked without TLS.
func ParseRegistries(list []string) (Registries, error) {
	var all Registries
	for _, entry := range list {
		m := hostRE.FindStringSubmatch(entry)
		if m == nil {
			return nil, fmt.Errorf(
				"%q: expected host[:port] or *.domain, with http:// in front for one without TLS",
				entry,
			)
		}
		h := host{
			scheme: strings.TrimSuffix(cmp.Or(m[1], "https://"), "://"),
			below:  m[2] != "",
			name:   strings.ToLower(m[3]),
			port:   m[6],
		}
		h.port = cmp.Or(h.port, usualPort(h.scheme))
		all = append(all, h)
	}
	return all, nil
}

func usualPort(scheme string) string {
	if scheme == "http" {
		return "80"
	}
	return "443"
}

// allow reports whether u may be asked.
func (r Registries) allow(u *url.URL) bool {
	name, port := strings.ToLower(u.Hostname()), cmp.Or(u.Port(), usualPort(u.Scheme))
	return slices.ContainsFunc(r, func(h host) bool {
		return h.scheme == u.Scheme && h.port == port &&
			(h.name == name && !h.below || h.below && strings.HasSuffix(name, "."+h.name))
	})
}

// Allow reports whether a registry may be asked.
func (r Registries) Allow(registry string) bool {
	_, known := r.plain(registry)
	return known
}

// plain reports whether a registry is asked without TLS; known, whether it may be asked at all.
func (r Registries) plain(registry string) (plain, known bool) {
	if r.allow(&url.URL{Scheme: "https", Host: registry}) {
		return false, true
	}
	known = r.allow(&url.URL{Scheme: "http", Host: registry})
	return known, known
}

// transport refuses requests to other hosts, redirects included.
type transport struct {
	allowed Registries
	http.RoundTripper
}

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.allowed.allow(req.URL) {
		return nil, &forbiddenHost{req.URL.Scheme + "://" + req.URL.Host}
	}
	return t.RoundTripper.RoundTrip(req)
}

// forbiddenHost is the error of a request to a host that is not listed.
type forbiddenHost struct{ at string }

func (e *forbiddenHost) Error() string { return e.at + " is not listed in --allow-registries" }
