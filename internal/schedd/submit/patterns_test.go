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

		"a group repeated":            {"", `true && regexp("(a+)+$", "` + long(40) + `b")`, `spec.requirements, line 1, column 9: found a group or a repetition that is repeated in a regular expression, expected one that is soon done`},
		"that in a list":              {"", `regexpMember("(a|aa)*$", {"aa"})`, "a group or a repetition that is repeated"},
		"that in a text":              {"rank = STRINGLIST_regexpMember((\"(a+){2,}\"), \"x\")", "", "htcopts, line 1, column 8: rank: found a group or a repetition"},
		"a repetition repeated":       {"", `regexp("a{1,}{1,}{1,}", x)`, "a group or a repetition that is repeated"},
		"hidden by braces":            {"", `regexp("{(a+)+}", x)`, "a group or a repetition that is repeated"},
		"hidden by brackets":          {"", `regexp("([)]a+)+", x)`, "a group or a repetition that is repeated"},
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
		"many":                            {"", strings.Repeat(`regexp("a+b", Machine) || `, 17) + "false", "may take long"},
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

func TestTheStepsOfASearchGrowWithTheText(t *testing.T) {
	for repeats, want := range []int{leastSteps, leastRepeated, leastRepeated, 1 << 24 / 24, 1 << 30 / 120} {
		s := search{choices: 1, repeats: repeats}
		require.Equal(t, want, s.steps(0), fmt.Sprint(repeats))
	}
	require.Equal(t, endless, search{choices: 1, repeats: 200}.steps(1000))
}
