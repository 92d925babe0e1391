package schedd

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Endpoint is a schedd and the pool whose collector has its address. Empty fields mean the defaults: Options.Pool and
// ScheddName.
type Endpoint struct {
	Collector string // host or host:port
	Schedd    string // the schedd's name
}

// String returns the endpoint for humans.
func (e Endpoint) String() string {
	if e.Collector == "" {
		return e.Schedd
	}
	return e.Schedd + " of pool " + e.Collector
}

// AllowEndpoint refuses an endpoint that no pattern names. A pattern is "SCHEDD", for schedds of the usual pool, or
// "COLLECTOR/SCHEDD"; in both parts * stands for any characters and ? for one. Case is ignored.
func AllowEndpoint(e Endpoint, patterns []string) error {
	for _, pattern := range patterns {
		if allows(pattern, e) {
			return nil
		}
	}
	if len(patterns) == 0 {
		return condor.Refusal(
			"spec.pool: this htcd sends jobs to its own schedd only (--allow-pools names no other): leave collector and schedd out",
		)
	}
	return condor.Refusal(
		"spec.pool: schedd %s is not one that htcd may send jobs to; its administrator allows %s (--allow-pools)",
		e,
		strings.Join(patterns, ", "),
	)
}

func allows(pattern string, e Endpoint) bool {
	collector, schedd, both := strings.Cut(pattern, "/")
	if !both {
		collector, schedd = "", pattern
	}
	return fits(collector, e.Collector) && fits(schedd, e.Schedd)
}

// fits compares with path.Match: an endpoint's names have no slash, so * matches any characters.
func fits(pattern, name string) bool {
	ok, err := path.Match(strings.ToLower(pattern), strings.ToLower(name))
	return ok && err == nil
}

// endpointPattern matches the patterns of AllowEndpoint.
var endpointPattern = regexp.MustCompile(`^([A-Za-z0-9.:*?-]+/)?[A-Za-z0-9_.@*?-]+$`)

// CheckEndpointPatterns returns what is wrong with patterns for AllowEndpoint.
func CheckEndpointPatterns(patterns []string) error {
	for _, p := range patterns {
		if !endpointPattern.MatchString(p) {
			return fmt.Errorf("%q: want SCHEDD, or COLLECTOR/SCHEDD for another pool, where * stands for anything", p)
		}
	}
	return nil
}
