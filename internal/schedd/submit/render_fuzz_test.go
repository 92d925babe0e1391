package submit

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Whatever a spec's fields contain, the submit description and the head of the wrapper repeat it verbatim, or are
// refused.
func FuzzRender(f *testing.F) {
	f.Add("zero", "centos", "bash", "echo A\n", 1)
	f.Add(`say "hi" to a\b`, "docker://reg:5000/a/b:1@sha256:0af", `bash -c it's;$(rm) "`, "", 300)
	f.Add(`a" || true || "`, "/cvmfs/x/y:z", "'\\''", "EOF\n'", -1)
	f.Add("$(DOLLAR)(X)", "$ENV(HOME)", "a\nqueue", "\x00", 0)
	f.Add(`ends in \`, "oras://a'b", "--bind /", "queue 2", 2)
	f.Add("\u2028\u0085\u202e", "library://x", "\u00a0bash\u2003x", "\r", 7)
	f.Fuzz(func(t *testing.T, name, image, command, source string, queue int) {
		d := description()
		d.BatchName, d.Command, d.Source, d.Queue = name, command, source, queue
		image, err := resolveImage(image, "")
		if err != nil {
			require.Equal(t, condor.Refused, condor.KindOf(err))
			image = ""
		}
		d.Image = image
		s, err := d.Render()
		if err != nil {
			require.Equal(t, condor.Refused, condor.KindOf(err))
			require.NotContains(t, err.Error(), "of the submit description", "found too late to say where")
			return
		}

		lines := strings.Split(textOf(s, FileSubmit), "\n")
		usual, err := submitText(description())
		require.NoError(t, err)
		differ := 0
		for i, l := range strings.Split(usual, "\n") {
			if lines[i] == l {
				continue
			}
			differ++
			key, value, _ := strings.Cut(lines[i], " = ")
			if key == "My.JobBatchName" {
				x, err := classad.ParseExpr(value)
				require.NoError(t, err)
				got, ok := x.(*classad.Literal).Value.Str()
				require.True(t, ok)
				require.Equal(t, name, got)
				require.NotRegexp(t, macro, lines[i])
				continue
			}
			require.Regexp(t, `^queue [1-9][0-9]*$`, lines[i])
		}
		require.LessOrEqual(t, differ, 2)
		require.Len(t, lines, strings.Count(usual, "\n")+1)

		head, ok := strings.CutSuffix(textOf(s, fileJob), callbackBody+wrapperBody)
		require.True(t, ok)
		require.Equal(t, []string{image}, shellWords(t, lineOf(head, "image=")))
		require.Equal(t, strings.Fields(command), shellWords(t, lineOf(head, "set -- ")))
		require.NotContains(t, head, "\r")
		require.Equal(t, 37, strings.Count(head, "\n"))
	})
}

// lineOf returns the rest of the only line with that prefix.
func lineOf(text, prefix string) string {
	_, after, _ := strings.Cut(text, "\n"+prefix)
	line, _, _ := strings.Cut(after, "\n")
	return line
}

// shellWords reads words in single quotes as a shell does, and accepts nothing else.
func shellWords(t *testing.T, s string) []string {
	var words []string
	var word strings.Builder
	for s != "" {
		switch {
		case s[0] == '\'':
			text, rest, closed := strings.Cut(s[1:], "'")
			require.True(t, closed)
			word.WriteString(text)
			s = rest
		case strings.HasPrefix(s, `\'`):
			word.WriteByte('\'')
			s = s[2:]
		case s[0] == ' ':
			words, s = append(words, word.String()), s[1:]
			word.Reset()
		default:
			t.Fatalf("a shell would look at %q", s)
		}
	}
	return append(words, word.String())
}
