package schedd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
		"https://a/other":                        "which is also that of the input other",
		"https://a/two":                          "which is also that of the input second",
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
			require.Equal(t, Refused, KindOf(err))
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
	d.Inputs = []Input{{Name: "calib", URL: "https://a/x/calib%20v1?sig=a&b"}, {Name: "same", URL: "https://a/same"}, {Name: "own"}, {Name: "proc", OfProc: true}}
	s, err := d.Render()
	require.NoError(t, err)
	require.Contains(t, textOf(s, fileSubmit), "\ntransfer_input_files = script, token, https://a/x/calib%20v1?sig=a&b, https://a/same, .in/shared/, .in/$(ProcId)/, .item-$(ProcId)\n")
	require.Contains(t, textOf(s, fileJob), "\nmoves='calib/calib%20v1'\n")
	d.Inputs = d.Inputs[:2]
	s, err = d.Render()
	require.NoError(t, err)
	require.NotContains(t, textOf(s, fileSubmit), ".in/", "htcd brings nothing")
}

func TestWrapperNamesInputsFromURLs(t *testing.T) {
	for shell, argv := range shells(t) {
		t.Run(shell, func(t *testing.T) {
			r := receive(t)
			d := r.description("cat a b same changed; echo more >>changed\n")
			d.AllowSchemes = []string{"https"}
			d.Inputs = []Input{{Name: "a", URL: "https://h/1/b"}, {Name: "b", URL: "https://h/2/a"}, {Name: "same", URL: "https://h/same"}, {Name: "changed", URL: "https://h/c%2B"}}
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
