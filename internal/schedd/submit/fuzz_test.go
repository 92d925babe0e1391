package submit

import (
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// keyOfLine matches the beginning of every line of a description.
var keyOfLine = regexp.MustCompile(`^(My\.[A-Za-z_][A-Za-z0-9_]*|[a-z][a-z0-9_]*) = .|^queue [0-9]+$`)

// Whatever the options contain, the description has only our lines and allowed ones, no macro but our own, and ends
// with our tag and one queue. Forbidden contents are reported at the place where they were written.
func FuzzOptions(f *testing.F) {
	ar, err := txtar.ParseFile("testdata/htcopts.txtar")
	require.NoError(f, err)
	more, err := txtar.ParseFile("testdata/refused.txtar")
	require.NoError(f, err)
	for i, files := 0, append(ar.Files, more.Files...); i < len(files); i += 2 {
		f.Add(string(files[i].Data))
	}
	f.Add("r\\\n" + strings.Repeat("a\\\n", 21000) + " = 1")
	f.Fuzz(func(t *testing.T, options string) {
		d := description()
		d.Options, d.Allow = options, []string{"batch_project", "+ProjectX", "environment"}
		var text string
		var err error
		frugal(t, func() { text, err = submitText(d) })
		if err != nil {
			require.Equal(t, condor.Refused, condor.KindOf(err))
			require.NotContains(t, err.Error(), "of the submit description", "found too late to say where")
			return
		}
		parsed, err := parseOptions(options, d.allowances())
		require.NoError(t, err)
		// What ends retries is said otherwise where there is a success_exit_code.
		_, codes := value(parsed, "success_exit_code")
		var printed strings.Builder
		for _, o := range parsed {
			printed.WriteString(o.String())
			if otherwise := codes && (o.key == "success_exit_code" || o.key == "retry_until"); !otherwise {
				require.Contains(t, text, o.String())
			}
		}
		again, err := parseOptions(printed.String(), d.allowances())
		require.NoError(t, err)
		require.Equal(t, parsed, again)
		if !codes {
			require.Contains(t, text, printed.String())
		}

		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		queues := 0
		for i, l := range lines {
			require.Regexp(t, keyOfLine, l)
			require.False(t, strings.HasSuffix(l, `\`), l)
			if strings.HasPrefix(l, "queue") {
				queues++
			}
			if i >= 12 {
				require.False(t, macro.MatchString(l), l)
			}
		}
		require.Equal(t, 1, queues)
		require.Equal(t, "queue 1", lines[len(lines)-1])
		require.Equal(t, `My.HTCJobName = "zero"`, lines[len(lines)-2])
	})
}

// frugal fails unless do allocates at most 64 MB in all.
func frugal(t *testing.T, do func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
}
