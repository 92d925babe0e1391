package submit

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// refused.txtar holds lines that proved effective in a description that takes htcopts unchecked; test/schedd shows the
// effects.
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
				require.Equal(t, condor.Refused, condor.KindOf(err))
				if before == "" {
					require.EqualError(t, err, strings.TrimSuffix(want, "\n"))
				}
				require.Error(t, stageIn(t.TempDir(), d, "token"))
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
		require.Equal(t, condor.Refused, condor.KindOf(err), "%s, all the same", entry)
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

func TestASlipOfTheHandIsAskedAbout(t *testing.T) {
	for line, words := range map[string]string{
		"request_memry = 2048":   "request_memry is taken for a resource of the pool's own: is request_memory meant?",
		"Request_Memroy = 2GB":   "is request_memory meant? If the pool has it, the operator of htcd can allow request_memroy",
		"request_cpu = 2":        "is request_cpus meant?",
		"request_dsik = 2GB":     "is request_disk meant?",
		"request_fpga = 2GB":     `request_fpga: it is taken for a resource of the pool's own, whose value is a number; found "2GB"`,
		"requst_memory = 2GB":    "the command requst_memory is not allowed: is request_memory meant?",
		"notificaton = never":    "the command notificaton is not allowed: is notification meant?",
		"email_attributes = 1":   "the command email_attributes is not allowed; docs/htcjob.md lists",
		"request_fpga = 2":       "",
		"request_licenses = 1":   "",
		"request_tpu = 1":        "",
		"request_tapes = 2 + 1":  "",
		"request_gpus = 1":       "",
		"request_memory = 2GB":   "",
		"request_mem = 1":        "",
		"request_npus = 1":       "is request_cpus meant?",
		"request_quota = (1 + 1": "request_quota",
	} {
		d := description()
		d.Options = line
		_, err := d.Render()
		if words == "" {
			require.NoError(t, err, line)
			continue
		}
		require.ErrorContains(t, err, words, line)
	}
	d := description()
	d.Options, d.Allow = "request_npus = 1", []string{"request_npus"}
	_, err := d.Render()
	require.NoError(t, err, "the operator says that the pool has it")
}

func TestOfVeryManyWrongLinesSomeAreNamed(t *testing.T) {
	_, err := parseOptions(strings.Repeat("queue 1\n", 1000), allowances{})
	require.ErrorContains(t, err, "line 20, column 1")
	require.ErrorContains(t, err, "and 980 more lines that are wrong")
	_, err = parseOptions(strings.Repeat("rank = "+strings.Repeat("'", 3000)+"\n", 10), allowances{})
	require.Less(t, len(err.Error()), 8<<10)
}
