package schedd_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

// spec is a generated description and what it means.
type spec struct {
	submit.Description
	// means has the value, as ClassAd text, of each attribute that the description sets, and of each command whose
	// effect depends on others, prefixed by @; see consequences. requirements is and-ed with HTCondor's own.
	means        map[string]string
	requirements string
	// written has the submit commands in its htcopts and the meaning of each value.
	written map[string][]string
	// hostile reports that a line was added that must be refused.
	hostile string
}

// author generates specs.
type author struct {
	*rand.Rand
	hostile []string // lines that must be refused
	// names has the quoted names of the current spec and their meaning; bad reports that one of them must be refused,
	// or a function or a nested ad.
	names map[string]string
	bad   bool
}

func pick[T any](a *author, from ...T) T { return from[a.IntN(len(from))] }

func (a *author) chance(percent int) bool { return a.IntN(100) < percent }

// odd lists pieces of text with a meaning for a shell, a submit description or a ClassAd.
var odd = []string{
	`"`,
	`\`,
	`\\`,
	`\"`,
	`'`,
	"`",
	"$",
	"$ (X)",
	"#",
	"=",
	";",
	"|",
	"&",
	"queue 5",
	"include : /etc/passwd",
	"+Cmd",
	"%s",
	"\t",
	" ",
	"  ",
	"ä",
	"€",
	"😀",
	"\u2028",
	"\u202e",
	"\ufeff",
	"{",
	"}",
	"[",
	"]",
	"(",
	")",
	"$)",
	"@=",
	"//",
	"/*",
	"<<EOF",
	"true",
	"undefined",
	"MY.",
	"HTCJobUID",
	"\\n",
	"\\0",
	"a",
	"B",
	"7",
	"x=1,y=2",
	":",
	"?",
	"*",
	"~",
	"!",
}

// never lists pieces that no value may contain.
var never = []string{
	"$(X)",
	"$$(Unknown)",
	"$ENV(HOME)",
	"$(DOLLAR)(X)",
	"$$([1])",
	"$INT(X)",
	"\r",
	"\x00",
	"\x1b[0m",
	"\x7f",
	"\x0b",
	"$F(x)",
	"\u0085",
	"\u009b2J",
	"\xff",
}

// plainNames has quoted names as written and their meaning.
var plainNames = map[string]string{
	`'odd name'`:       `'odd name'`,
	`'odd\40name'`:     `'odd name'`,
	`'\157dd name'`:    `'odd name'`,
	`'ä€😀'`:            `'ä€😀'`,
	`'\303\244'`:       `'ä'`,
	`'x\y'`:            "xy",
	`'\122equestCpus'`: "RequestCpus",
	`'true'`:           `'true'`,
	`'tru\145'`:        `'true'`,
	`'isnt'`:           `'isnt'`,
	`'5 && x'`:         `'5 && x'`,
	`'#('`:             `'#('`,
	`'\x'`:             "x",
}

// badNames lists quoted names that must be refused.
var badNames = []string{
	`'$\50X)'`,
	`'\44(X)'`,
	`'\44\50X\51'`,
	`'$ENV\50HOME)'`,
	`'$\44(Unknown)'`,
	`'$'`,
	`'\33[2J'`,
	`'\302\2332J'`,
	`'\377'`,
	`'a\303'`,
	`'\177'`,
	`'\0'`,
	`'a\nb'`,
	`'\r'`,
	`'a\\b'`,
	`'it\'s'`,
	`'a\"b'`,
	`'a"b'`,
	`'a\tb'`,
	`'\\'`,
	`'\12queue 5'`,
}

// macro matches what condor_submit would replace.
var macro = regexp.MustCompile(`\$(\$|[A-Za-z0-9_]*[(\[])`)

// text returns any text without macros and the pieces of never; some texts are long.
func (a *author) text() string {
	n := a.IntN(8)
	switch {
	case a.chance(2):
		n = a.IntN(1000)
	case a.IntN(1000) < 2:
		n = pick(a, 800, 1500, 15000) // up to about the limit of htcopts
	}
	var b strings.Builder
	for range n {
		b.WriteString(pick(a, odd...))
	}
	s := b.String()
	for macro.MatchString(s) {
		s = macro.ReplaceAllString(s, "$")
	}
	return s
}

// literal returns a string literal and its text.
func (a *author) literal() (written, text string) {
	text = strings.TrimRight(a.text(), `\`)
	return `"` + strings.ReplaceAll(text, `"`, `\"`) + `"`, text
}

// expr returns an expression of at most that depth.
func (a *author) expr(depth int) string {
	if depth == 0 {
		return pick(a,
			func() string { return fmt.Sprint(a.IntN(100000)) },
			func() string { return pick(a, "0.5", "1.25", "100.0", "0", "9223372036854775807") },
			func() string { s, _ := a.literal(); return s },
			func() string { return pick(a, "true", "FALSE", "Undefined", "error") },
			func() string {
				return pick(
					a,
					"Memory",
					"TARGET.OpSysAndVer",
					"MY.RequestCpus",
					"ExitCode",
					"NumJobStarts",
					"HasSingularity",
					"target.Machine",
					".x",
					"JobStatus",
				)
			},
			a.quoted,
		)()
	}
	x := func() string { return a.expr(depth - 1) }
	return pick(a,
		func() string {
			return x() + a.blank() + pick(
				a,
				"==",
				"!=",
				"=?=",
				"=!=",
				"<",
				"<=",
				">",
				">=",
				"&&",
				"||",
				"+",
				"-",
				"*",
				"/",
				"%",
				"|",
				"&",
				"^",
				"<<",
				">>",
				">>>",
				"is",
				"isnt",
			) + a.blank() + x()
		},
		func() string { return "(" + x() + ")" },
		func() string { return pick(a, "!", "-", "~", "+") + "(" + x() + ")" },
		func() string { return x() + " ? " + x() + " : " + x() },
		func() string { return x() + " ?: " + x() },
		func() string {
			f, first := pick(a, "regexp", "time", "ifThenElse", "member", "stringListMember", "versionGE", "toLower", "max"), x()
			switch {
			case a.chance(3):
				f, a.bad = pick(a, "strcat", "EVAL", "split", "nobodysFunction"), true
			case f == "regexp":
				first = pick(a, `"^(wn|b7)[0-9a-f]*\.cern(\.ch)?$"`, `"A100|V100"`, `"(?i).*€.*"`)
			}
			return f + "(" + first + ", " + x() + ")"
		},
		func() string { return "{" + x() + ", " + x() + "}" },
		func() string {
			if a.chance(20) {
				a.bad = true
				return "[a = " + x() + "; b = " + x() + "]"
			}
			return x()
		},
		func() string { return "(" + x() + ")[" + x() + "]" },
		x,
	)()
}

// condition returns an expression, which may end in a string that ends in a backslash.
func (a *author) condition(depth int) string {
	if a.chance(4) {
		return "(" + a.expr(depth) + ")" + a.blank() + `== "a\b\"`
	}
	return a.expr(depth)
}

// joins lists the commands that condor_submit makes part of a longer expression.
var joins = []string{"requirements", "require_gpus", "on_exit_remove"}

// unjoinable marks a spec as one to be refused if a value would absorb what follows it.
func (s *spec) unjoinable(command, value string) {
	if slices.Contains(joins, command) && strings.HasSuffix(value, `\"`) {
		s.hostile = "a string that ends in a backslash"
	}
}

// quoted returns an expression with a quoted name.
func (a *author) quoted() string {
	name := pick(a, slices.Sorted(maps.Keys(plainNames))...)
	place := pick(a, "%s", ".%s", "%s.x")
	behindDot := pick(a, "MY.%s", "target.%s", "(x).%s", "{1}[0].%s")
	switch {
	case a.chance(3):
		name, a.bad = pick(a, badNames...), true
	case classad.IsName(plainNames[name]):
		place = pick(a, place, behindDot)
	case a.chance(3):
		place, a.bad = behindDot, true // HTCondor drops its quotes there
	}
	a.names[name] = plainNames[name]
	return fmt.Sprintf(place, name)
}

// blank returns white space at which a line may be continued.
func (a *author) blank() string {
	return pick(a, " ", " ", " ", "  ", "\t", " \\\n  ", " \\\n\t", " \\ \n")
}

// cased changes the case of some letters of a name.
func (a *author) cased(s string) string {
	switch a.IntN(4) {
	case 0:
		return strings.ToUpper(s)
	case 1:
		return strings.ToUpper(s[:1]) + s[1:]
	}
	return s
}

// setting is a submit command with a value and the attributes that they set. Without attributes the value may be
// refused, and otherwise sets nothing.
type setting func(a *author, s *spec) (value string, means map[string]string)

// one returns a command that sets one attribute to an expression.
func one(attribute string) setting {
	return func(a *author, _ *spec) (string, map[string]string) {
		v := a.condition(a.IntN(4))
		return v, map[string]string{attribute: v}
	}
}

// exactly returns a command with one of a few values, as written and as meant.
func exactly(attribute string, pairs ...string) setting {
	return func(a *author, _ *spec) (string, map[string]string) {
		i := 2 * a.IntN(len(pairs)/2)
		return pairs[i], map[string]string{attribute: pairs[i+1]}
	}
}

// reason returns a text of at most 1 KiB, or one that exceeds it.
func reason(attribute string) setting {
	return func(a *author, s *spec) (string, map[string]string) {
		v, text := a.literal()
		if a.chance(5) {
			v = pick(a, "strcat("+v+", WantOS)", "WantOS", "("+v+")", "5", "undefined")
		}
		if !strings.HasPrefix(v, `"`) || len(text) > 1024 {
			s.hostile = "a reason that is no short text"
		}
		return v, map[string]string{attribute: v}
	}
}

var settings = map[string]setting{
	"request_cpus": exactly(
		"RequestCpus",
		"2",
		"2",
		"1.5",
		"1.5",
		"Undefined",
		"",
		"2 * 3",
		"2 * 3",
		"x ? 1 : 2",
		"x ? 1 : 2",
		"\"2\"",
		"\"2\"",
	),
	"request_gpus":            exactly("RequestGPUs", "1", "1", "2", "2"),
	"require_gpus":            one("@require_gpus"),
	"gpus_minimum_memory":     exactly("@gpus_minimum_memory", "2GB", "2048", "100", "100"),
	"gpus_minimum_capability": exactly("@gpus_minimum_capability", "7", "7", "8.5", "8.5"),
	"gpus_maximum_capability": exactly("@gpus_maximum_capability", "9", "9", "9.5", "9.5"),
	"gpus_minimum_runtime":    exactly("@gpus_minimum_runtime", "12", "12000", "11.2", "11020"),
	"max_retries":             exactly("@max_retries", "0", "0", "3", "3", "999999999", "999999999"),
	"success_exit_code":       exactly("@success_exit_code", "0", "0", "42", "42"),
	"retry_until": exactly(
		"@retry_until",
		"7",
		"ExitCode =?= 7",
		"ExitCode>5",
		"ExitCode > 5",
		"ExitCode > 5 ? true : false",
		"(ExitCode > 5 ? true : false)",
	),
	"nice_user":        exactly("@nice_user", "true", "true", "False", "false"),
	"accounting_group": exactly("@accounting_group", "group_cms.prod", "group_cms.prod", "a-b@c.d", "a-b@c.d"),
	"preferences":      one("@preferences"),
	"request_memory": exactly(
		"RequestMemory",
		"512",
		"512",
		"2GB",
		"2048",
		"2 GB",
		"2048",
		"1.5G",
		"1536",
		"1.5",
		"2",
		"undefined",
		"",
		"100M",
		"100",
		"1t",
		"1048576",
		"2048 * 2",
		"2048 * 2",
	),
	"request_disk": exactly(
		"RequestDisk",
		"512",
		"512",
		"2GB",
		"2097152",
		"2 MB",
		"2048",
		"1.5G",
		"1572864",
		"1.5",
		"2",
		"undefined",
		"",
		"100K",
		"100",
		"1024*1024",
		"1024*1024",
	),
	"request_fpga":             exactly("Requestfpga", "1", "1", "3", "3"),
	"rank":                     one("Rank"),
	"priority":                 exactly("JobPrio", "5", "5", "-20", "-20", "0", "0"),
	"concurrency_limits":       exactly("ConcurrencyLimits", "sw.matlab:2, db", `"db,sw.matlab:2"`, "one", `"one"`),
	"concurrency_limits_expr":  one("ConcurrencyLimits"),
	"on_exit_hold":             one("@on_exit_hold"),
	"on_exit_hold_reason":      reason("OnExitHoldReason"),
	"on_exit_hold_subcode":     one("OnExitHoldSubCode"),
	"on_exit_remove":           one("@on_exit_remove"),
	"periodic_hold":            one("PeriodicHold"),
	"periodic_hold_reason":     reason("PeriodicHoldReason"),
	"periodic_hold_subcode":    one("PeriodicHoldSubCode"),
	"periodic_release":         one("PeriodicRelease"),
	"periodic_remove":          one("PeriodicRemove"),
	"allowed_job_duration":     exactly("AllowedJobDuration", "3600", "3600", "60 * 60", "60 * 60"),
	"allowed_execute_duration": exactly("AllowedExecuteDuration", "3600", "3600", "60 * 60", "60 * 60"),
	"job_lease_duration":       exactly("JobLeaseDuration", "3600", "3600", "0", "0", "20", "20"),
	"job_max_vacate_time":      one("JobMaxVacateTime"),
	"want_graceful_removal":    one("WantGracefulRemoval"),
	"notification":             exactly("JobNotification", "never", "0", "Always", "1", "COMPLETE", "2", "error", "3"),
	"transfer_output_files": exactly(
		"TransferOutput",
		"out.root",
		`"out.root"`,
		"a, b/c ,d/",
		`"a,b/c,d/"`,
		"x+y=z@1",
		`"x+y=z@1"`,
		`""`,
		`""`,
	),
}

// exclusive lists commands that exclude each other.
var exclusive = map[string]string{
	"concurrency_limits": "concurrency_limits_expr",
	"accounting_group":   "nice_user",
	"rank":               "preferences",
}

// attributes adds the +Attributes of a spec.
var attributes = []string{
	"JobFlavour",
	"MaxRuntime",
	"WantOS",
	"BigMemJob",
	"ProjectName",
	"DESIRED_Sites",
	"REQUIRED_OS",
	"Experiment",
	"JobDescription",
	"WantGPULab",
	"is_resumable",
	"RequestRuntime",
	"ProjectX",
}

// spec generates a spec.
func (a *author) spec(d submit.Description) spec {
	s := spec{Description: d, means: map[string]string{}, written: map[string][]string{}}
	s.Allow = []string{"+ProjectX"}
	a.names, a.bad = map[string]string{}, false
	s.Queue = 1 + a.IntN(3)
	s.Tag.Attempt = 1 + a.IntN(1000)
	s.Tag.Name = pick(a, "zero", "a.b-c", "0", strings.Repeat("x", 253))
	s.BatchName = a.name()
	s.means["JobBatchName"] = classad.Quote(s.BatchName)
	if strings.HasSuffix(s.BatchName, `\`) {
		s.hostile = "a name that ends in a backslash"
	}
	s.Command = "bash " + strings.ReplaceAll(a.text(), "\t", " ") + "x"

	var text strings.Builder
	for range a.IntN(6) {
		text.WriteString(pick(a, "", "", "", "\n", "# "+strings.TrimRight(a.text(), `\ `+"\t")+"\n", " \t\n"))
		text.WriteString(a.line(&s))
		text.WriteString("\n")
	}
	if a.chance(10) {
		s.hostile = pick(a, a.hostile...)
		text.WriteString(s.hostile)
	} else if a.chance(3) {
		s.hostile = "+JobDescription = \"" + pick(a, never...) + "\""
		text.WriteString(s.hostile)
	}
	s.Options = text.String()
	for one, other := range exclusive {
		if s.hostile == "" && s.written[one] != nil && s.written[other] != nil {
			s.hostile = one + " and " + other
		}
	}
	a.jobOptions(&s)
	if a.bad {
		s.hostile = "a name, a function or a nested ad that must not be written"
	}
	return s
}

func (a *author) name() string {
	if a.chance(2) {
		return a.text() + `\`
	}
	for {
		if s := strings.ReplaceAll(a.text(), "\t", " "); s != "" && !strings.HasSuffix(s, `\`) {
			return s
		}
	}
}

// line writes one line and adds its meaning to s.
func (a *author) line(s *spec) string {
	equals := pick(a, " = ", "=", "\t=  ", " =")
	indent := pick(a, "", "", "  ", "\t")
	switch a.IntN(3) {
	case 0:
		name := pick(a, attributes...)
		value, text := a.literal()
		s.means[name] = classad.Quote(text)
		if strings.Contains(text, "\t") || a.chance(50) { // Quote writes no tab
			value = a.condition(a.IntN(5))
			s.means[name] = a.meant(value)
		}
		s.bounded(value, 4096)
		return indent + pick(a, "+", "MY.", "my.", "My.") + a.cased(name) + equals + value
	case 1:
		value := a.condition(a.IntN(5))
		s.unjoinable("requirements", value)
		s.requirements = a.meant(value)
		s.bounded(value, 8192)
		s.written["requirements"] = append(s.written["requirements"], s.requirements)
		return indent + a.cased("requirements") + equals + value
	}
	// A map is unordered, and a seed must always give the same spec.
	name := pick(a, slices.Sorted(maps.Keys(settings))...)
	value, means := settings[name](a, s)
	meaning := ""
	for _, v := range means {
		meaning = a.meant(v)
	}
	s.written[name] = append(s.written[name], meaning)
	for n, v := range means {
		s.means[n] = a.meant(v)
	}
	s.bounded(value, 4096)
	s.unjoinable(name, value)
	return indent + a.cased(name) + equals + value
}

// bounded marks a spec as one to be refused if a value is longer than that.
func (s *spec) bounded(value string, most int) {
	if len(joined(value)) > most {
		s.hostile = "a value that is too long"
	}
}

// joined returns a value after its continued lines are joined.
func joined(s string) string {
	return strings.NewReplacer(" \\\n  ", " ", " \\\n\t", " ", " \\ \n", " ").Replace(s)
}

// meant is joined with every quoted name replaced by its meaning.
func (a *author) meant(value string) string {
	value = joined(value)
	for _, name := range slices.Sorted(maps.Keys(a.names)) {
		value = strings.ReplaceAll(value, name, a.names[name])
	}
	return value
}
