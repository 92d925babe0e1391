package submit

import (
	"encoding/json"
	"hash/fnv"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/programtest"
)

// A scratch is a job's directory on a node, with its own PATH.
type scratch struct {
	dir, bin string
	shell    []string
}

// fakeApptainer shows its arguments and runs the rest as apptainer would, with no container: the script's directory has
// another path.
const fakeApptainer = `#!/bin/sh
printf '%s\n' "$@" >"$_CONDOR_SCRATCH_DIR/../arguments"
env >"$_CONDOR_SCRATCH_DIR/../environment"
` + enterFake + `
exec "$@"
`

// enterFake leaves the script and its arguments to run in its directory.
const enterFake = `while :; do
	case $1 in
	--quiet | exec | --contain | --ipc | --pid | --nv | --writable-tmpfs) shift ;;
	--env) export "$2"; shift 2 ;;
	--bind)
		case $2 in
		*:"$_CONDOR_SCRATCH_DIR") cd "${2%:*}" || exit 99 ;;
		esac
		shift 2
		;;
	--pwd) shift 2 ;;
	*) break ;;
	esac
done
shift
for argument; do
	shift
	case $argument in
	"$_CONDOR_SCRATCH_DIR"/.htcd/*) ;;
	"$_CONDOR_SCRATCH_DIR"/*) argument=$PWD/${argument#"$_CONDOR_SCRATCH_DIR"/} ;;
	esac
	set -- "$@" "$argument"
done
`

// shells returns those that a node may have as /bin/sh, each once.
func shells(t *testing.T) map[string][]string {
	m := map[string][]string{}
	for _, s := range []string{"sh", "dash", "bash", "busybox"} {
		if p, err := exec.LookPath(s); err == nil {
			p, err = filepath.EvalSymlinks(p)
			require.NoError(t, err)
			m[filepath.Base(p)] = []string{p}
		}
	}
	if b := m["busybox"]; b != nil {
		m["busybox"] = append(b, "sh")
	}
	return m
}

// shellsOf returns the shells in which one case of a table runs: the one that the case's name chooses, and with
// TEST_ALL, which make test-all sets, each.
func shellsOf(t *testing.T, name string) map[string][]string {
	all := shells(t)
	if os.Getenv("TEST_ALL") != "" {
		return all
	}
	names := slices.Sorted(maps.Keys(all))
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	one := names[h.Sum32()%uint32(len(names))]
	return map[string][]string{one: all[one]}
}

// node makes a scratch directory with the sandbox of d and the named tools.
func node(t *testing.T, d Description, tools map[string]string) scratch {
	t.Helper()
	root := t.TempDir()
	s := scratch{dir: filepath.Join(root, "dir"), bin: filepath.Join(root, "bin"), shell: []string{"/bin/sh"}}
	require.NoError(t, os.Mkdir(s.dir, 0o700))
	require.NoError(t, os.Mkdir(s.bin, 0o700))
	require.NoError(t, stageIn(s.dir, d, "tok-0123456789"))
	require.NoError(
		t,
		os.WriteFile(
			filepath.Join(s.dir, ".job.ad"),
			[]byte("Args = \"2\"\nClusterId = 77\nEnv = \"ClusterId = 5\"\nProcId = 2\n"),
			0o600,
		),
	)
	for _, tool := range []string{"date", "sed", "tail", "grep", "mkdir", "rm", "chmod", "sleep", "env", "cat", "mv", "base64", "cp", "tr"} {
		path, err := exec.LookPath(tool)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(path, filepath.Join(s.bin, tool)))
	}
	for name, text := range tools {
		_ = os.Remove(filepath.Join(s.bin, name))
		if text == "" {
			path, err := exec.LookPath(name)
			require.NoError(t, err)
			require.NoError(t, os.Symlink(path, filepath.Join(s.bin, name)))
			continue
		}
		programtest.Write(t, filepath.Join(s.bin, name), text)
	}
	return s
}

func (s scratch) command() *exec.Cmd {
	cmd := exec.Command(s.shell[0], append(s.shell[1:], "./job.sh", "2")...)
	cmd.Dir = s.dir
	cmd.Env = []string{
		"PATH=" + s.bin,
		"_CONDOR_SCRATCH_DIR=" + s.dir,
		"_CONDOR_JOB_AD=" + filepath.Join(s.dir, ".job.ad"),
	}
	return cmd
}

// run runs the wrapper and returns its exit code and output.
func (s scratch) run(t *testing.T) (code int, stdout, stderr string) {
	t.Helper()
	cmd := s.command()
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, exited := err.(*exec.ExitError); !exited {
		require.NoError(t, err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// receiver collects callbacks and answers them with the codes given, then with 204.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	events []map[string]any
	heads  []http.Header
}

func receive(t *testing.T, codes ...int) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		var e map[string]any
		if err != nil || json.Unmarshal(body, &e) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.events, r.heads = append(r.events, e), append(r.heads, q.Header)
		code := http.StatusNoContent
		if len(codes) > 0 {
			code, codes = codes[0], codes[1:]
		}
		w.WriteHeader(code)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) description(source string) Description {
	d := description()
	d.Source, d.Command, d.CallbackURL, d.CallbackDeadline = source, "sh", r.URL+"/cloudevents", 20*time.Second
	return d
}

func TestWrapper(t *testing.T) {
	for shell, argv := range shells(t) {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			r := receive(t)
			d := r.description("echo number $1 $HTCPROCID; ls -A; exit 42\n")
			d.Binds = []string{"/usr", "/does/not/exist"}
			s := node(t, d, map[string]string{"apptainer": fakeApptainer, "curl": "", "sh": "", "ls": ""})
			s.shell = argv
			code, stdout, stderr := s.run(t)
			require.Equal(t, 42, code, stderr)
			require.Empty(t, stderr)
			require.Contains(t, stdout, "number 2 2\n")
			require.NotContains(t, stdout, "token", "the script does not see the token")

			arguments, err := os.ReadFile(filepath.Join(s.dir, "..", "arguments"))
			require.NoError(t, err)
			require.Equal(
				t,
				strings.Join(
					[]string{
						"--quiet",
						"exec",
						"--contain",
						"--ipc",
						"--pid",
						"--bind",
						s.dir + "/.htcd/job:" + s.dir,
						"--pwd",
						s.dir,
						"--bind",
						"/usr",
						"--env",
						"HTCPROCID=2",
						"docker://centos",
						"sh",
						s.dir + "/script",
						"2",
					},
					"\n",
				)+"\n",
				string(arguments),
			)
			environment, err := os.ReadFile(filepath.Join(s.dir, "..", "environment"))
			require.NoError(t, err)
			require.NotContains(t, string(environment), "tok-0123456789")

			require.Len(t, r.events, 1)
			e := r.events[0]
			require.Regexp(t, `^77\.2-\d+-\d+$`, e["id"])
			delete(e, "id")
			require.Equal(t, map[string]any{
				"specversion":     "1.0",
				"source":          "/htcd/job/77.2",
				"type":            "ch.cern.htc.job.ended",
				"datacontenttype": "application/json",
				"data": map[string]any{
					"name":      "zero",
					"namespace": "default",
					"jobid":     "77.2",
					"retcode":   42.0,
				},
			}, e)
			require.Equal(t, "Bearer tok-0123456789", r.heads[0].Get("Authorization"))
			require.Equal(t, "application/cloudevents+json", r.heads[0].Get("Content-Type"))

			for _, gone := range []string{"token", ".htcd"} {
				require.NoFileExists(t, filepath.Join(s.dir, gone))
				require.NoDirExists(t, filepath.Join(s.dir, gone))
			}
		})
	}
}

// A value reaches the container unchanged, and nothing outside under the name it has there.
func TestWrapperHandsTheEnvironmentToTheContainerAlone(t *testing.T) {
	for _, tool := range []string{"apptainer", "singularity"} {
		for shell, argv := range shellsOf(t, tool) {
			t.Run(shell+" "+tool, func(t *testing.T) {
				t.Parallel()
				r := receive(t)
				d := r.description("ls -A\n")
				d.Environment = map[string]string{
					"LD_PRELOAD": "/evil.so",
					"PATH":       "/nowhere",
					"IFS":        "x",
					"ENV":        "$(touch ran)",
					"EMPTY":      "",
					"_":          "a",
					"prefix":     "p",
					"line":       "l",
					"tool":       "t",
					"ODD":        "  $HOME `id` \"q\" 'a' \\ \\n %s ä😀 x=1  ",
				}
				d.Queue = 3
				d.Items = []string{
					"OTHER=1\n",
					"OTHER=1\n",
					"PATH=/nowhere\nPOINT=" + d.Environment["ODD"] + "\nTWICE=item\n",
				}
				d.Environment["TWICE"], d.Traceparent = "environment", "00-of-htcd-01"
				s := node(t, d, map[string]string{tool: fakeApptainer, "curl": spy, "sh": "", "ls": ""})
				s.shell = argv
				code, stdout, stderr := s.run(t)
				require.Equal(t, 0, code, stderr)
				require.Empty(t, stderr)
				require.NotContains(t, stdout, ".environment", "it is gone before the script begins")
				require.NotContains(t, stdout, ".own-2")
				d.Environment["TWICE"], d.Environment["POINT"] = "item", d.Environment["ODD"]
				text, err := os.ReadFile(filepath.Join(s.dir, "..", "environment"))
				require.NoError(t, err)
				for name, value := range d.Environment {
					require.Contains(t, "\n"+string(text), "\n"+strings.ToUpper(tool)+"ENV_"+name+"="+value+"\n")
				}
				require.Contains(t, string(text), strings.ToUpper(tool)+"_NO_EVAL=1\n")
				require.Contains(t, string(text), strings.ToUpper(tool)+"ENV_TRACEPARENT=00-of-htcd-01\n")
				require.NotContains(t, "\n"+string(text), "\nLD_PRELOAD=")
				require.NotContains(t, string(text), "OTHER=", "another job's")
				called, err := os.ReadFile(filepath.Join(s.dir, "..", "called"))
				require.NoError(t, err)
				require.NotContains(t, string(called), "evil", "what calls back does not see it")
				require.NoFileExists(t, filepath.Join(s.dir, "ran"))
			})
		}
	}
}

// spy replaces curl or wget and records how it was called.
const spy = `#!/bin/sh
echo "$0 $*" >>"$_CONDOR_SCRATCH_DIR/../called"
env >>"$_CONDOR_SCRATCH_DIR/../called"
PATH=/usr/local/bin:/usr/bin:/bin exec "${0##*/}" "$@"
`

func TestWrapperKeepsTheTokenOutOfArgumentsAndEnvironment(t *testing.T) {
	for _, client := range []string{"curl", "wget"} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			r := receive(t, 503, 404)
			s := node(t, r.description("exit 3"), map[string]string{"apptainer": fakeApptainer, client: spy, "sh": ""})
			code, _, stderr := s.run(t)
			require.Equal(t, 3, code, stderr)
			require.Len(
				t,
				r.events,
				3,
				"it is sent again while htcd cannot take it, and while it does not know the job yet",
			)
			require.Equal(t, r.events[0]["id"], r.events[2]["id"], "as the same event")
			require.Equal(t, "Bearer tok-0123456789", r.heads[2].Get("Authorization"))
			called, err := os.ReadFile(filepath.Join(s.dir, "..", "called"))
			require.NoError(t, err)
			require.Contains(t, string(called), client)
			require.NotContains(t, string(called), "tok-0123456789")
		})
	}
}

func TestWrapperEndsWithTheScriptsCodeWhateverTheCallbackDid(t *testing.T) {
	for name, c := range map[string]struct {
		tools    map[string]string
		codes    []int
		change   func(*Description)
		code     int
		events   int
		complain string
	}{
		"refused for good":          {map[string]string{"curl": ""}, []int{403}, nil, 5, 1, "the receiver refused the callback with 403"},
		"refused for good, by wget": {map[string]string{"wget": ""}, []int{401}, nil, 5, 1, "the receiver refused the callback with 401"},
		"never heard": {map[string]string{"curl": ""}, nil, func(d *Description) {
			d.CallbackURL, d.CallbackDeadline = "http://127.0.0.1:1/", 2*time.Second
		}, 5, 0, "the callback was not delivered"},
		"never heard, by wget": {map[string]string{"wget": ""}, nil, func(d *Description) {
			d.CallbackURL, d.CallbackDeadline = "http://127.0.0.1:1/", 2*time.Second
		}, 5, 0, "the callback was not delivered"},
		"neither curl nor wget":    {nil, nil, nil, 5, 0, "neither curl nor GNU wget"},
		"a wget that is busybox's": {map[string]string{"wget": "#!/bin/sh\necho 'wget: unrecognized option' >&2; exit 1\n"}, nil, nil, 5, 0, "neither curl nor GNU wget"},
		"a node without a clock":   {map[string]string{"date": "#!/bin/sh\nexit 1\n", "sleep": "#!/bin/sh\nexit 0\n"}, nil, nil, 5, 0, "neither curl nor GNU wget"},
		"a node without a clock, where nobody hears": {map[string]string{"date": "#!/bin/sh\nexit 1\n", "sleep": "#!/bin/sh\nexit 0\n", "curl": ""}, nil, func(d *Description) {
			d.CallbackURL = "http://127.0.0.1:1/"
		}, 5, 0, "the callback was not delivered"},
		"nobody wants to be called": {nil, nil, func(d *Description) { d.CallbackURL = "" }, 5, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := receive(t, c.codes...)
			d := r.description("exit 5")
			if c.change != nil {
				c.change(&d)
			}
			tools := map[string]string{"apptainer": fakeApptainer, "sh": ""}
			for k, v := range c.tools {
				tools[k] = v
			}
			code, _, stderr := node(t, d, tools).run(t)
			require.Equal(t, c.code, code, stderr)
			require.Len(t, r.events, c.events)
			require.Contains(t, stderr, c.complain)
			require.NotContains(t, stderr, "tok-0123456789")
		})
	}
}

func TestWrapperWithoutAContainerToolSaysSo(t *testing.T) {
	r := receive(t)
	code, stdout, stderr := node(t, r.description("echo ran"), map[string]string{"curl": ""}).run(t)
	require.Equal(t, 127, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "this node has neither apptainer nor singularity")
	require.Len(t, r.events, 1)
	require.Equal(t, 127.0, r.events[0]["data"].(map[string]any)["retcode"])
}

func TestWrapperTakesSingularityWhereThereIsNoApptainer(t *testing.T) {
	r := receive(t)
	code, stdout, stderr := node(
		t,
		r.description("echo ran"),
		map[string]string{"singularity": fakeApptainer, "curl": "", "sh": ""},
	).run(
		t,
	)
	require.Equal(t, 0, code, stderr)
	require.Equal(t, "ran\n", stdout)
	require.Len(t, r.events, 1)
}

func TestWrapperPassesWordsOnAsTheyAre(t *testing.T) {
	r := receive(t)
	d := r.description("unused")
	d.Command = `echo it's "$(id)" ; * && $HOME \n`
	code, stdout, stderr := node(t, d, map[string]string{"apptainer": fakeApptainer, "curl": "", "echo": ""}).run(t)
	require.Equal(t, 0, code, stderr)
	require.True(t, strings.HasPrefix(stdout, `it's "$(id)" ; * && $HOME \n /`), stdout)
}

func TestWrapperLeavesCoreFilesBehind(t *testing.T) {
	r := receive(t)
	d := r.description(
		`printf '\177ELF\002\001\001\000\000\000\000\000\000\000\000\000\004\000>\000rest' > core.77; cp core.77 core; cp core.77 data
printf '\177ELF\002\001\001\000\000\000\000\000\000\000\000\000\002\000>\000rest' > core.78; echo mine > core.79
exit 139
`,
	)
	s := node(t, d, map[string]string{"apptainer": fakeApptainer, "curl": "", "sh": "", "cp": "", "od": ""})
	code, _, stderr := s.run(t)
	require.Equal(t, 139, code)
	require.Contains(t, stderr, "core.77 is a core file and is not brought back")
	for name, there := range map[string]bool{"core": false, "core.77": false, "core.78": true, "core.79": true, "data": true} {
		_, err := os.Stat(filepath.Join(s.dir, name))
		require.Equal(t, there, err == nil, name)
	}
}

func TestWrapperGivesOtherNamesToFilesThatHTCondorCannotBringBack(t *testing.T) {
	odd := []string{"a,b", "two\nlines", " first", "last ", ".x,y", "$$(Y)", "$$[1]"}
	fine := []string{"a b", "it's", "$(HOME)", "-rf", "größe"}
	for name, shell := range shells(t) {
		t.Run(name, func(t *testing.T) {
			r := receive(t)
			s := node(
				t,
				r.description("exit 0"),
				map[string]string{"apptainer": fakeApptainer, "curl": "", "sh": "", "mv": ""},
			)
			s.shell = shell
			for _, file := range append(odd, fine...) {
				require.NoError(t, os.WriteFile(filepath.Join(s.dir, file), []byte(file), 0o600))
			}
			code, _, stderr := s.run(t)
			require.Equal(t, 0, code, stderr)
			list, err := os.ReadFile(filepath.Join(s.dir, ".htcd-names"))
			require.NoError(t, err)
			names := strings.Split(strings.TrimSuffix(string(list), "\x00"), "\x00")
			require.ElementsMatch(t, odd, names)
			for i, name := range names {
				text, err := os.ReadFile(filepath.Join(s.dir, ".htcd-name-"+strconv.Itoa(i)))
				require.NoError(t, err)
				require.Equal(t, name, string(text))
				require.NoFileExists(t, filepath.Join(s.dir, name))
			}
			for _, name := range fine {
				require.FileExists(t, filepath.Join(s.dir, name))
			}
		})
	}
}

func TestWrapperUsesTheSenderThatCameAlong(t *testing.T) {
	for name, c := range map[string]struct {
		sender string
		events int
	}{
		"one that delivers":              {"#!/bin/sh\necho \"$*\" >../called; cat .htcd/token >>../called\n", 0},
		"one that gives up":              {"#!/bin/sh\necho \"$*\" >../called; cat .htcd/token >>../called; exit 1\n", 0},
		"one that cannot run: curl does": {"#!/bin/sh\necho \"$*\" >../called; cat .htcd/token >>../called; exit 126\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := receive(t)
			d := r.description("exit 9")
			d.Sender = filepath.Join(t.TempDir(), "sender")
			programtest.Write(t, d.Sender, c.sender)
			s := node(t, d, map[string]string{"apptainer": fakeApptainer, "curl": "", "sh": ""})
			code, _, stderr := s.run(t)
			require.Equal(t, 9, code, stderr)
			require.Len(t, r.events, c.events)
			called, err := os.ReadFile(filepath.Join(s.dir, "..", "called"))
			require.NoError(t, err)
			require.Equal(
				t,
				"send --name zero --namespace default --jobid 77.2 --retcode 9 --url "+d.CallbackURL+" --token-file .htcd/token --deadline 20s --stderr-file .htcd/stderr\ntok-0123456789\n",
				string(called),
			)
		})
	}
}

func TestWrapperThatIsToldToEndEndsTheScriptAndDoesNotCallBack(t *testing.T) {
	for shell, argv := range shells(t) {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			r := receive(t)
			s := node(t, r.description("trap 'echo asked; exit 7' TERM; echo started; while :; do sleep 0.01; done"),
				map[string]string{"apptainer": fakeApptainer, "curl": "", "sh": ""})
			s.shell = argv
			require.Equal(t, "asked\n", s.toldToEnd(t, 7))
			require.Empty(t, r.events)
		})
	}
}

// deafApptainer loses signals while it sets its container up, for longer than the script then needs to be told, and
// never passes any on.
const deafApptainer = `#!/bin/sh
trap 'echo lost' TERM
echo started
end=$(($(date +%s) + 3))
until [ "$(date +%s)" -ge "$end" ]; do sleep 0.2; done
sh -c 'trap "echo lost" TERM
HTCPROCID=2 sleep 1000 &
script=$!
while kill -0 $script 2>/dev/null; do wait $script; code=$?; done
exit $code' &
init=$!
while kill -0 $init 2>/dev/null; do wait $init; code=$?; done
exit $code
`

func TestWrapperThatIsToldToEndWhileTheContainerIsSetUpEndsTheScript(t *testing.T) {
	for shell, argv := range shells(t) {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			r := receive(t)
			s := node(t, r.description(""), map[string]string{"apptainer": deafApptainer, "curl": "", "sh": ""})
			s.shell = argv
			require.Regexp(t, `^(lost\n)+$`, s.toldToEnd(t, 128+int(syscall.SIGTERM)))
			require.Empty(t, r.events)
		})
	}
}

// toldToEnd runs the job, tells it to end as soon as it prints "started", and returns what it prints then. Its standard
// error is beside its directory.
func (s scratch) toldToEnd(t *testing.T, code int, environment ...string) string {
	t.Helper()
	cmd := s.command()
	errs, err := os.Create(filepath.Join(s.dir, "..", "stderr"))
	require.NoError(t, err)
	defer errs.Close()
	cmd.Stderr = errs
	cmd.Env = append(cmd.Env, environment...)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	first := make([]byte, len("started\n"))
	_, err = io.ReadFull(stdout, first)
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	rest, err := io.ReadAll(stdout)
	require.NoError(t, err)
	require.Error(t, cmd.Wait())
	require.Equal(t, code, cmd.ProcessState.ExitCode())
	return string(rest)
}

func TestScriptCannotMakeTheWrapperLeaveTheTokenBehind(t *testing.T) {
	r := receive(t)
	s := node(t, r.description("rm -rf .htcd; mkdir keep; ln -s keep .htcd; echo 'echo broken' >job.sh; exit 6"),
		map[string]string{"apptainer": fakeApptainer, "curl": "", "sh": "", "ln": ""})
	code, _, stderr := s.run(t)
	require.Equal(t, 6, code, stderr)
	require.Len(t, r.events, 1)
	require.NoError(t, filepath.WalkDir(s.dir, func(path string, entry os.DirEntry, err error) error {
		require.NoError(t, err)
		if !entry.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(path)
		require.NotContains(t, string(text), "tok-0123456789", path)
		return err
	}))
}
