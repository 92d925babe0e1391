package submit

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// As far as is known, no spec can cause any of this: the finished description is checked all the same.
func TestAFinishedDescriptionIsLookedAtAsAWhole(t *testing.T) {
	usual, err := submitText(description())
	require.NoError(t, err)
	require.NoError(t, checkWritten(usual))
	for line, words := range map[string]string{
		"rank = '$ENV(HOME)'":     `line 2 of the submit description: found the macro "$ENV("`,
		"rank = $(ProcId)":        `found the macro "$("`,
		"arguments = $(ProcId) x": `found the macro "$("`,
		"rank = \"$$(X)\"":        `found the macro "$$"`,
		"rank = '\x1b[2J'":        "found the control character 0x1b at byte 9",
		"rank = \"\u009b2J\"":     "found the control character 0x9b",
		"rank = \"\xc3\"":         "found the byte 0xc3, which is no UTF-8",
		"rank = x\rqueue 5":       "found the control character 0x0d",
		`rank = "x" \`:            "found a backslash at the end",
		"queue 5":                 `found "queue 5", expected a command and its value`,
		"include : /etc/passwd |": "expected a command and its value",
		"rank @=end":              "expected a command and its value",
		"rank =":                  "expected a command and its value",
		"":                        "expected a command and its value",
	} {
		first, rest, _ := strings.Cut(usual, "\n")
		err := checkWritten(first + "\n" + line + "\n" + rest)
		require.Equal(t, condor.Refused, condor.KindOf(err), line)
		require.ErrorContains(t, err, words)
	}
	require.ErrorContains(t, checkWritten(usual+"rank = 1\n"), "expected a command and its value")
	require.ErrorContains(t, checkWritten(strings.TrimSuffix(usual, "queue 1\n")), "expected the queue statement")
}

func TestValuesAreBounded(t *testing.T) {
	long := func(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }
	for options, words := range map[string]string{
		"+WantOS = " + long(4096):                                      "",
		"+WantOS = " + long(4097):                                      "htcopts, line 1, column 11: WantOS: found a value of 4097 bytes, expected at most 4 KiB",
		"rank = 1" + strings.Repeat(" + \\\n  1", 2000):                "rank: found a value of 8001 bytes, expected at most 4 KiB",
		"batch_project = " + strings.Repeat("x", 4097):                 "batch_project: found a value of 4097 bytes",
		"requirements = x =!= " + long(8192-6):                         "",
		"requirements = x =!= " + long(8192-5):                         "requirements: found 8193 characters, expected at most 8192",
		"requirements = x =!= \"" + strings.Repeat("ä", 8192-8) + "\"": "",
		"periodic_hold_reason = " + long(1026):                         "",
		"periodic_hold_reason = " + long(1027):                         "periodic_hold_reason: found a text of 1025 bytes, expected at most 1 KiB",
		"on_exit_hold_reason = " + long(1027):                          "on_exit_hold_reason: found a text of 1025 bytes, expected at most 1 KiB",
	} {
		d := description()
		d.Allow, d.Options = []string{"batch_project"}, options
		_, err := d.Render()
		if words == "" {
			require.NoError(t, err)
			continue
		}
		require.Equal(t, condor.Refused, condor.KindOf(err))
		require.ErrorContains(t, err, words)
	}
}
