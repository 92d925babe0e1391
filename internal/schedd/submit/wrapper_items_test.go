package submit

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What one proc alone gets holds the tokens, too, and so does what a factory's procs share.
func TestWrapperKeepsTheTokensOfAJobWithItemsFromTheScript(t *testing.T) {
	for shell, argv := range shells(t) {
		for at, most := range map[string]int{"in a cluster": 0, "of a factory": 2} {
			t.Run(shell+" "+at, func(t *testing.T) {
				t.Parallel()
				r := receive(t)
				d := r.description(
					"ls -A; for fd in /proc/$$/fd/*; do case $fd in */[0-2]) ;; *) [ ! -f $fd ] || cat $fd ;; esac; done; exit 3\n",
				)
				d.Queue, d.Items, d.Parallelism = 4, []string{"A=0\n", "A=1\n", "A=2\nB= 3\n", "A=3\n"}, most
				s := node(
					t, d, map[string]string{"apptainer": fakeApptainer, "curl": "", "sh": "", "ls": "", "cat": ""},
				)
				if most > 0 {
					arrive(t, s.dir, ".own-of-0")
				}
				s.shell = argv
				code, stdout, stderr := s.run(t)
				require.Equal(t, 3, code, stderr)
				require.NotContains(t, stdout, "tok-0123456789", "neither a file nor an open descriptor has it")
				require.NotContains(t, stdout, ".own-2")
				require.NotContains(t, stdout, ".own-of")
				require.NoFileExists(t, filepath.Join(s.dir, ".own-2"))
				require.NoFileExists(t, filepath.Join(s.dir, ".own-of-0"))
				text, err := os.ReadFile(filepath.Join(s.dir, "..", "environment"))
				require.NoError(t, err)
				environment := string(text)
				require.NotContains(t, environment, "tok-0123456789")
				require.Contains(t, environment, "APPTAINERENV_A=2\n")
				require.Contains(t, environment, "APPTAINERENV_B= 3\n")
				require.Equal(t, 1, strings.Count(environment, "APPTAINERENV_A="))
				require.Len(t, r.events, 1)
				require.Equal(t, "Bearer tok-0123456789", r.heads[0].Get("Authorization"))
			})
		}
	}
}

// arrive brings a file of a factory's archive to a job, as HTCondor does from the launcher's directory.
func arrive(t *testing.T, dir, name string) {
	t.Helper()
	said, err := exec.CommandContext(
		t.Context(), "tar", "-C", dir, "--strip-components=1", "-xzf", filepath.Join(dir, fileOwnAll), dirOwn+"/"+name,
	).CombinedOutput()
	require.NoError(t, err, string(said))
	require.NoError(t, os.Remove(filepath.Join(dir, fileOwnAll)))
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

func TestTenThousandItemsAreTenThousandFilesOfACluster(t *testing.T) {
	d := description()
	d.Queue, d.Items = 10_000, seeded(10_000)
	s, err := d.Render()
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, Stage(dir, s, "tok"))
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 10_000+3, "beside them job.sub, job.sh and the script")
	text, err := os.ReadFile(filepath.Join(dir, ".own-9999"))
	require.NoError(t, err)
	require.Equal(t, "tok\n\nSEED=9999\n", string(text))
}

func seeded(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("SEED=%d\n", i)
	}
	return all
}

func TestTheProcsOfAFactoryShareFilesOfItems(t *testing.T) {
	long := "A=" + strings.Repeat("x", 20<<10) + "\n"
	for name, c := range map[string]struct {
		items   []string
		numbers []int
		per     int
		files   []string
		last    string
	}{
		"as many as 256":           {seeded(600), nil, 256, []string{".own-of-0", ".own-of-1", ".own-of-2"}, " 599\nSEED=599\n"},
		"of some, those of others": {seeded(3), []int{1, 300, 100_000}, 256, []string{".own-of-0", ".own-of-1", ".own-of-390"}, " 100000\nSEED=2\n"},
		"long ones have their own": {[]string{"A=1\n", long, long}, nil, 2, []string{".own-of-0", ".own-of-1"}, " 2\n" + long},
		"beside each other, too":   {[]string{long, long}, nil, 1, []string{".own-of-0", ".own-of-1"}, " 1\n" + long},
	} {
		d := description()
		d.Queue, d.Items, d.Numbers, d.Parallelism = len(c.items), c.items, c.numbers, 5
		s, err := d.Render()
		require.NoError(t, err, name)
		require.Contains(t, textOf(s, fileFactory), fmt.Sprintf(") / %d\n", c.per), name)
		var files []string
		for _, f := range s.Files {
			if f.OfProc {
				files = append(files, f.Name)
			}
		}
		require.Equal(t, c.files, files, name)
		require.True(t, strings.HasSuffix(textOf(s, c.files[len(c.files)-1]), c.last), name)
	}
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
