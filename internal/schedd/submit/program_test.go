package submit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

func TestAnExecutableRunsWithItsArgumentsAlone(t *testing.T) {
	const own, elsewhere = "#!/bin/sh\necho \"$0\" \"$@\"; ls\n", "#!/bin/sh\necho \"$0\" \"$@\"\n"
	image := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(image, []byte(elsewhere), 0o755)) // #nosec G306 -- it is to be run
	for name, c := range map[string]struct {
		executable string
		args       []string
		stdout     string
	}{
		"an input":                    {"simulate", nil, "DIR/simulate\njob.sub\nsimulate\ntools\n"},
		"with arguments":              {"simulate", []string{"{{proc}}", "it's"}, "DIR/simulate 2 it's\njob.sub\nsimulate\ntools\n"},
		"one in a directory":          {"tools/run", []string{"x"}, "DIR/tools/run x\njob.sub\nsimulate\ntools\n"},
		"a program of the image":      {image, nil, image + "\n"},
		"that program with arguments": {image, []string{"a b"}, image + " a b\n"},
	} {
		for shell, argv := range shells(t) {
			t.Run(name+" "+shell, func(t *testing.T) {
				t.Parallel()
				d := description()
				d.Command, d.Source, d.Executable, d.Args = "", "", c.executable, c.args
				s := node(t, d, map[string]string{"apptainer": seeingApptainer, "sh": "", "ls": ""})
				require.NoError(t, os.Mkdir(filepath.Join(s.dir, "tools"), 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(s.dir, "tools/run"), []byte(own), 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(s.dir, "simulate"), []byte(own), 0o600))
				s.shell = argv
				code, stdout, stderr := s.run(t)
				require.Equal(t, 0, code, stderr)
				require.Equal(t, c.stdout, strings.ReplaceAll(stdout, filepath.Join(s.dir, ".htcd/job"), "DIR"))
			})
		}
	}
}

func TestALinkIsNotMadeExecutable(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "other")
	require.NoError(t, os.WriteFile(outside, []byte("#!/bin/sh\n"), 0o600))
	d := description()
	d.Command, d.Source, d.Executable = "", "", "simulate"
	s := node(t, d, map[string]string{"apptainer": seeingApptainer, "sh": ""})
	require.NoError(t, os.Symlink(outside, filepath.Join(s.dir, "simulate")))
	code, _, _ := s.run(t)
	require.Equal(t, 126, code)
	info, err := os.Stat(outside)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
}

func TestExecutablesThatCannotRunAreRefused(t *testing.T) {
	for executable, words := range map[string]string{
		"simulate -x": "expected the name of an input, or an absolute path",
		"../simulate": "expected the name of an input",
		"a/../b":      "expected the name of an input",
		"$(X)":        "expected the name of an input",
		"/":           "expected the name of an input",
		"-x":          "expected the name of an input",
	} {
		d := description()
		d.Command, d.Source, d.Executable = "", "", executable
		_, err := d.Render()
		require.Equal(t, condor.Refused, condor.KindOf(err), executable)
		require.ErrorContains(t, err, words)
	}
	d := description()
	d.Executable = "/bin/true"
	_, err := d.Render()
	require.ErrorContains(t, err, "spec.script.executable: found command or source, too")
}
