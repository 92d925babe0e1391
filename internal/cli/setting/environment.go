package setting

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// fromEnvironment sets what the command line has not. A former name comes after the present one: only a site itself
// still sets it.
func fromEnvironment(f *pflag.FlagSet, getenv func(string) string) error {
	given := map[pflag.Value]bool{}
	f.VisitAll(func(flag *pflag.Flag) { // Visit would miss what a set parsed to which these were added
		if flag.Changed {
			given[flag.Value] = true
		}
	})
	var errs []error
	set := func(flag *pflag.Flag) {
		name := Variable(flag.Name)
		value := getenv(name)
		if given[flag.Value] || value == "" {
			return
		}
		if err := f.Set(flag.Name, value); err != nil {
			errs = append(errs, Explain(err, name))
		}
	}
	var former []*pflag.Flag
	f.VisitAll(func(flag *pflag.Flag) {
		if _, is := flag.Annotations[formerName]; is {
			former = append(former, flag)
			return
		}
		set(flag)
	})
	for _, flag := range former {
		set(flag)
	}
	return errors.Join(errs...)
}

// Complete sets every flag that was not given from HTCD_<FLAG>, dashes as underscores, and refuses a variable that no
// flag has, here or in others.
func Complete(f *pflag.FlagSet, environ []string, others ...*pflag.FlagSet) error {
	if unknown := unknownEnvironment(append(others, f), environ); len(unknown) > 0 {
		return fmt.Errorf("%s: no such setting; htcd run --help and htcd feed --help list them", strings.Join(unknown, ", "))
	}
	return fromEnvironment(f, lookup(environ))
}

// Variable is the name under which the environment sets a flag.
func Variable(flag string) string {
	return "HTCD_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// unknownEnvironment returns the HTCD_ variables that match no flag: a misspelt setting must not be ignored. A Service
// called htcd makes Kubernetes set HTCD_SERVICE_HOST, HTCD_PORT and the like in every pod; those are not settings.
func unknownEnvironment(known []*pflag.FlagSet, environ []string) []string {
	var unknown []string
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		rest, ours := strings.CutPrefix(name, "HTCD_")
		if !ours || strings.HasPrefix(rest, "SERVICE_") || rest == "PORT" || strings.HasPrefix(rest, "PORT_") {
			continue
		}
		flag := strings.ToLower(strings.ReplaceAll(rest, "_", "-"))
		if !slices.ContainsFunc(known, func(f *pflag.FlagSet) bool { return f.Lookup(flag) != nil }) {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// lookup finds a variable in an environment list, as os.Getenv does.
func lookup(environ []string) func(string) string {
	return func(name string) string {
		for _, entry := range environ {
			if value, found := strings.CutPrefix(entry, name+"="); found {
				return value
			}
		}
		return ""
	}
}
