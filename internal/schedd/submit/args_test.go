package submit

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// printing is a script that shows its arguments.
const printing = "for a; do printf '%s\\0' \"$a\"; done\n"

var oddArguments = []string{
	"",
	"-n",
	"--",
	"'",
	`"`,
	`\`,
	"$HOME $(touch ran) `touch ran`",
	"a\nb\n",
	"\t",
	"\r",
	"*",
	"ä😀\u2028",
	"\xff\x81\x88",
	"{{",
	"{{ proc }}",
	"{{Proc}}",
	"{{item.}}",
	"{{proc",
	"$proc",
	"${cluster}",
	strings.Repeat("x'", 9000),
	"{{item.9}}",
	"{{items.A}}",
}

func TestArgumentsReachTheScript(t *testing.T) {
	for shell, argv := range shells(t) {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			d := description()
			d.Source, d.Command, d.CallbackURL, d.Queue = printing, "sh", "", 3
			d.Args = slices.Clone(oddArguments)
			want := slices.Clone(oddArguments)
			for _, arg := range oddArguments {
				if len(arg) < 100 {
					d.Args, want = append(d.Args, "{{proc}}"+arg+"{{cluster}}"), append(want, "2"+arg+"77")
				}
			}
			s := node(t, d, map[string]string{"apptainer": fakeApptainer, "sh": ""})
			s.shell = argv
			code, stdout, stderr := s.run(t)
			require.Equal(t, 0, code, stderr)
			require.Equal(t, append(want, ""), strings.Split(stdout, "\x00"))
		})
	}
}

// Whatever an argument holds, the script gets it as it was written, in every shell.
func FuzzArgumentReachesTheScript(f *testing.F) {
	for _, arg := range seeds(oddArguments) {
		f.Add(arg)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		if argumentRE.MatchString(arg) || (Description{Args: []string{arg}}).checkArgs() != nil {
			return
		}
		d := description()
		d.Source, d.Command, d.CallbackURL = printing, "sh", ""
		d.Args = []string{"first", arg, "{{proc}}" + arg + "{{cluster}}", "{{item.ODD}}"}
		d.Queue, d.Items = 3, []string{"ODD=x\n", "ODD=x\n", "A=1\nODD= -n '\"$(touch ran)\\ \n"}
		for shell, argv := range shellsOf(t, arg) {
			s := node(t, d, map[string]string{"apptainer": fakeApptainer, "sh": ""})
			s.shell = argv
			code, stdout, stderr := s.run(t)
			require.Equal(t, 0, code, "%s: %s", shell, stderr)
			require.Equal(
				t,
				[]string{"first", arg, "2" + arg + "77", " -n '\"$(touch ran)\\ ", ""},
				strings.Split(stdout, "\x00"),
				shell,
			)
		}
	})
}

func TestArgumentsThatNoJobCanBeGivenAreRefused(t *testing.T) {
	items := []string{"A=1\n", "A=2\nB=" + strings.Repeat("x", 30_000) + "\n"}
	for name, c := range map[string]struct {
		args, items []string
		words       string
	}{
		"a thousand":                  {make([]string, 1000), nil, ""},
		"one more":                    {make([]string, 1001), nil, "spec.script.args: expected at most 1000, found 1001"},
		"a NUL":                       {[]string{"a", "b\x00"}, nil, "spec.script.args[1]: found a NUL character"},
		"too long":                    {[]string{strings.Repeat("x", 1<<16)}, nil, "spec.script.args: expected at most 64 KiB together, found 65537 bytes"},
		"too long with an item's":     {[]string{"{{item.A}}{{item.A}}", strings.Repeat("x", 65_520)}, items[:1], "found 655"},
		"an item that all have":       {[]string{"--seed={{item.A}}"}, items, ""},
		"an item that one has not":    {[]string{"{{item.B}}"}, items, "spec.script.args[0]: found {{item.B}}, and job 0 has no variable B: expected one of its items"},
		"an item where there is none": {[]string{"{{item.A}}"}, nil, "a job without items has no variable A"},
		"too long with many of them":  {[]string{strings.Repeat("{{item.B}}", 3)}, []string{items[1]}, "found 90031 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			d := description()
			d.Args, d.Items, d.Queue = c.args, c.items, max(1, len(c.items))
			_, err := d.Render()
			if c.words == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.words)
			require.Equal(t, condor.Refused, condor.KindOf(err))
		})
	}
}
