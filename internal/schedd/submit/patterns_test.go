package submit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

func TestASearchThatMayTakeLongIsRefused(t *testing.T) {
	long := func(n int) string { return strings.Repeat("a", n) }
	for name, c := range map[string]struct{ options, requirements, words string }{
		"what people write":       {"", `regexp("^slot[0-9]+@(wn|b7)[0-9a-f]*\.cern\.ch$", Name) && !regexp("A100|V100|H100|L40S", TARGET.GPUs_DeviceName, "i")`, ""},
		"what surrounds it":       {"", `regexp(".*A100.*80GB.*", GPUs_DeviceName) && regexp("^(?:a+?|b{2,3})\d\.x", "text")`, ""},
		"a hold":                  {`periodic_release = NumJobStarts < 3 && regexp(".*errno (\d+).*", HoldReason)`, "", ""},
		"three repetitions":       {"", strings.Repeat(`regexp("^[a-z]+-[0-9]+-[0-9]+\.", TARGET.GPUs_DeviceName) || `, 3) + "true", ""},
		"in lists":                {"", `stringList_regexpMember("^T2_", DESIRED_Sites, ", ") && regexpMember("a+", {"b", "c"})`, ""},
		"parts that may be there": {"", `regexp("(?i)^wn[0-9]+(\.cern)?(\.ch)?$", Machine)`, ""},
		"many names":              {"", strings.Repeat(`!regexp("^wn12", Machine) && `, 200) + "true", ""},
		"a long text":             {"", `regexp("a+b", "` + long(1000) + `")`, ""},
		"one of several":          {"", `regexp("A100.*|V100.*|H100.*|L40S?.*", GPUs_DeviceName)`, ""},
		"several in the middle":   {"", `regexp(".*A100.*80GB.*|.*H100.*80GB.*|.*H200.*", GPUs_DeviceName) || regexp("(.*A100.*|.*H100.*)", GPUs_DeviceName)`, ""},
		"exact numbers":           {"", `regexp("^b[0-9]{2}[a-z]{1}[0-9]{4}-[0-9]{3}\.[a-z]{4}\.ch$", Machine)`, ""},
		"from the beginning":      {"", `regexp("^[a-z]+[0-9]+-[0-9]+-[0-9]+\.cern\.ch$", Machine)`, ""},
		"brackets":                {"", `regexp("^[^|()*+?]+[]*)(][^]|]$", Machine) && regexp("[[:alpha:])*]+[\])]", Machine)`, ""},
		"braces":                  {"", `regexp("{a}{b", Machine)`, ""},
		"many that differ a bit":  {"", `regexp("` + strings.Repeat("wn[0-9]+a|", 30) + `x", Machine)`, ""},
		"requests":                {"request_license = \"^matlab(-[0-9]+)?$\"\nrequest_cpus = ifThenElse(regexp(\"a+\", Owner), 2, 1)\n", `regexp("a+b", Machine)`, ""},

		"a group repeated":            {"", `true && regexp("(a+)+$", "` + long(40) + `b")`, `spec.requirements, line 1, column 9: found a group or a repetition that is repeated in a regular expression, expected one that HTCondor takes and is soon done with`},
		"that in a list":              {"", `regexpMember("(a|aa)*$", {"aa"})`, "a group or a repetition that is repeated"},
		"that in a text":              {"rank = STRINGLIST_regexpMember((\"(a+){2,}\"), \"x\")", "", "htcopts, line 1, column 8: rank: found a group or a repetition"},
		"a repetition repeated":       {"", `regexp("a{1,}{1,}{1,}", x)`, "a group or a repetition that is repeated"},
		"hidden by braces":            {"", `regexp("{(a+)+}", x)`, "a group or a repetition that is repeated"},
		"hidden by brackets":          {"", `regexp("([)]a+)+", x)`, "a group or a repetition that is repeated"},
		"hidden by a first bracket":   {"", `regexp("([])]a+)+[]]", x)`, "a group or a repetition that is repeated"},
		"hidden by a class":           {"", `regexp("([[:alpha:])]a+)+[[:alpha:]]", x)`, "a group or a repetition that is repeated"},
		"quoted in brackets":          {"", `regexp("[\Qa](a+)+", x)`, `found \Q in a regular expression`},
		"a bracket alone":             {"", `regexp("[a(b+)+", x)`, "found a [ without its ] in a regular expression"},
		"half a group":                {"", `regexp("(a", x) || regexp("a)", x)`, "found a ( without its ) in a regular expression"},
		"the other half":              {"", `regexp("a)", x)`, "found a ) without its ( in a regular expression"},
		"nothing repeated":            {"", `regexp("*.cern.ch", Machine)`, "found a repetition of nothing in a regular expression"},
		"hidden by a comment":         {"", `regexp("(a+)(?#)+", x)`, "found (? in a regular expression"},
		"hidden by blanks":            {"", `regexp("(a+) +", x, "X")`, "found a regular expression with an option that is no text, or has an x"},
		"an option that is not known": {"", `regexp("(a+) +", x, MY.WantOS)`, "found a regular expression with an option that is no text"},
		"hidden by an end of quotes":  {"", `regexp("(a+)\E+", x)`, `found \E in a regular expression`},
		"a reference backwards":       {"", `regexp("(a*)\1b", x)`, `found \1 in a regular expression`},
		"a verb":                      {"", `regexp("(*NO_AUTO_POSSESS)a", x)`, "found (* in a regular expression"},
		"not a text":                  {"+WantOS = \"(a+)+\"\n", `regexp(MY.WantOS, "` + long(40) + `")`, "found a regular expression that is no text"},

		"repetitions one after the other": {"", `regexp("a*a*a*a*[bc]", "` + long(64) + `")`, "spec.requirements: found regular expressions that may take long"},
		"what may be there":               {"", `regexp("` + strings.Repeat("a?", 20) + long(20) + `", "` + long(20) + `")`, "may take long"},
		"groups that may be there":        {"", `regexp("` + strings.Repeat("(aa?)?", 20) + `b", "` + long(20) + `")`, "may take long"},
		"choices":                         {"", `regexp("` + strings.Repeat("(a|a)", 20) + `b", "` + long(20) + `")`, "may take long"},
		"choices hidden by brackets":      {"", `regexp("` + strings.Repeat("([)]|a[(])", 20) + `b", "` + long(20) + `")`, "may take long"},
		"a longer text":                   {"", `regexp("a+b", "` + long(3000) + `")`, "may take long"},
		"a text of another line":          {"+JobDescription = \"" + long(3000) + "\"\n", `regexp("a+b", JobDescription)`, "may take long"},
		"URLs":                            {"", `regexp("a+b", TransferInput)`, "may take long"},
		"one of several, repeated":        {"", `regexp("(` + strings.Repeat("a+|", 9) + `b)(` + strings.Repeat("a+|", 9) + `b)(a|b+)c+", x)`, "may take long"},
		"a beginning of lines":            {"", `regexp("^[a-z]+[0-9]+-[0-9]+-[0-9]+\.cern\.ch$", Machine, "m")`, "may take long"},
		"a beginning of one of several":   {"", `regexp("^a|[a-z]+[0-9]+-[0-9]+-[0-9]+\.cern\.ch$", Machine)`, "may take long"},
		"names that htcd writes":          {"", `regexp("a+b", HTCJobOutputs)`, "may take long"},
		"many":                            {"", strings.Repeat(`regexp("a+b", Machine) || `, 17) + "false", "may take long"},
		"requests that are texts":         {"request_machine = (\"(a+)+b\")\n", "", "htcopts, line 1, column 1: request_machine: found a group or a repetition that is repeated in a regular expression, as which HTCondor takes the text of a request, expected"},
		"of attributes":                   {"+RequestRuntime = \"(a+)+b\"\n", "", "htcopts, line 1, column 1: RequestRuntime: found a group or a repetition"},
		"many requests":                   {manyRequests(17), "", "htcopts, line 17, column 1: request_q: in the requirements, to which HTCondor adds all requests: found regular expressions that may take long"},
		"requests beside requirements":    {manyRequests(9), strings.Repeat(`regexp("a+b", Machine) || `, 9) + "false", "spec.requirements: found regular expressions that may take long"},
		"what requests call":              {strings.Repeat(`request_gpus = regexp("a+b", Machine) ? 1 : 0`+"\n", 17), "", "may take long"},
		"many by way of another line":     {"+WantOS = " + strings.Repeat(`regexp("a+b", Machine) || `, 9) + "false\n", "WantOS || WantOS", "may take long"},
	} {
		t.Run(name, func(t *testing.T) {
			d := description()
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
}

func manyRequests(n int) (lines string) {
	for i := range n {
		lines += fmt.Sprintf("request_%c = \"a+b\"\n", 'a'+i)
	}
	return lines
}

func TestTheStepsOfASearchGrowWithTheText(t *testing.T) {
	for repeats, want := range []int{leastSteps, leastRepeated, leastRepeated, 1 << 24 / 24, 1 << 30 / 120} {
		w, anchored, wrong := waysOf(strings.Repeat("a+", repeats))
		require.Empty(t, wrong)
		require.Equal(t, want, search{ways: w, anchored: anchored}.steps(0), fmt.Sprint(repeats))
	}
	require.Equal(t, 1<<24/24, search{ways: ways{4: 1}, anchored: true}.steps(0))
	require.Equal(t, 5000+unknownText, search{ways: oneWay, anchored: true}.steps(5000), "it is read")
	w, _, _ := waysOf(strings.Repeat("a*", 200))
	require.Equal(t, endless, search{ways: w}.steps(1000))
}

func TestTheWaysThroughAPattern(t *testing.T) {
	for pattern, want := range map[string]struct {
		ways     ways
		anchored bool
	}{
		"":                     {ways{1}, false},
		"^abc$":                {ways{1}, true},
		"(?i)^abc":             {ways{1}, true},
		"^abc|d":               {ways{2}, false},
		"^(abc|d)":             {ways{2}, true},
		".*abc.*":              {ways{1}, false},
		"^.*?abc":              {ways{1}, false},
		".*a|b.*":              {ways{0, 2}, false},
		"(a|b?|)c":             {ways{4}, false},
		"(?:a+|b)(c+?|d)?":     {ways{2, 3, 1}, false},
		"a{3}b{3,}c{1,2}+d{x}": {ways{0, 0, 1}, false},
		`[])|*]a\(\.*`:         {ways{0, 1}, false},
		"[[:alpha:]|]":         {ways{1}, false},
		"a*a*a*a*a*a*a*":       {ways{5: 1}, false},
	} {
		w, anchored, wrong := waysOf(pattern)
		require.Empty(t, wrong, pattern)
		require.Equal(t, want.ways, w, pattern)
		require.Equal(t, want.anchored, anchored, pattern)
	}
}
