package submit

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

func TestTheScriptStartsWhereTheJobSays(t *testing.T) {
	r := receive(t)
	d := r.description("exit 0\n")
	d.Workdir, d.WritableRoot = "/opt/model", true
	s := node(t, d, map[string]string{"apptainer": fakeApptainer, "curl": "", "sh": ""})
	code, _, stderr := s.run(t)
	require.Equal(t, 0, code, stderr)
	arguments, err := os.ReadFile(filepath.Join(s.dir, "..", "arguments"))
	require.NoError(t, err)
	require.Contains(t, string(arguments), "--pwd\n/opt/model\n--writable-tmpfs\n")
	environment, err := os.ReadFile(filepath.Join(s.dir, "..", "environment"))
	require.NoError(t, err)
	require.Contains(t, string(environment), "APPTAINERENV_outpath="+s.dir+"\n")
}

func TestDirectoriesThatAreDroppedAreTold(t *testing.T) {
	const told = "htcd: directories are brought back only if spec.outputs names them, and these are dropped:"
	for shell, argv := range shells(t) {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			r := receive(t)
			d := r.description("mkdir logs plots 'a b' .hidden; echo x >logs/x; echo y >file; ln -s logs link\n")
			run := func(d Description) string {
				s := node(t, d, map[string]string{
					"apptainer": fakeApptainer, "curl": "", "sh": "", "ln": "", "find": "", "readlink": "",
				})
				s.shell = argv
				require.NoError(t, os.Mkdir(filepath.Join(s.dir, "came"), 0o700))
				code, _, stderr := s.run(t)
				require.Equal(t, 0, code, stderr)
				return stderr
			}
			require.Equal(t, told+" logs plots\n", run(d))
			d.Outputs = []Output{{Path: "logs"}, {Path: "plots"}}
			require.NotContains(t, run(d), told)
			d.Outputs, d.Source = nil, "i=0; while [ $i -lt 200 ]; do set -- \"$@\" d$i; i=$((i+1)); done; shift; mkdir \"$@\"\n"
			stderr := run(d)
			require.True(t, strings.HasSuffix(stderr, " and others\n"), stderr)
			require.Less(t, len(stderr), 700)
		})
	}
}

// full is a program on a full disk: it leaves the beginning.
const full = `#!/bin/sh
for to; do :; done
[ ! -d "$to" ] || echo 'echo begins' >"$to/script"
echo "$0: No space left on device" >&2
exit 1
`

func TestAScriptThatIsThereInPartDoesNotRun(t *testing.T) {
	for name, c := range map[string]struct {
		program string
		part    *Part
	}{
		"the script":    {"cp", nil},
		"the variables": {"cat", &Part{Source: "echo before"}},
	} {
		for shell, argv := range shells(t) {
			if shell == "busybox" {
				continue // has them built in
			}
			t.Run(name+"/"+shell, func(t *testing.T) {
				to := receive(t)
				d := to.description("echo begins\nexit 3\n")
				d.Before, d.Environment = c.part, map[string]string{"A": "b"}
				d.Outputs = []Output{{Path: "made"}}
				s := node(t, d, map[string]string{"apptainer": fakeApptainer, "sh": "", "curl": "", c.program: full})
				s.shell = argv
				code, out, errs := s.run(t)
				require.Equal(t, 125, code)
				require.Empty(t, out)
				require.Contains(t, errs, "could not be copied on this node: the script was not run")
				require.Empty(t, to.events)
				require.DirExists(t, filepath.Join(s.dir, ".htcd-out"), "HTCondor would hold a job without it")
				require.NoDirExists(t, filepath.Join(s.dir, ".htcd"), "with the variables")
			})
		}
	}
}

func TestALineOfHTCdsOwnBeginsOne(t *testing.T) {
	for written, says := range map[string]string{
		"":           "htcd: directories",
		"done\n":     "htcd: directories",
		"done":       "\nhtcd: directories",
		"done\x00":   "\nhtcd: directories",
		"a\n\nb\\n ": "\nhtcd: directories",
	} {
		for shell, argv := range shells(t) {
			t.Run(strconv.Quote(written)+"/"+shell, func(t *testing.T) {
				s := node(t, receive(t).description("mkdir left\n"), map[string]string{
					"apptainer": fakeApptainer, "sh": "", "curl": "",
				})
				s.shell = argv
				require.NoError(t, os.WriteFile(filepath.Join(s.dir, condor.Stderr), []byte(written), 0o600))
				_, _, errs := s.run(t)
				require.True(t, strings.HasPrefix(errs, says), errs)
				text, err := os.ReadFile(filepath.Join(s.dir, condor.Stderr))
				require.NoError(t, err)
				require.Equal(t, written, string(text))
			})
		}
	}
}
