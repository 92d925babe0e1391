package submit

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/htcopts"
)

// An allowance decides which values a submit command may have. It returns the value to write, or what it expected.
type allowance func(value string) (written string, err error)

// allowed lists every submit command an HTCJob may use. Anything else is refused unless the site allows it: most other
// commands read files or run commands on the submitting host, or break htcd's promises.
var allowed = map[string]allowance{
	"request_cpus":            amount,
	"request_memory":          quantity,
	"request_disk":            quantity,
	"request_gpus":            amount,
	"require_gpus":            enclosed,
	"gpus_minimum_memory":     quantity,
	"gpus_minimum_capability": number,
	"gpus_maximum_capability": number,
	"gpus_minimum_runtime":    number,
	"requirements":            enclosed,
	"rank":                    expression,
	"preferences":             expression,

	"priority":                whole,
	"nice_user":               oneOf("true", "false"),
	"accounting_group":        word,
	"concurrency_limits":      words,
	"concurrency_limits_expr": expression,

	"max_retries":              count,
	"retry_until":              until,
	"success_exit_code":        count,
	"on_exit_hold":             expression,
	"on_exit_hold_reason":      reason,
	"on_exit_hold_subcode":     expression,
	"on_exit_remove":           enclosed,
	"periodic_hold":            expression,
	"periodic_hold_reason":     reason,
	"periodic_hold_subcode":    expression,
	"periodic_release":         expression,
	"periodic_remove":          expression,
	"allowed_job_duration":     expression,
	"allowed_execute_duration": expression,
	"job_lease_duration":       count,
	"job_max_vacate_time":      expression,
	"want_graceful_removal":    expression,

	"notification":          oneOf("never", "complete", "error", "always"),
	"transfer_output_files": outputFiles,
}

// deferring lists the allowed commands that let a job continue after one of its executions ended, or change what counts
// as success.
var deferring = []string{"max_retries", "retry_until", "success_exit_code", "on_exit_hold", "on_exit_remove"}

// exclusive lists commands that condor_submit does not accept together, or of which it ignores one.
var exclusive = map[string]string{
	"concurrency_limits": "concurrency_limits_expr", "concurrency_limits_expr": "concurrency_limits",
	"accounting_group": "nice_user", "nice_user": "accounting_group",
	"rank": "preferences", "preferences": "rank",
}

// resource accepts an amount of a pool's own resource: a number without a unit.
func resource(v string) (string, error) {
	if quantityRE.MatchString(v) && !amountRE.MatchString(v) {
		return "", fmt.Errorf("it is taken for a resource of the pool's own, whose value is a number; found %q", v)
	}
	return amount(v)
}

var allowedNames = slices.Sorted(maps.Keys(allowed))

// meant returns the allowed command of which a name is probably a misspelling, or "". For request_ with a resource's
// name only the latter is compared; otherwise all short names would be similar.
func meant(command string) string {
	best, least := "", 3
	for _, c := range allowedNames {
		is, was := c, command
		if strings.HasPrefix(is, "request_") && strings.HasPrefix(was, "request_") {
			is, was = is[len("request_"):], was[len("request_"):]
		}
		if n := len(was) - len(is); n >= least || -n >= least {
			continue // it takes as many edits at least
		}
		if d := edits(was, is); d <= len(is)/3 && d < least {
			best, least = c, d
		}
	}
	return best
}

// edits counts the letters to delete, insert, replace or swap with a neighbour to turn a into b.
func edits(a, b string) int {
	var rows [3][]int // the last ones of the table: for i, i-1 and i-2 letters of a
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
	}
	for i := range len(a) + 1 {
		row, above, older := rows[i%3], rows[(i+2)%3], rows[(i+1)%3]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			if i == 0 {
				row[j] = j
				continue
			}
			other := 1
			if a[i-1] == b[j-1] {
				other = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+other)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
	}
	return rows[len(a)%3][len(b)]
}

// ownedAttributes lists what the owned commands set and what identifies the job: a +Attribute would come after htcd's
// own line and win.
var ownedAttributes = []string{
	"Cmd",
	"Args",
	"Arguments",
	"JobUniverse",
	"JobBatchName",
	"ContainerImage",
	"DockerImage",
	"Iwd",
	"In",
	"Out",
	"Err",
	"UserLog",
	"TransferInput",
	"TransferOutputRemaps",
	"TransferExecutable",
	"ShouldTransferFiles",
	"WhenToTransferOutput",
	"OutputDestination",
	"SpooledOutputFiles",
	"LeaveJobInQueue",
	"JobMaxRetries",
	"JobSuccessExitCode",
	"Owner",
	"User",
	"ClusterId",
	"ProcId",
	"JobStatus",
	"MyType",
	"TargetType",
	"DAGManJobId",
	"DAGNodeName",
	"OtherJobRemoveRequirements",
}

// CheckAllow returns what is wrong with a site's list of further submit commands and +Attributes: it must not contain
// those that htcd sets itself.
func CheckAllow(list []string) error {
	for _, entry := range list {
		if err := forSite(entry); err != nil {
			return err
		}
	}
	return nil
}

var patternRE = regexp.MustCompile(`^[A-Za-z_*?][A-Za-z0-9_*?]{0,127}$`)

// CheckAttributes returns what is wrong with a site's patterns of +Attributes.
func CheckAttributes(patterns []string) error {
	for _, p := range patterns {
		switch {
		case !patternRE.MatchString(p):
			return fmt.Errorf("%q: expected the name of an attribute, in which * stands for anything, such as Lab*", p)
		case !strings.ContainsAny(p, "*?") && !byPattern(patterns, p) && !slices.ContainsFunc(htcopts.Attributes, func(a string) bool { return strings.EqualFold(a, p) }):
			return fmt.Errorf("%q: HTCondor or htcd acts upon this attribute: no pattern can allow it", p)
		}
	}
	return nil
}

// byPattern reports whether a site's patterns allow an attribute.
func byPattern(patterns []string, name string) bool {
	lower := strings.ToLower(name)
	return htcopts.Matches(patterns, name) && !isTag(lower) && commandOf(lower) == "" &&
		!slices.ContainsFunc(ownedAttributes, func(own string) bool { return strings.EqualFold(own, name) })
}

var entryRE = regexp.MustCompile(`^\+?[A-Za-z_][A-Za-z0-9_]*$`)

// forSite returns why a site may not allow a command or +Attribute.
func forSite(entry string) error {
	name, attribute := strings.CutPrefix(strings.ToLower(entry), "+")
	is := func(s string) bool { return strings.EqualFold(s, name) }
	switch {
	case !entryRE.MatchString(entry):
		return fmt.Errorf("%q is neither a submit command nor a +Attribute", entry)
	case isTag(name), attribute && slices.ContainsFunc(ownedAttributes, is):
		return fmt.Errorf("%s is htcd's own and cannot be allowed", entry)
	case attribute && commandOf(name) != "":
		return fmt.Errorf("%s need not be allowed: %s sets it", entry, commandOf(name))
	case attribute:
		return nil
	case keywords[name] != "":
		return fmt.Errorf("%s is no submit command", entry)
	case heldBack(name):
		return fmt.Errorf("%s is htcd's own and cannot be allowed", entry)
	}
	return nil
}

// keywords are words that begin a line of another kind, and what to write instead.
var keywords = map[string]string{
	"queue":    "write spec.script.queue",
	"include":  "write the lines themselves",
	"@include": "write the lines themselves",
	"use":      "write the lines themselves",
	"if":       "write the lines that apply",
	"elif":     "write the lines that apply",
	"else":     "write the lines that apply",
	"endif":    "write the lines that apply",
	"error":    "leave it out",
	"warning":  "leave it out",
}

var (
	amountRE   = regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,9})?$`)
	quantityRE = regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,9})?( *[KMGTkmgt][Bb]?)?$`)
)

// quantity accepts a number with a unit, such as 2GB, or an expression.
func quantity(v string) (string, error) {
	if quantityRE.MatchString(v) {
		return v, nil
	}
	return calculated(v, "a number of at most 9 digits with K, M, G or T behind it")
}

// amount accepts a number or an expression.
func amount(v string) (string, error) {
	if amountRE.MatchString(v) {
		return v, nil
	}
	return calculated(v, "a number of at most 9 digits")
}

// calculated accepts an expression that is not a number: condor_submit multiplies numbers by their unit even if the
// product does not fit into 64 bits. One that is always the same must be an amount.
func calculated(v, number string) (string, error) {
	x, err := parsed(v)
	if err != nil {
		return "", err
	}
	_, literal := x.(*classad.Literal)
	switch n, isNumber := constant(x); {
	case isNumber && (literal || !amountOf(n)):
		return "", fmt.Errorf("found %q, expected %s", v, number)
	case !dependent(x) && calls(x):
		return "", fmt.Errorf(
			"found %q, expected %s, or an expression that refers to an attribute",
			condor.Clip(v),
			number,
		)
	}
	return x.String(), nil
}

// until accepts an exit code or a condition. condor_submit evaluates a condition that depends on nothing and then
// treats it as an exit code.
func until(v string) (string, error) {
	if wholeRE.MatchString(v) {
		return v, nil
	}
	x, err := parsed(v)
	if err != nil {
		return "", err
	}
	constant := classad.Walk(x, func(x classad.Expr) bool {
		switch x.(type) {
		case *classad.Ref, *classad.Call:
			return false
		}
		return true
	})
	if constant {
		return "", fmt.Errorf("found %q, expected an exit code or a condition such as ExitCode > 3", v)
	}
	return enclosed(v)
}

// wholeRE and countRE stop at 32 bits: condor_submit truncates fractions and wraps larger numbers around.
var (
	wholeRE = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,8})$`)
	countRE = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})$`)
)

func whole(v string) (string, error) {
	if !wholeRE.MatchString(v) {
		return "", fmt.Errorf("found %q, expected a whole number of at most 9 digits", v)
	}
	return v, nil
}

func count(v string) (string, error) {
	if !countRE.MatchString(v) {
		return "", fmt.Errorf("found %q, expected a whole number of at most 9 digits, not below 0", v)
	}
	return v, nil
}

var numberRE = regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,9})?$`)

func number(v string) (string, error) {
	if !numberRE.MatchString(v) {
		return "", fmt.Errorf("found %q, expected a number", v)
	}
	return v, nil
}

var (
	wordRE  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_@-]*(\.[A-Za-z0-9_@-]+)*$`)
	wordsRE = regexp.MustCompile(`^` + limit + `( *, *` + limit + `)*$`)
)

// limit matches a name of one or two parts and how much of it the job takes.
const limit = `[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?(:[0-9]{1,9}(\.[0-9]{1,9})?)?`

func word(v string) (string, error) {
	if !wordRE.MatchString(v) {
		return "", fmt.Errorf("found %q, expected one word of letters, digits and _ . @ -", v)
	}
	return v, nil
}

func words(v string) (string, error) {
	if !wordsRE.MatchString(v) {
		return "", fmt.Errorf("found %q, expected names, with :number or without, between commas", v)
	}
	return v, nil
}

func oneOf(choices ...string) allowance {
	return func(v string) (string, error) {
		if !slices.Contains(choices, strings.ToLower(v)) {
			return "", fmt.Errorf("found %q, expected one of %s", v, strings.Join(choices, ", "))
		}
		return strings.ToLower(v), nil
	}
}

var fileRE = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./+=@-]*$`)

// outputFiles accepts names inside the job's scratch directory, except htcd's own.
func outputFiles(v string) (string, error) {
	if v == `""` {
		return v, nil // HTCondor's notation for none
	}
	files := strings.Split(strings.TrimRight(v, ", \t"), ",")
	for i, f := range files {
		f = strings.TrimSpace(f)
		files[i] = f
		switch {
		case !fileRE.MatchString(f), path.Clean(f) != strings.TrimSuffix(f, "/"), strings.HasPrefix(f, ".."):
			return "", fmt.Errorf(
				"found %q, expected a path inside the job's directory, of letters, digits and _ . / + = @ -",
				f,
			)
		case slices.Contains(sandboxFiles, path.Clean(f)):
			return "", fmt.Errorf("found %q, expected a file of the script's own: that one is htcd's", f)
		}
	}
	return strings.Join(files, ", "), nil
}

// maxReason is the maximum size of a reason in bytes. It is kept with the job and shown to everybody who asks.
const maxReason = 1 << 10

// reason accepts the text that explains a hold. An expression could make it too long for the schedd's answers.
func reason(v string) (string, error) {
	x, err := classad.ParseExpr(v)
	if err != nil {
		return "", err
	}
	l, isLiteral := x.(*classad.Literal)
	if !isLiteral {
		return "", fmt.Errorf("found %q, expected a text in double quotes", condor.Clip(v))
	}
	said, isText := l.Value.Str()
	switch {
	case !isText:
		return "", fmt.Errorf("found %q, expected a text in double quotes", condor.Clip(v))
	case len(said) > maxReason:
		return "", fmt.Errorf("found a text of %d bytes, expected at most 1 KiB", len(said))
	}
	return x.String(), nil
}

// text accepts the value of a command allowed by the site: one line without macros.
func text(v string) (string, error) { return v, nil }
