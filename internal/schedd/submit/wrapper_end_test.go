package submit

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/programtest"
)

// ad adds lines to the job's ad.
func (s scratch) ad(t *testing.T, lines ...string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(s.dir, ".job.ad"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(strings.Join(lines, "\n") + "\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// An end that HTCondor will not accept as one is not reported as such; the script's return code stays the job's.
func TestWrapperTellsOfNoEndWhenTheJobWillBeHeld(t *testing.T) {
	for name, c := range map[string]struct {
		ad       string
		source   string
		ends     int
		complain string
	}{
		"a named file is missing":                  {`TransferOutput = "made,plots/a"`, "echo >made", 0, "there is no plots/a"},
		"all are there":                            {`TransferOutput = "made,plots/a,plots/"`, "mkdir plots; echo >made; echo >plots/a", 1, ""},
		"none is named":                            {`TransferOutput = ""`, "", 1, ""},
		"one is missing, whatever the code":        {`TransferOutput = "made"`, "exit 3", 0, "there is no made"},
		"more than the site allows":                {`MaxTransferOutputMB = 1`, "head -c 600000 /dev/zero >a; head -c 600000 /dev/zero >.b", 0, "the site allows 1 MiB"},
		"just as much":                             {`MaxTransferOutputMB = 1`, "rm job.sub; head -c 1048576 /dev/zero >a", 1, ""},
		"more, but in a directory":                 {`MaxTransferOutputMB = 1`, "mkdir d; head -c 2000000 /dev/zero >d/a", 1, ""},
		"more, in a named directory":               {"MaxTransferOutputMB = 1\nTransferOutput = \"d\"", "mkdir -p d/e; head -c 2000000 /dev/zero >d/e/a", 0, "the site allows 1 MiB"},
		"more, behind a link":                      {`MaxTransferOutputMB = 1`, "mkdir d; head -c 2000000 /dev/zero >d/a; ln -s d/a a", 0, "the site allows 1 MiB"},
		"more, but not named":                      {"MaxTransferOutputMB = 1\nTransferOutput = \"a\"", "head -c 2000000 /dev/zero >b; echo >a", 1, ""},
		"more, on standard output":                 {"MaxTransferOutputMB = 1\nTransferOutput = \"a\"", "head -c 2000000 /dev/zero >_condor_stdout; echo >a", 0, "the site allows 1 MiB"},
		"more, in /tmp and HOME":                   {`MaxTransferOutputMB = 1`, "mkdir -p .htcd/work/tmp; head -c 2000000 /dev/zero >.htcd/work/tmp/a", 1, ""},
		"a name with blanks and line ends counts":  {`MaxTransferOutputMB = 1`, "head -c 2000000 /dev/zero >'a\n b'", 0, "the site allows 1 MiB"},
		"an ad that names no number says no limit": {`MaxTransferOutputMB = undefined`, "head -c 2000000 /dev/zero >a", 1, ""},
	} {
		for shell, argv := range shellsOf(t, name) {
			t.Run(name+" "+shell, func(t *testing.T) {
				t.Parallel()
				r := receive(t)
				s := node(
					t,
					r.description(c.source+"\n"),
					map[string]string{
						"apptainer": fakeApptainer,
						"curl":      "",
						"sh":        "",
						"head":      "",
						"ln":        "",
						"find":      "",
						"stat":      "",
						"readlink":  "",
					},
				)
				s.shell = argv
				s.ad(t, c.ad)
				code, _, stderr := s.run(t)
				want := 0
				if strings.Contains(c.source, "exit 3") {
					want = 3
				}
				require.Equal(t, want, code, stderr)
				require.Len(t, r.events, 1, stderr)
				told := r.events[0]["data"].(map[string]any)
				require.Equal(t, c.ends == 0, told["held"] == true && told["retcode"] == nil, told)
				require.Contains(t, stderr, c.complain)
			})
		}
	}
}

func TestWrapperTellsWhatAJobHasWrittenUnlessItHasSucceeded(t *testing.T) {
	const why = "Traceback:\n  File \"C:\\x\"\n\tin 'f'\n\nwhy"
	for name, c := range map[string]struct {
		ad, source string
		told       any
	}{
		"a success":                         {"OnExitHold = false", "exit 0", nil},
		"one that may be held for its code": {"OnExitHold = ExitCode =?= 0", "exit 0", why},
		"a failure":                         {"OnExitHold = false", "exit 3", why},
		"a file that is missing":            {`TransferOutput = "made"`, "exit 0", why},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := receive(t)
			s := node(
				t,
				r.description("cat >_condor_stderr <<'EOF'\n"+why+"\nEOF\n"+c.source+"\n"),
				map[string]string{"apptainer": fakeApptainer, "curl": "", "sh": "", "stat": "", "find": ""},
			)
			s.ad(t, c.ad)
			_, _, stderr := s.run(t)
			require.Len(t, r.events, 1, stderr)
			require.Equal(t, c.told, r.events[0]["data"].(map[string]any)["stderr"], stderr)
		})
	}
}

func TestWrapperShowsGPUsToAJobThatWasGivenSome(t *testing.T) {
	const given, taken = `AssignedGPUs = "CUDA0,GPU-1a2b"`, `Cpus = 1`
	for name, c := range map[string]struct {
		machine string // ad; "-": none
		env     []string
		want    bool
	}{
		"the machine's ad names some":           {given, nil, true},
		"it names none":                         {taken, []string{"_CONDOR_AssignedGPUs=10000", "CUDA_VISIBLE_DEVICES=10000"}, false},
		"it names none, and a site's word does": {taken, []string{"_CONDOR_AssignedGPUs=nothing", "CUDA_VISIBLE_DEVICES=0"}, false},
		"it is empty":                           {`AssignedGPUs = ""`, nil, false},
		"the environment names some":            {"-", []string{"_CONDOR_AssignedGPUs=CUDA1"}, true},
		"CUDA's own variable does":              {"-", []string{"CUDA_VISIBLE_DEVICES=0"}, true},
		"the environment names none":            {"-", []string{"_CONDOR_AssignedGPUs=10000"}, false},
		"nobody says anything":                  {"-", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := receive(t)
			s := node(t, r.description("exit 0\n"), map[string]string{"apptainer": fakeApptainer, "curl": "", "sh": ""})
			cmd := s.command()
			cmd.Env = append(cmd.Env, c.env...)
			if c.machine != "-" {
				ad := filepath.Join(s.dir, ".machine.ad")
				require.NoError(t, os.WriteFile(ad, []byte("Name = \"slot1\"\n"+c.machine+"\n"), 0o600))
				cmd.Env = append(cmd.Env, "_CONDOR_MACHINE_AD="+ad)
			}
			require.NoError(t, cmd.Run())
			arguments, err := os.ReadFile(filepath.Join(s.dir, "..", "arguments"))
			require.NoError(t, err)
			require.Equal(t, c.want, strings.Contains(string(arguments), "--nv\n"), string(arguments))
		})
	}
}

// The container's /tmp, /var/tmp and HOME are there.
func TestWrapperGivesTheContainerAPlaceThatGoesWithTheJob(t *testing.T) {
	for _, tool := range []string{"apptainer", "singularity"} {
		t.Run(tool, func(t *testing.T) {
			r := receive(t)
			s := node(
				t,
				r.description(
					"mkdir -p .htcd/work/home/d; echo >.htcd/work/home/d/f; chmod 500 .htcd/work/home/d .htcd/work/home\n",
				),
				map[string]string{tool: fakeApptainer, "curl": "", "sh": ""},
			)
			code, _, stderr := s.run(t)
			require.Equal(t, 0, code, stderr)
			require.Empty(t, stderr)
			environment, err := os.ReadFile(filepath.Join(s.dir, "..", "environment"))
			require.NoError(t, err)
			require.Contains(
				t,
				"\n"+string(environment),
				fmt.Sprintf("\n%s_WORKDIR=%s/.htcd/work\n", strings.ToUpper(tool), s.dir),
			)
			require.NoDirExists(t, filepath.Join(s.dir, ".htcd"))
		})
	}
}

// Only what htcd sent runs outside the container, whatever the script leaves under its names.
func TestTheScriptCannotReplaceWhatCallsBack(t *testing.T) {
	for shell, argv := range shells(t) {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			r := receive(t)
			evil := `printf '#!/bin/sh\necho evil >../evil\n' >evil; chmod 700 evil
[ ! -e htcd-send ] && [ ! -e /proc/self/fd/8 ] || exit 4
cp evil htcd-send; cp evil curl; cp evil job.sh; mkdir -p .htcd; cp evil .htcd/curl; echo evil >.curlrc; echo evil >token
`
			d := r.description(evil)
			d.Sender = filepath.Join(t.TempDir(), "sender")
			programtest.Write(t, d.Sender, "#!/bin/sh\ncat .htcd/token >>../called; exit 126\n")
			s := node(t, d, map[string]string{"apptainer": fakeApptainer, "curl": "", "sh": "", "cp": ""})
			s.shell = argv
			code, _, stderr := s.run(t)
			require.Equal(t, 0, code, stderr)
			called, err := os.ReadFile(filepath.Join(s.dir, "..", "called"))
			require.NoError(t, err)
			require.Equal(t, "tok-0123456789\n", string(called))
			require.NoFileExists(t, filepath.Join(s.dir, "..", "evil"))
			require.Len(t, r.events, 1)
			require.Equal(t, "Bearer tok-0123456789", r.heads[0].Get("Authorization"))
		})
	}
}

func TestWrapperFollowsNoRedirectWithTheToken(t *testing.T) {
	for _, client := range []string{"curl", "wget"} {
		for _, code := range []int{301, 302, 303, 307, 308} {
			t.Run(fmt.Sprint(client, " ", code), func(t *testing.T) {
				t.Parallel()
				var asked, elsewhere atomic.Int32
				other := httptest.NewServer(
					http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }),
				)
				t.Cleanup(other.Close)
				first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
					asked.Add(1)
					http.Redirect(w, q, other.URL, code)
				}))
				t.Cleanup(first.Close)
				d := (&receiver{Server: first}).description("exit 5")
				exit, _, stderr := node(
					t,
					d,
					map[string]string{"apptainer": fakeApptainer, client: "", "sh": ""},
				).run(t)
				require.Equal(t, 5, exit, stderr)
				require.EqualValues(t, 1, asked.Load(), "asking again would change nothing")
				require.Zero(t, elsewhere.Load())
				require.Contains(t, stderr, fmt.Sprintf("the receiver refused the callback with %d", code))
			})
		}
	}
}

// The authority that came along is the only one that counts.
func TestWrapperTrustsTheAuthorityThatCameAlong(t *testing.T) {
	for _, client := range []string{"curl", "wget"} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			var posted atomic.Int32
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				posted.Add(1)
				w.WriteHeader(http.StatusNoContent)
			}))
			t.Cleanup(server.Close)
			for _, ca := range []string{string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})), ""} {
				d := (&receiver{Server: server}).description("exit 5")
				d.CallbackCA, d.CallbackDeadline = ca, 2*time.Second
				exit, _, stderr := node(
					t,
					d,
					map[string]string{"apptainer": fakeApptainer, client: "", "sh": ""},
				).run(t)
				require.Equal(t, 5, exit, stderr)
				require.EqualValues(t, 1, posted.Load(), stderr)
			}
		})
	}
}
