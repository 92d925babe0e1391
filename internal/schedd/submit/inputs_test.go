package submit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

func TestInputsAreTransferredFromTheirDirectories(t *testing.T) {
	d := description()
	d.Inputs = []Input{{Name: "fit.yaml"}, {Name: "hist.root", OfProc: true}}
	d.Items = []string{"A=1\n"}
	text, err := submitText(d)
	require.NoError(t, err)
	require.Contains(t, text, "\ntransfer_input_files = script, .in/shared/, .in/$(ProcId)/, .own-$(ProcId)\n")
	d.Inputs, d.Items = d.Inputs[1:], nil
	text, err = submitText(d)
	require.NoError(t, err)
	require.Contains(t, text, "\ntransfer_input_files = script, token, .in/$(ProcId)/\n")
}

func TestNamesOfInputs(t *testing.T) {
	for name, words := range map[string]string{
		"a": "", "A_b.c+d-1": "", "_x": "", strings.Repeat("n", 128): "",
		"": "expected at most 128 letters", strings.Repeat("n", 129): "at most 128", ".x": "the first a letter", "..": "the first", "a/b": "expected at most",
		"a b": "expected", "a,b": "expected", "$(X)": "expected", `a"`: "expected", "a\n": "expected", "-a": "expected", "ä": "expected", "a\x00": "expected",
		"script": "htcd or HTCondor uses it", "token": "uses it", "htcd-send": "uses it", "job.sh": "uses it", "job.sub": "uses it",
		"_condor_stdout": "uses it", "condor_exec.exe": "uses it", "tmp": "uses it", "var": "uses it",
	} {
		d := description()
		d.Inputs = []Input{{Name: name}}
		_, err := d.Render()
		if words == "" {
			require.NoError(t, err, name)
			continue
		}
		require.Equal(t, condor.Refused, condor.KindOf(err), name)
		require.ErrorContains(t, err, words, name)
	}
	d := description()
	d.Inputs = []Input{{Name: "a"}, {Name: "a", Secret: true}}
	_, err := d.Render()
	require.ErrorContains(t, err, `two of the name "a"`)
}

func TestASecretIsNoOutput(t *testing.T) {
	d := description()
	d.Inputs = []Input{{Name: "pass", Secret: true}, {Name: "free"}}
	for options, refused := range map[string]bool{
		"transfer_output_files = pass": true, "transfer_output_files = made, pass/": true, "transfer_output_files = pass/a": true,
		"transfer_output_files = free, passing": false,
	} {
		d.Options = options + "\n"
		_, err := d.Render()
		require.Equal(t, refused, condor.KindOf(err) == condor.Refused, options)
		if refused {
			require.ErrorContains(t, err, "comes from a Secret and is never brought back")
		}
	}
}

// The wrapper removes Secrets, whatever the script made of them, and counts inputs as output only if they have changed.
func TestWrapperAndInputs(t *testing.T) {
	for name, c := range map[string]struct {
		source string
		ends   int
		left   []string
	}{
		"untouched":            {"cat pass big", 1, []string{"big"}},
		"a Secret is modified": {"echo more >>pass", 1, []string{"big"}},
		"it is a directory":    {"rm pass; mkdir pass; echo >pass/a", 1, []string{"big"}},
		"it is a link":         {"rm pass; ln -s big pass", 1, []string{"big"}},
		"the other has grown":  {"echo more >>big", 0, []string{"big"}},
		"all are gone":         {"rm pass big", 1, nil},
	} {
		for shell, argv := range shellsOf(t, name) {
			t.Run(name+" "+shell, func(t *testing.T) {
				t.Parallel()
				r := receive(t)
				d := r.description(c.source + "\n")
				d.Inputs = []Input{{Name: "big"}, {Name: "pass", Secret: true}}
				s := node(
					t,
					d,
					map[string]string{
						"apptainer": fakeApptainer,
						"curl":      "",
						"sh":        "",
						"ln":        "",
						"find":      "",
						"stat":      "",
					},
				)
				s.shell = argv
				s.ad(t, "MaxTransferOutputMB = 1")
				require.NoError(t, os.WriteFile(filepath.Join(s.dir, "big"), make([]byte, 2<<20), 0o600))
				require.NoError(t, os.WriteFile(filepath.Join(s.dir, "pass"), []byte("secret"), 0o600))
				code, _, stderr := s.run(t)
				require.Zero(t, code, stderr)
				require.Len(t, r.events, 1, stderr)
				told := r.events[0]["data"].(map[string]any)
				require.Equal(t, d.Tag.Name, told["name"])
				require.Equal(t, c.ends == 1, told["retcode"] != nil, told)
				require.NoFileExists(t, filepath.Join(s.dir, "pass"))
				require.NoDirExists(t, filepath.Join(s.dir, "pass"))
				for _, file := range c.left {
					require.FileExists(t, filepath.Join(s.dir, file))
				}
			})
		}
	}
}
