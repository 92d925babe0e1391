package submit

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What one proc alone gets holds the tokens, too.
func TestWrapperKeepsTheTokensOfAJobWithItemsFromTheScript(t *testing.T) {
	for shell, argv := range shells(t) {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			r := receive(t)
			d := r.description(
				"ls -A; for fd in /proc/$$/fd/*; do case $fd in */[0-2]) ;; *) [ ! -f $fd ] || cat $fd ;; esac; done; exit 3\n",
			)
			d.Queue, d.Items = 3, []string{"A=0\n", "A=1\n", "A=2\n"}
			s := node(t, d, map[string]string{"apptainer": fakeApptainer, "curl": "", "sh": "", "ls": "", "cat": ""})
			s.shell = argv
			code, stdout, stderr := s.run(t)
			require.Equal(t, 3, code, stderr)
			require.NotContains(t, stdout, "tok-0123456789", "neither a file nor an open descriptor has it")
			require.NotContains(t, stdout, ".own-2")
			require.NoFileExists(t, filepath.Join(s.dir, ".own-2"))
			environment, err := os.ReadFile(filepath.Join(s.dir, "..", "environment"))
			require.NoError(t, err)
			require.NotContains(t, string(environment), "tok-0123456789")
			require.Contains(t, string(environment), "APPTAINERENV_A=2\n")
			require.Len(t, r.events, 1)
			require.Equal(t, "Bearer tok-0123456789", r.heads[0].Get("Authorization"))
		})
	}
}

func TestTheSecondTokenOfAJobWithItemsIsThatOfItsCredentials(t *testing.T) {
	d := withCredentials("exit 0")
	d.Queue, d.Items = 2, []string{"A=1\n", "A=2\n"}
	s, err := d.Render()
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, Stage(dir, s, "one", "two"))
	text, err := os.ReadFile(filepath.Join(dir, ".own-1"))
	require.NoError(t, err)
	require.Equal(t, "one\ntwo\nA=2\n", string(text))
}

func TestTenThousandItemsAreTenThousandFiles(t *testing.T) {
	const n = 10_000
	d := description()
	d.Queue, d.Items = n, make([]string, n)
	for i := range d.Items {
		d.Items[i] = fmt.Sprintf("SEED=%d\n", i)
	}
	s, err := d.Render()
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, Stage(dir, s, "tok"))
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, n+3, "beside them job.sub, job.sh and the script")
	text, err := os.ReadFile(filepath.Join(dir, ".own-9999"))
	require.NoError(t, err)
	require.Equal(t, "tok\n\nSEED=9999\n", string(text))
}

var (
	oddValues = []string{
		"",
		"1",
		"'",
		"it's",
		`"`,
		`\`,
		`\n`,
		`'\''`,
		"$HOME",
		"$(touch ran)",
		"`touch ran`",
		"a;b&c|d",
		"  x  ",
		"=",
		"A=1",
		"%s",
		"ä😀",
		"-n",
		"*",
		"~",
		"\u2028",
		"\ufeff",
		"a\nb",
		"a\rb",
		"a\x00b",
		"\t",
		"\xff",
		strings.Repeat("'\"", 2000),
		"!!",
		"${A}",
		"#x",
		"\\",
	}
	oddNames = []string{
		"_",
		"x",
		"PATH",
		"IFS",
		"ENV",
		"LD_PRELOAD",
		"prefix",
		"line",
		"tool",
		"file",
		"secret",
		"OPTIND",
		"PS4",
		"A B",
		"A=",
		"1",
		strings.Repeat("N", 128),
		strings.Repeat("N", 129),
	}
)

// seeds returns what a fuzz test begins with: all of it when it is fuzzed and with TEST_ALL, otherwise the first two,
// since a test beside it has all in one job.
func seeds(all []string) []string {
	if fuzzed := flag.Lookup("test.fuzz"); os.Getenv("TEST_ALL") != "" || fuzzed != nil && fuzzed.Value.String() != "" {
		return all
	}
	return all[:2]
}

func TestAJobsVariablesReachTheContainer(t *testing.T) {
	for shell, argv := range shells(t) {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			d := description()
			d.Source, d.Command, d.CallbackURL, d.Environment = "exit 0\n", "sh", "", map[string]string{}
			item := ""
			for i, value := range oddValues {
				if name := fmt.Sprint("V", i); CheckVariable(name, value) == nil {
					d.Environment[name] = value
					item += "I" + name + "=" + value + "\n"
				}
			}
			for _, name := range oddNames {
				if CheckVariable(name, "/nowhere") == nil {
					d.Environment[name] = "of all jobs"
					item += name + "=/nowhere\n"
				}
			}
			d.Queue, d.Items = 3, []string{"OTHER=1\n", "OTHER=1\n", item}
			s := node(t, d, map[string]string{"apptainer": fakeApptainer, "sh": ""})
			s.shell = argv
			code, _, stderr := s.run(t)
			require.Equal(t, 0, code, stderr)
			text, err := os.ReadFile(filepath.Join(s.dir, "..", "environment"))
			require.NoError(t, err)
			for line := range strings.Lines(item) {
				require.Contains(t, "\n"+string(text), "\nAPPTAINERENV_"+line)
			}
			for name, value := range d.Environment {
				if value != "of all jobs" {
					require.Contains(t, "\n"+string(text), "\nAPPTAINERENV_"+name+"="+value+"\n")
				}
			}
			require.NotContains(t, string(text), "OTHER=")
			require.NoFileExists(t, filepath.Join(s.dir, "ran"))
		})
	}
}

// A variable that is accepted reaches the container as it was written, in every shell, whether it is of an item or of
// all jobs.
func FuzzVariableReachesTheContainer(f *testing.F) {
	for _, value := range seeds(oddValues) {
		f.Add("NAME", value)
	}
	for _, name := range seeds(oddNames) {
		f.Add(name, "/nowhere")
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		if CheckVariable(name, value) != nil {
			return
		}
		d := description()
		d.Source, d.Command, d.CallbackURL = "exit 0\n", "sh", ""
		d.Environment = map[string]string{"BEFORE": value, name: "of all jobs"}
		d.Queue, d.Items = 3, []string{"OTHER=1\n", "OTHER=1\n", name + "=" + value + "\n"}
		for shell, argv := range shellsOf(t, name+value) {
			s := node(t, d, map[string]string{"apptainer": fakeApptainer, "sh": ""})
			s.shell = argv
			code, _, stderr := s.run(t)
			require.Equal(t, 0, code, "%s: %s", shell, stderr)
			text, err := os.ReadFile(filepath.Join(s.dir, "..", "environment"))
			require.NoError(t, err)
			require.Contains(t, "\n"+string(text), "\nAPPTAINERENV_"+name+"="+value+"\n", shell)
			if name != "BEFORE" {
				require.Contains(t, "\n"+string(text), "\nAPPTAINERENV_BEFORE="+value+"\n", shell)
			}
			require.NotContains(t, string(text), "OTHER=", shell)
			require.NoFileExists(t, filepath.Join(s.dir, "ran"), shell)
		}
	})
}
