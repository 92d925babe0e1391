package schedd

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
)

// refused.txtar holds what was seen to work against a description that takes htcopts as
// they come; test/schedd shows the effects.
func TestWhatSubmitLinesCanDoIsRefused(t *testing.T) {
	ar, err := txtar.ParseFile("testdata/refused.txtar")
	require.NoError(t, err)
	for i := 0; i < len(ar.Files); i += 2 {
		t.Run(ar.Files[i].Name, func(t *testing.T) {
			want, ok := strings.CutPrefix(string(ar.Files[i+1].Data), "! ")
			require.True(t, ok)
			for _, before := range []string{"", "rank = 1\n"} {
				d := description()
				d.Allow = []string{"batch_project", "+ProjectX"}
				d.Options = before + string(ar.Files[i].Data)
				_, err := d.Render()
				require.Equal(t, Refused, KindOf(err))
				if before == "" {
					require.EqualError(t, err, strings.TrimSuffix(want, "\n"))
				}
				require.Error(t, Stage(t.TempDir(), d, "token"))
			}
		})
	}
}

func TestASiteCannotAllowWhatHtcdSetsItself(t *testing.T) {
	for entry, words := range map[string]string{
		"":                      "neither a submit command nor a +Attribute",
		"a b":                   "neither a submit command nor a +Attribute",
		"MY.ProjectX":           "neither a submit command nor a +Attribute",
		"++x":                   "neither a submit command nor a +Attribute",
		"queue":                 "no submit command",
		"Include":               "no submit command",
		"Executable":            "htcd's own",
		"transfer_input_files":  "htcd's own",
		"getenv":                "htcd's own",
		"error":                 "no submit command",
		"+cmd":                  "htcd's own",
		"+LeaveJobInQueue":      "htcd's own",
		"+HTCJobUID":            "htcd's own",
		"htcjobuid":             "htcd's own",
		"+TransferInput":        "htcd's own",
		"+OnExitRemove":         "on_exit_remove sets it",
		"+JobPrio":              "priority sets it",
		"+JobMaxRetries":        "htcd's own",
		"batch_project":         "",
		"+ProjectX":             "",
		"environment":           "",
		"accounting_group_user": "",
	} {
		err := CheckAllow([]string{"+ProjectY", entry})
		if words == "" {
			require.NoError(t, err, entry)
			continue
		}
		require.ErrorContains(t, err, words, entry)
		d := description()
		d.Allow, d.Options = []string{entry}, entry+" = 1"
		_, err = d.Render()
		require.Equal(t, Refused, KindOf(err), "%s, all the same", entry)
	}
}

func TestWhatASiteAllowsIsStillOneLineWithoutMacros(t *testing.T) {
	for value, words := range map[string]string{
		"$ENV(HOME)":       "macro",
		"$$(Unknown)":      "macro",
		"$(DOLLAR)(X)":     "macro",
		`x\`:               "backslash",
		"x\rqueue 5":       "control character",
		"x\nqueue 5":       "queue",
		"x\ninclude : /x":  "include",
		"x\n+Cmd = \"/x\"": "Cmd",
	} {
		d := description()
		d.Allow, d.Options = []string{"batch_project"}, "batch_project = "+value
		_, err := d.Render()
		require.ErrorContains(t, err, words)
	}
}
