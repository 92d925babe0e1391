package schedd

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// Place is a schedd, and the pool in whose collector its address is found. What is empty is the
// usual: Options.Pool, and ScheddName.
type Place struct {
	Collector string // host or host:port
	Schedd    string // the schedd's name
}

// String is for people.
func (p Place) String() string {
	if p.Collector == "" {
		return p.Schedd
	}
	return p.Schedd + " of pool " + p.Collector
}

// AllowPlace refuses a place that no pattern names. A pattern is "SCHEDD", for schedds of the usual pool, or
// "COLLECTOR/SCHEDD"; in both parts * stands for any characters and ? for one. Letters may be large or small.
func AllowPlace(p Place, patterns []string) error {
	for _, pattern := range patterns {
		if allows(pattern, p) {
			return nil
		}
	}
	if len(patterns) == 0 {
		return refused("spec.pool: this htcd sends jobs to its own schedd only (--allow-pools names no other): leave collector and schedd out")
	}
	return refused("spec.pool: schedd %s is none that htcd may send jobs to; its administrator allows %s (--allow-pools)", p, strings.Join(patterns, ", "))
}

func allows(pattern string, p Place) bool {
	collector, schedd, both := strings.Cut(pattern, "/")
	if !both {
		collector, schedd = "", pattern
	}
	return fits(collector, p.Collector) && fits(schedd, p.Schedd)
}

// fits compares with path.Match: no name of a place has a slash, so its * stops at nothing.
func fits(pattern, name string) bool {
	ok, err := path.Match(strings.ToLower(pattern), strings.ToLower(name))
	return ok && err == nil
}

// placePattern is what a pattern of AllowPlace is made of.
var placePattern = regexp.MustCompile(`^([A-Za-z0-9.:*?-]+/)?[A-Za-z0-9_.@*?-]+$`)

// CheckPlacePatterns says what is wrong with patterns for AllowPlace.
func CheckPlacePatterns(patterns []string) error {
	for _, p := range patterns {
		if !placePattern.MatchString(p) {
			return fmt.Errorf("%q: want SCHEDD, or COLLECTOR/SCHEDD for another pool, where * stands for anything", p)
		}
	}
	return nil
}
