package submit

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

func TestInputURLsThatCouldDoMoreThanNameAFileAreRefused(t *testing.T) {
	for url, words := range map[string]string{
		"https://a/b c":                          "without a password",
		"https://a/b,https://c/d":                "without a password",
		"https://a/b\nqueue 5":                   "without a password",
		"https://a/$(Process)":                   "without a password",
		"https://a/$$(OpSys)":                    "without a password",
		`https://a/b"c`:                          "without a password",
		"https://a/b'c":                          "without a password",
		`https://a/b\`:                           "without a password",
		"https://a/b;c":                          "without a password",
		"https://a/b#c":                          "without a password",
		"https://user:pass@a/b":                  "without a password",
		"https://a:pass@b:80/c":                  "without a password",
		"HTTPS://a/b":                            "without a password",
		"/etc/passwd":                            "without a password",
		"https://a":                              "without a password",
		"https://a/größe":                        "without a password",
		"https://a/" + strings.Repeat("x", 1024): "without a password",
		"file:///etc/passwd":                     "this site allows the schemes https, root",
		"ftp://a/b":                              "this site allows the schemes https, root",
		"https://a/":                             "is no name for one here",
		"https://a/..":                           "is no name for one here",
		"https://a/.bashrc":                      "is no name for one here",
		"https://a/token":                        "is no name for one here",
		"https://a/job.sh?x=y":                   "is no name for one here",
		"https://a/_condor_stdout":               "is no name for one here",
		"https://a/b?x=/../../token":             "",
		"https://a/other":                        "which is also the file of the input other",
		"https://a/two":                          "which is also the file of the input second",
		"https://user@a/b":                       "",
		"https://[::1]:8443/b%20c":               "",
		"root://eos.example.org//a/b":            "",
		"https://a/name":                         "",
	} {
		t.Run(url, func(t *testing.T) {
			d := description()
			d.AllowSchemes = []string{"https", "root"}
			d.Inputs = []Input{{Name: "other"}, {Name: "second", URL: "https://a/x/two"}, {Name: "name", URL: url}}
			_, err := d.Render()
			if words == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, words)
			require.Equal(t, condor.Refused, condor.KindOf(err))
		})
	}
	d := description()
	d.Inputs = []Input{{Name: "a", URL: "https://a/b"}}
	_, err := d.Render()
	require.ErrorContains(t, err, "this site allows no URLs")
	require.ErrorContains(t, CheckSchemes([]string{"https", "file"}), "never allowed")
	require.ErrorContains(t, CheckSchemes([]string{"https:"}), "expected a scheme")
}

func TestInputURLsAreFetchedByHTCondorAndNamedByTheWrapper(t *testing.T) {
	d := description()
	d.AllowSchemes = []string{"https"}
	d.Items = []string{"A=1\n"}
	d.Inputs = []Input{
		{Name: "calib", URL: "https://a/x/calib%20v1?sig=a&b"},
		{Name: "same", URL: "https://a/same"},
		{Name: "own"},
		{Name: "proc", OfProc: true},
	}
	s, err := d.Render()
	require.NoError(t, err)
	require.Contains(
		t,
		textOf(s, FileSubmit),
		"\ntransfer_input_files = script, https://a/x/calib%20v1?sig=a&b, https://a/same, .in/shared/, .in/$(ProcId)/, .own-$(ProcId)\n",
	)
	require.Contains(t, textOf(s, fileJob), "\nmoves='calib/calib%20v1'\n")
	d.Inputs = d.Inputs[:2]
	s, err = d.Render()
	require.NoError(t, err)
	require.NotContains(t, textOf(s, FileSubmit), ".in/", "htcd brings nothing")
}

func TestWrapperNamesInputsFromURLs(t *testing.T) {
	for shell, argv := range shells(t) {
		t.Run(shell, func(t *testing.T) {
			r := receive(t)
			d := r.description("cat a b same changed; echo more >>changed\n")
			d.AllowSchemes = []string{"https"}
			d.Inputs = []Input{
				{Name: "a", URL: "https://h/1/b"},
				{Name: "b", URL: "https://h/2/a"},
				{Name: "same", URL: "https://h/same"},
				{Name: "changed", URL: "https://h/c%2B"},
			}
			s := node(t, d, map[string]string{"apptainer": fakeApptainer, "curl": "", "sh": "", "mv": "", "stat": ""})
			s.shell = argv
			for name, text := range map[string]string{"b": "is a\n", "a": "is b\n", "same": "same\n", "c%2B": "changed\n"} {
				file := filepath.Join(s.dir, name)
				require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
				require.NoError(t, os.Chtimes(file, time.Now(), time.Now().Add(-time.Hour)))
			}
			code, stdout, stderr := s.run(t)
			require.Equal(t, 0, code, stderr)
			require.Equal(t, "is a\nis b\nsame\nchanged\n", stdout)
			require.NoFileExists(t, filepath.Join(s.dir, "a"), "HTCondor would take it for output")
			require.NoFileExists(t, filepath.Join(s.dir, "b"))
			require.FileExists(t, filepath.Join(s.dir, "same"), "HTCondor knows it by this name")
			require.FileExists(t, filepath.Join(s.dir, "changed"), "this is output")
		})
	}
}

func TestOutputURLsThatCouldDoMoreThanNameAFileAreRefused(t *testing.T) {
	for url, words := range map[string]string{
		"https://a/{proc}/b c":           "without a password or a query",
		"https://a/{proc};x = /etc/a":    "without a password or a query",
		"https://a/{proc}?x=y":           "without a password or a query",
		"https://a/{proc}=b":             "without a password or a query",
		`https://a/{proc}"`:              "without a password or a query",
		`https://a/{proc}\`:              "without a password or a query",
		"https://a/{proc}/$(Cluster)":    "without a password or a query",
		"https://a/{proc}/{uid}":         "without a password or a query",
		"https://a/{proc}/":              "without a password or a query",
		"https://a/{proc}/../b":          "without a password or a query",
		"https://u:p@a/{proc}":           "without a password or a query",
		"https://a/{proc}\nqueue 5":      "without a password or a query",
		"https://{name}/{proc}":          "without a password or a query",
		"file:///tmp/{proc}":             "this site allows the schemes https",
		"https://a/b":                    "all 3 jobs would write to the same place",
		"https://a/first/{proc}":         "another output has the same",
		"https://a/{name}/{proc}/b.root": "",
	} {
		t.Run(url, func(t *testing.T) {
			d := description()
			d.Queue, d.AllowSchemes = 3, []string{"https"}
			d.Outputs = []Output{{Path: "first", URL: "https://a/first/{proc}"}, {Path: "b.root", URL: url}}
			_, err := d.Render()
			if words == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, words)
			require.Equal(t, condor.Refused, condor.KindOf(err))
		})
	}
	d := description()
	d.AllowSchemes, d.Outputs = []string{"https"}, []Output{{Path: "*.root", URL: "https://a/b"}}
	_, err := d.Render()
	require.ErrorContains(t, err, "expected the path of one file beside a url")
}

func TestOutputURLsAreRemapsOfFilesThatTheWrapperNumbers(t *testing.T) {
	d := description()
	d.Queue, d.AllowSchemes = 2, []string{"https", "root"}
	d.Outputs = []Output{
		{Path: "plots"},
		{Path: "big.root", URL: "https://s/{namespace}/{name}/{attempt}/{proc}/big.root"},
		{Path: "x/y", URL: "root://e//u/{proc}"},
	}
	s, err := d.Render()
	require.NoError(t, err)
	require.Contains(
		t,
		textOf(s, FileSubmit),
		"\ntransfer_output_remaps = \".htcd-out/.url/1 = https://s/default/zero/1/$(ProcId)/big.root; .htcd-out/.url/2 = root://e//u/$(ProcId)\"\n",
	)
	require.Contains(t, textOf(s, fileJob), "\nsent=' 1 2 '\n")
}

func TestWrapperPutsAsideWhatIsWrittenElsewhere(t *testing.T) {
	for name, c := range map[string]struct {
		source string
		here   []string
		signal int
	}{
		"all is there":      {"mkdir x; echo big >big.root; echo y >x/y; touch a.root", []string{".url/1", ".url/2", "0/a.root", "0.sent"}, 0},
		"one is missing":    {"echo big >big.root; touch a.root", []string{"0/a.root"}, 42},
		"it is a directory": {"mkdir -p x/y; echo big >big.root; touch a.root", []string{"0/a.root"}, 42},
		"the script failed": {"mkdir x; echo big >big.root; echo y >x/y; touch a.root; exit 3", []string{"0/a.root"}, -3},
	} {
		for shell, argv := range shellsOf(t, name) {
			t.Run(name+" "+shell, func(t *testing.T) {
				r := receive(t)
				d := r.description(c.source + "\n")
				d.AllowSchemes = []string{"https"}
				d.Outputs = []Output{
					{Path: "*.root"},
					{Path: "big.root", URL: "https://s/b"},
					{Path: "x/y", URL: "https://s/y"},
				}
				s := node(t, d, gatheringTools())
				s.shell = argv
				cmd := s.command()
				_ = cmd.Run()
				status := cmd.ProcessState.Sys().(syscall.WaitStatus)
				require.Equal(t, c.signal > 0, status.Signaled())
				if c.signal > 0 {
					require.Equal(t, syscall.Signal(c.signal), status.Signal())
				}
				require.ElementsMatch(t, c.here, filesBelow(t, filepath.Join(s.dir, ".htcd-out")))
			})
		}
	}
}

func TestWrapperDescribesWhatIsWrittenElsewhere(t *testing.T) {
	big, y := fmt.Sprintf("%x  0\n", sha256.Sum256([]byte("big\n"))), fmt.Sprintf("%x  11\n", sha256.Sum256(nil))
	for name, c := range map[string]struct {
		tools map[string]string
		want  string
	}{
		"with everything":               {map[string]string{"stat": "", "timeout": "", "sha256sum": ""}, "0 4\n11 0\n" + big + y},
		"nothing limits the time":       {map[string]string{"stat": "", "sha256sum": ""}, "0 4\n11 0\n"},
		"the time does not suffice":     {map[string]string{"stat": "", "timeout": "echo " + strings.TrimSuffix(big, "\n") + "; exit 124"}, "0 4\n11 0\n" + strings.ReplaceAll(big, "  ", " ")},
		"without any of these programs": {nil, ""},
	} {
		for shell, argv := range shellsOf(t, name) {
			t.Run(name+" "+shell, func(t *testing.T) {
				r := receive(t)
				d := r.description("echo big >big.root; touch y f0 f1 f2 f3 f4 f5 f6 f7 f8 f9\n")
				d.AllowSchemes = []string{"https"}
				d.Outputs = []Output{{Path: "big.root", URL: "https://s/b"}}
				for i := range 10 {
					d.Outputs = append(d.Outputs, Output{Path: fmt.Sprint("f", i)})
				}
				d.Outputs = append(d.Outputs, Output{Path: "y", URL: "https://s/y"})
				tools := gatheringTools()
				delete(tools, "stat")
				maps.Copy(tools, c.tools)
				s := node(t, d, tools)
				s.shell = argv
				code, _, stderr := s.run(t)
				require.Zero(t, code, stderr)
				require.Empty(t, stderr)
				text, err := os.ReadFile(filepath.Join(s.dir, ".htcd-out", "0.sent"))
				require.NoError(t, err)
				require.Equal(t, c.want, string(text))
			})
		}
	}
}

func TestEachProcGetsTheURLsOfItsItem(t *testing.T) {
	d := description()
	d.AllowSchemes, d.Queue = []string{"https", "root"}, 3
	d.Items = []string{"U=https://a/x/one.root?x=y\nN=5\n", "U=\nN=6\n", "U=root://b//two.root\nN=7\n"}
	d.Inputs = []Input{
		{Name: "all", URL: "https://a/all"}, {Name: "in.root", URL: "{{item.U}}", OfProc: true},
		{Name: "part", URL: "https://a/{{proc}}/{{item.N}}.csv", OfProc: true},
	}
	s, err := d.Render()
	require.NoError(t, err)
	require.Contains(
		t,
		textOf(s, FileSubmit),
		"\ntransfer_input_files = https://a/all, .own-$(ProcId), $(HTCJobURLs)\n",
	)
	require.True(t, strings.HasSuffix(textOf(s, FileSubmit), `
queue HTCJobURLs from (
script,https://a/x/one.root?x=y,https://a/0/5.csv
script,https://a/1/6.csv
script,root://b//two.root,https://a/2/7.csv
)
`))
	dir := t.TempDir()
	require.NoError(t, Stage(dir, s, "tok"))
	procs, err := StagedProcs(dir)
	require.NoError(t, err)
	require.Equal(t, 3, procs)
	require.Contains(t, textOf(s, fileJob), `own_moves() {
	landed in.root ''"$(item U)"''
	landed part 'https://a/'"$proc"'/'"$(item N)"'.csv'
}
`)
	d.Numbers = []int{2, 4, 9}
	s, err = d.Render()
	require.NoError(t, err)
	require.Contains(
		t,
		textOf(s, FileSubmit),
		"\nqueue HTCJobProc, HTCJobURLs from (\n2 script,https://a/x/one.root?x=y,https://a/2/5.csv\n4 script,",
	)

	for url, words := range map[string]string{
		"{{item.none}}":              "spec.inputs: in: url: found {{item.none}}, and the item of job 0 has no variable none",
		"https://a/{{item.A}}":       `job 0: spec.inputs: in: url "https://a/x y": expected scheme://host/path`,
		"{{item.F}}":                 "job 0: spec.inputs: in: file:///etc/passwd: this site allows the schemes https, root",
		"https://a/{{item.B}}":       "HTCondor fetches it to the file taken, which is also the file of the input taken",
		"https://a/{{item.T}}":       `"token" is no name for one here`,
		"https://a/$({{item.B}})":    "without a password",
		"https://{{item.B}}@a:b@c/d": "without a password",
	} {
		d := description()
		d.AllowSchemes = []string{"https", "root"}
		d.Items = []string{"A=x y\nF=file:///etc/passwd\nB=taken\nT=token\n"}
		d.Inputs = []Input{{Name: "taken"}, {Name: "in", URL: url, OfProc: true}}
		_, err := d.Render()
		require.ErrorContains(t, err, words)
		require.Equal(t, condor.Refused, condor.KindOf(err))
	}
	d = description()
	d.AllowSchemes, d.Queue = []string{"https"}, 35_000
	d.Inputs = []Input{{Name: "in", URL: "https://a/" + strings.Repeat("x", 1000) + "/{{proc}}", OfProc: true}}
	_, err = d.Render()
	require.ErrorContains(t, err, "and 32 MiB for all")
}
