package submit

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/htcopts"
)

func TestAnExpressionCallsOnlyFunctionsThatBuildNothing(t *testing.T) {
	for _, f := range []string{
		"strcat", "STRCAT", "join", "string", "eval", "unparse", "unresolved", "split", "splitSlotName", "splitUserName", "regexps", "replace", "replaceAll",
		"formatTime", "interval", "envV1ToV2", "mergeEnvironment", "listToArgs", "argsToList", "evalInEachContext", "countMatches", "userMap", "userHome",
		"debug", "nobodysFunction",
	} {
		for _, line := range []string{"requirements", "rank", "request_cpus", "request_fpga", "periodic_hold", "on_exit_remove", "retry_until", "allowed_job_duration", "concurrency_limits_expr", "+JobDescription"} {
			d := description()
			d.Options = "priority = 1\n" + line + " = x ? 1 : (" + f + "(x, 2))"
			_, err := d.Render()
			require.Equal(t, condor.Refused, condor.KindOf(err), d.Options)
			require.ErrorContains(
				t,
				err,
				fmt.Sprintf(
					"htcopts, line 2, column %d: %s: found the function %s, expected one of ifThenElse, isUndefined,",
					len(line)+13,
					strings.TrimPrefix(line, "+"),
					f,
				),
			)
		}
		d := description()
		d.JobOptions.Requirements = "true &&\n " + f + "(x)"
		_, err := d.Render()
		require.ErrorContains(
			t,
			err,
			"spec.requirements, line 2, column 2: found the function "+f+", expected one of ifThenElse",
		)
	}
	for _, f := range htcopts.Functions {
		d := description()
		d.Options = "rank = " + strings.ToUpper(f) + "(x)"
		_, err := d.Render()
		require.NoError(t, err, f)
	}
}

func TestThePageForUsersListsTheFunctions(t *testing.T) {
	page, err := os.ReadFile("../../../docs/htcjob.md")
	require.NoError(t, err)
	for _, f := range htcopts.Functions {
		require.Contains(t, string(page), "`"+f+"`")
	}
}

func TestARefusalFitsIntoAMessage(t *testing.T) {
	_, err := parsed("x" + strings.Repeat("y", 4000) + "(1)")
	require.ErrorContains(t, err, "found the function xyyy")
	require.Less(t, len(err.Error()), 850)
}

func TestAnExpressionContainsNoNestedAd(t *testing.T) {
	d := description()
	d.Options = `request_cpus = [a = 1].a`
	_, err := d.Render()
	require.EqualError(
		t,
		err,
		"htcopts, line 1, column 16: request_cpus: found a nested ad [...], expected an expression without one",
	)
	d.Options, d.JobOptions.Requirements = "", `member(1, {2, [a = 1].a})`
	_, err = d.Render()
	require.EqualError(
		t,
		err,
		"spec.requirements, line 1, column 15: found a nested ad [...], expected an expression without one",
	)
}

func TestWhatLinesReferToCountsWithThem(t *testing.T) {
	long := `+JobDescription = "` + strings.Repeat("x", 4000) + "\"\n"
	for name, c := range map[string]struct{ options, requirements, words string }{
		"a request that a condition compares":     {"request_memory = NumJobStarts > 1 ? 4000 : 2000\nperiodic_hold = MemoryUsage > RequestMemory * 2", "", ""},
		"words of the user, each used once":       {"+WantOS = \"el9\"\n+REQUIRED_OS = WantOS\n", "TARGET.OS =?= MY.REQUIRED_OS", ""},
		"the machine's attribute of that name":    {"rank = TARGET.Rank + target.RequestCpus", "", ""},
		"words that look like names":              {"accounting_group = accountinggroup\nnotification = never\ntransfer_output_files = rank, requirements\nrank = 1", "", ""},
		"a long text, four times":                 {long + "rank = size(JobDescription) + size(JobDescription) + size(jobdescription) + size(MY.JobDescription)", "", ""},
		"a long text, twenty times":               {long + "rank = 0" + strings.Repeat(" + size(JobDescription)", 20), "", "htcopts, line 2, column 1: rank: found an expression that is longer than 64 KiB"},
		"a chain":                                 {chainOf(12, "{%s, %s, %s, %s}"), "", "found an expression that is longer than 64 KiB with the values of what it refers to and other lines set, expected fewer or shorter ones"},
		"a chain by way of the pool's own names":  {strings.NewReplacer("+Experiment", "request_e", "Experiment", "RequestE").Replace(chainOf(12, "%s + %s + %s + %s")), "", "longer than 64 KiB"},
		"a reference to itself":                   {"request_cpus = RequestCpus + 1", "", "htcopts, line 1, column 1: request_cpus: found an expression that refers to itself"},
		"two that refer to each other":            {"+WantOS = MY.REQUIRED_OS\n+REQUIRED_OS = (x).WantOS", "", "htcopts, line 1, column 1: WantOS: found an expression that refers to itself"},
		"requirements that refer to themselves":   {"rank = .requirements", "Memory > MY.Rank", "htcopts, line 1, column 1: rank: found an expression that refers to itself"},
		"requirements that end a chain":           {long, strings.Repeat("size(JobDescription) > 1 && ", 20) + "true", "spec.requirements: found an expression that is longer than 64 KiB"},
		"a name in quotes, as the scope of one":   {"request_cpus = '\\122equestCpus'.x", "", "refers to itself"},
		"an end of retries by way of the removal": {"on_exit_remove = x\nretry_until = OnExitRemove\nmax_retries = 1", "", "refers to itself"},
	} {
		t.Run(name, func(t *testing.T) {
			d := description()
			d.Allow = []string{"+Experiment0"}
			for i := range 12 {
				d.Allow = append(d.Allow, fmt.Sprint("+Experiment", i))
			}
			d.Options, d.JobOptions.Requirements = c.options, c.requirements
			_, err := d.Render()
			if c.words == "" {
				require.NoError(t, err)
				return
			}
			require.Equal(t, condor.Refused, condor.KindOf(err))
			require.ErrorContains(t, err, c.words)
		})
	}
	d := description()
	d.Tag.Pool, d.Defaults.Options, d.Options = "p", long, "rank = 0"+strings.Repeat(" + size(JobDescription)", 20)
	_, err := d.Render()
	require.ErrorContains(
		t,
		err,
		"with the defaults of HTCPool p, rank: found an expression that is longer than 64 KiB",
	)
}

// chainOf returns n lines, each of which refers to the one before.
func chainOf(n int, of string) string {
	lines := "+Experiment0 = 1\n"
	for i := 1; i < n; i++ {
		lines += fmt.Sprintf("+Experiment%d = %s\n", i, strings.ReplaceAll(of, "%s", fmt.Sprint("Experiment", i-1)))
	}
	return lines
}

// Whatever is accepted has no nested ad and no other function, and is small with everything in it that it refers to.
func FuzzBounds(f *testing.F) {
	for _, file := range []string{"testdata/htcopts.txtar", "testdata/refused.txtar"} {
		ar, err := txtar.ParseFile(file)
		require.NoError(f, err)
		for i := 0; i < len(ar.Files); i += 2 {
			f.Add(string(ar.Files[i].Data), "Memory > 1")
		}
	}
	f.Add("request_cpus = [a = strcat(\"x\", \"y\"); b = strcat(a, a)].b", "TARGET.x")
	f.Add(
		"+WantOS = {REQUIRED_OS, REQUIRED_OS}\n+REQUIRED_OS = {Experiment, Experiment}\n+Experiment = Rank",
		"'\\123trcat'(x) && WantOS",
	)
	f.Add(chainOf(5, "%s + %s"), "regexp(\"a\", strcat(a, b))")
	f.Fuzz(func(t *testing.T, options, requirements string) {
		d := description()
		d.Options, d.JobOptions.Requirements = options, requirements
		var own []option
		var err error
		frugal(t, func() { own, err = d.own() })
		if err != nil {
			require.Equal(t, condor.Refused, condor.KindOf(err))
			return
		}
		values := map[string]classad.Expr{}
		for _, o := range own {
			if x, err := classad.ParseExpr(o.value); err == nil && isExpression(o.key) {
				values[attributeOf(o.key)] = x
			}
		}
		for _, x := range values {
			budget := maxExpanded
			expand(t, x, values, &budget)
		}
	})
}

// expand visits an expression and whatever it refers to, and takes the bytes of every name, call and literal from the
// budget.
func expand(t *testing.T, x classad.Expr, values map[string]classad.Expr, budget *int) {
	name := func(n string) {
		*budget -= len(n)
		require.Positive(t, *budget)
		if other := values[strings.ToLower(n)]; other != nil {
			expand(t, other, values, budget)
		}
	}
	classad.Walk(x, func(x classad.Expr) bool {
		switch x := x.(type) {
		case *classad.Record:
			require.Fail(t, "a nested ad")
		case *classad.Call:
			require.True(
				t,
				slices.ContainsFunc(htcopts.Functions, func(f string) bool { return strings.EqualFold(f, x.Name) }),
				x.Name,
			)
		case *classad.Literal:
			*budget -= len(x.String())
		case *classad.Ref:
			if !strings.EqualFold(x.Scope, "target") {
				name(x.Name)
			}
			name(x.Scope)
		case *classad.Select:
			name(x.Name)
		}
		return true
	})
}
