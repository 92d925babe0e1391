package submit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheScriptSeesWhatHTCondorGivesIt(t *testing.T) {
	for shell, argv := range shells(t) {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			r := receive(t)
			d := r.description(`ls -A; cat .machine.ad input/file user.cc
for f in .job.ad .machine.ad user.cc; do rm -f "$f"; ln -s /etc/passwd "$f"; done
[ ! -e .condor_creds/x.use ] || exit 4
echo changed >input/file; echo made >made; ln -s input/file link; echo forged >_condor_stdout
`)
			s := node(
				t,
				d,
				map[string]string{
					"apptainer": fakeApptainer,
					"curl":      "",
					"sh":        "",
					"ls":        "",
					"ln":        "",
					"find":      "",
					"readlink":  "",
				},
			)
			s.shell = argv
			write := func(name, text string) {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(s.dir, name)), 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600))
			}
			write(".machine.ad", "Memory = 7\n")
			write(".update.ad.tmp", "HTCondor is about to rename it\n")
			write("input/file", "input\n")
			write("user.cc", "ticket\n")
			write("_condor_stdout", "printed\n")
			write(".condor_creds/x.use", "of the account\n")
			write("tmp/own", "a directory of the user's\n")
			cmd := s.command()
			cmd.Env = append(cmd.Env, "KRB5CCNAME=FILE:"+s.dir+"/user.cc")
			var stderr strings.Builder
			cmd.Stderr = &stderr
			stdout, err := cmd.Output()
			require.NoError(t, err, stderr.String())
			require.Empty(t, stderr.String())
			names, _, _ := strings.Cut(string(stdout), "Memory")
			require.ElementsMatch(
				t,
				[]string{".condor_creds", ".job.ad", ".machine.ad", "input", "job.sub", "script", "tmp", "user.cc"},
				strings.Fields(names),
			)
			require.True(t, strings.HasSuffix(string(stdout), "Memory = 7\ninput\nticket\n"), string(stdout))
			arguments, err := os.ReadFile(filepath.Join(s.dir, "..", "arguments"))
			require.NoError(t, err)
			require.Contains(t, string(arguments), s.dir+"/.condor_creds:"+s.dir+"/.condor_creds:ro\n")
			for name, text := range map[string]string{".machine.ad": "Memory = 7\n",
				".update.ad.tmp": "HTCondor is about to rename it\n", "input/file": "changed\n", "link": "changed\n", "made": "made\n", "user.cc": "ticket\n",
				"_condor_stdout": "printed\n", ".condor_creds/x.use": "of the account\n", "tmp/own": "a directory of the user's\n", "script": d.Source} {
				is, err := os.ReadFile(filepath.Join(s.dir, name))
				require.NoError(t, err)
				require.Equal(t, text, string(is), name)
			}
		})
	}
}

// The script may leave nothing that its owner may not read or change, however deep.
func TestLockedDirectoriesAreBroughtBack(t *testing.T) {
	r := receive(t)
	d := r.description(
		"mkdir -p d/e/f; echo deep >d/e/f/g; chmod 500 d/e/f d/e; chmod 000 d; ln -s d/e/f/g link; chmod 500 .\n",
	)
	s := node(
		t,
		d,
		map[string]string{"apptainer": fakeApptainer, "curl": "", "sh": "", "ln": "", "find": "", "readlink": ""},
	)
	code, _, stderr := s.run(t)
	require.Equal(t, 0, code, stderr)
	text, err := os.ReadFile(filepath.Join(s.dir, "link"))
	require.NoError(t, err)
	require.Equal(t, "deep\n", string(text))
}
