package submit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/programtest"
)

// posts is a curl or a wget that notes when it is done.
const posts = `#!/bin/sh
env >>"$_CONDOR_SCRATCH_DIR/../called"
echo "$*" >>"$_CONDOR_SCRATCH_DIR/../called"
PATH=/usr/local/bin:/usr/bin:/bin "${0##*/}" "$@"
code=$?
: >"$_CONDOR_SCRATCH_DIR/../posted"
exit "$code"
`

// untilPosted is a script that ends once its start is told.
const untilPosted = "until [ -f ../../../posted ]; do sleep 0.05; done\nexit 42\n"

func TestAJobTellsItsStartOnceWhileItsScriptRuns(t *testing.T) {
	for shell, argv := range shells(t) {
		for _, client := range []string{"curl", "wget"} {
			t.Run(shell+" "+client, func(t *testing.T) {
				t.Parallel()
				r := receive(t, 503)
				d := r.description(untilPosted)
				d.CallbackStart = true
				s := node(t, d, map[string]string{"apptainer": fakeApptainer, client: posts, "sh": ""})
				s.shell = argv
				code, stdout, stderr := s.run(t)
				require.Equal(t, 42, code, stderr)
				require.Empty(t, stdout+stderr, "that nobody could take it is not said")
				require.Len(t, r.events, 2, "it is not sent again")
				require.Equal(t, "ch.cern.htc.job.started", r.events[0]["type"])
				require.Equal(
					t,
					map[string]any{"name": "zero", "namespace": "default", "jobid": "77.2", "started": true},
					r.events[0]["data"],
				)
				require.Equal(t, "Bearer tok-0123456789", r.heads[0].Get("Authorization"))
				require.Equal(t, "ch.cern.htc.job.ended", r.events[1]["type"])
				require.NotEqual(t, r.events[0]["id"], r.events[1]["id"])
				called, err := os.ReadFile(filepath.Join(s.dir, "../called"))
				require.NoError(t, err)
				require.NotContains(t, string(called), "tok-0123456789")
				require.NoDirExists(t, filepath.Join(s.dir, ".htcd"))
			})
		}
	}
}

func TestTheSenderThatCameAlongTellsTheStart(t *testing.T) {
	r := receive(t)
	d := r.description(untilPosted)
	d.CallbackStart, d.Sender = true, filepath.Join(t.TempDir(), "sender")
	programtest.Write(t, d.Sender, "#!/bin/sh\necho \"$*\" >>../called\n: >../posted\n")
	code, _, stderr := node(t, d, map[string]string{"apptainer": fakeApptainer, "curl": "", "sh": ""}).run(t)
	require.Equal(t, 42, code, stderr)
}

func TestAStartThatHangsHoldsNothingUp(t *testing.T) {
	d := description()
	d.CallbackStart, d.CallbackURL, d.Command = true, "http://127.0.0.1:1/", "sh"
	d.Source = "until [ -f ../../../posted ]; do sleep 0.05; done\nexit 0\n"
	s := node(
		t,
		d,
		map[string]string{
			"apptainer": fakeApptainer,
			"curl":      "#!/bin/sh\ncase $* in *started*) : >../posted; exec sleep 60 ;; esac\nprintf 204\n",
			"sh":        "",
		},
	)
	code, _, stderr := s.run(t)
	require.Equal(t, 0, code, stderr)
	require.Empty(t, strings.TrimSpace(stderr))
}

func TestAJobThatIsOverWithinASecondTellsItsEndAlone(t *testing.T) {
	d := description()
	d.CallbackStart, d.CallbackURL, d.Command, d.Source = true, "http://127.0.0.1:1/", "sh", "exit 42\n"
	s := node(t, d, map[string]string{
		"apptainer": fakeApptainer, "sh": "",
		// The second is over while the end is told.
		"sleep": "#!/bin/sh\nuntil [ -e .htcd/over ]; do /bin/sleep 0.05; done\n: >../woke\n",
		"curl":  "#!/bin/sh\necho \"$*\" >>../called\nuntil [ -e ../woke ]; do /bin/sleep 0.05; done\nprintf 204\n",
	})
	code, _, stderr := s.run(t)
	require.Equal(t, 42, code, stderr)
	called, err := os.ReadFile(filepath.Join(s.dir, "../called"))
	require.NoError(t, err)
	require.NotContains(t, string(called), "started")
}
