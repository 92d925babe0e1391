package submitfile_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestWhatCondorSubmitRefusesIsRefusedWithItsLine(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a byte order mark": {"\xef\xbb\xbfqueue\n", "refused: job.sub, line 1: found a byte order mark"},
		"UTF-16":            {"\xff\xfeq\x00", "refused: job.sub, line 1: found UTF-16"},
		"a program":         {"queue\n\x7fELF\x00", "refused: job.sub, line 2: found a NUL"},
		"Latin-1": {"\n\nx = \xe4\n",
			"refused: job.sub, line 3: found characters that are not UTF-8"},
		"a control character": {"a = b\x01c\n", "refused: job.sub, line 1: found a control character"},
		"a line without end": {"queue\na = " + strings.Repeat("x", 1<<20),
			"refused: job.sub, line 2: expected at most 1024 KiB in a line"},
		"included files beyond measure": {"include : many\n", "refused: many, line 1000: expected at most 1000 included files"},
		"a word":                        {"a = 1\nfoo\nqueue\n", "refused: job.sub, line 2: expected COMMAND = VALUE"},
		"a colon":                       {"a : 1\n", "refused: job.sub, line 1: expected = instead of the colon"},
		"a name with a minus":           {"a-b = 1\n", `refused: job.sub, line 1: "a-b" cannot be the name`},
		"queue with =":                  {"queue = 3\n", "refused: job.sub, line 1: queue takes no ="},
		"queue many": {"queue many\n",
			`refused: job.sub, line 1: expected a number of jobs, found "many"`},
		"queue -1": {"queue -1\n", "refused: job.sub, line 1: expected 0 to"},
		"a list without end": {"queue x in (\na\n",
			"refused: job.sub, line 1: expected a line that begins with )"},
		"from a command": {"queue x from seq 3 |\n",
			`refused: job.sub, line 1: what the command "seq 3" prints is needed`},
		"from the standard input": {"queue x from -\n", "refused: job.sub, line 1: the items of `from -`"},
		"from nothing":            {"queue x from\n", "refused: job.sub, line 1: expected a file"},
		"from no file": {"queue x from none\n",
			"refused: job.sub, line 1: open none: file does not exist"},
		"a slice that steps back": {"queue x in [::-1] (a b)\n", "refused: job.sub, line 1: the step of a slice"},
		"a template": {"use template : GPU\n",
			"refused: job.sub, line 1: use template : GPU takes a template"},
		"an error of its own": {"v = 3\nerror : v is $(v)\n",
			"refused: job.sub, line 2: the file itself says: v is 3"},
		"include of a command": {"include : ./make |\n",
			`refused: job.sub, line 1: what the command "./make" prints`},
		"include command": {"include command : ./make\n",
			`refused: job.sub, line 1: what the command "./make" prints`},
		"include of no file":          {"include : none\n", "refused: job.sub, line 1: open none"},
		"include of itself":           {"include : job.sub\n", "refused: job.sub, line 1: included files nest too deep"},
		"a queue in an included file": {"include : q\n", "refused: q, line 2: a queue statement has no place"},
		"an if without end":           {"a = 1\nif true\nb = 2\n", "refused: job.sub, line 3: an if without endif"},
		"else after a queue in an if": {"if true\nqueue\nelse\nendif\n",
			"1.0\nrefused: job.sub, line 3: else without an if before it"},
		"a condition that is none": {"if a == b\nendif\n", `refused: job.sub, line 1: "a == b" is no condition`},
		"else twice":               {"if true\nelse\nelse\nendif\n", "refused: job.sub, line 3: else after else"},
		"a text without end":       {"a @=end\nb\n", "refused: job.sub, line 1: expected a line @end"},
		"a circle of macros": {"arguments = $(a)\na = $(b)\nb = $(a)\nqueue\n",
			"1.0 the macro $(a) refers to itself"},
		"a function that calls itself": {"arguments = $INT(a)\na = $INT(a)\nqueue\n", "1.0 $INT(a): it refers to itself"},
		"a random number": {"arguments = $RANDOM_INTEGER(1,6)\nqueue\n",
			"1.0 $RANDOM_INTEGER(1,6): the value would be drawn"},
		"no number": {"arguments = $INT(x)\nx = a\nqueue\n",
			`1.0 $INT(x): "a" does not evaluate to a number here`},
		"an index beyond the list": {"arguments = $CHOICE(2,a,b)\nqueue\n",
			"1.0 $CHOICE(2,a,b): the index 2 is out of range"},
		"a double quote in the old words": {"arguments = a \"b\"\nqueue\n", "1.0 found a double quote in the old syntax"},
		"an open quote":                   {"arguments = \"a 'b\"\nqueue\n", "1.0 the single quote at"},
		"more after the quote": {"arguments = \"a\" b\nqueue\n",
			"1.0 found \" b\" after the closing double quote"},
	} {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{"q": {Data: []byte("# one\nqueue\n")}, "job.sub": {Data: []byte(c.text)},
				"many": {Data: bytes.Repeat([]byte("include : some\n"), 1001)}, "some": {Data: []byte("a = 1\n")}}
			got := read([]byte(c.text), files)
			require.True(t, strings.HasPrefix(got, c.want), got)
		})
	}
}

func TestACommentMayBeInLatin1(t *testing.T) {
	require.Equal(t, "1.0\n", read([]byte("# caf\xe9\nqueue\n"), fstest.MapFS{}))
}
