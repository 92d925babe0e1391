package security

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// grab leaves all kinds of links to another job's files, and passes its directories to a job that goes on: accomplice.
// What follows is ordinary output.
const grab = `
import array, ctypes, os, socket, sys, time
victim, name = @VICTIM@, @NAME@
here = os.getcwd()
targets = [f"{root}{victim}/{file}" for root in ("", "/proc/self/root", "/proc/1/root", "/proc/self/cwd/" + "../" * 12)
	for file in ("_condor_stdout", ".job.ad", ".htcd/credentials/note", ".htcd/pulled/note", ".htcd/job/mine", "mine", ".htcd/job/script", "script")]
targets += ["../" * n + os.path.relpath(victim, "/") + "/_condor_stdout" for n in range(1, 12)]
directories = [victim, victim + "/.htcd", victim + "/.htcd/job", "/proc/self/root" + victim, os.path.dirname(victim), "/", "..", "../.."]
for d in ("d", "d/deeper", "plain"):
	os.makedirs(d)
failed = []
for where in (".", "d", "d/deeper"):
	for i, target in enumerate(targets):
		os.symlink(target, f"{where}/sym-{i}")
		os.symlink(f"sym-{i}", f"{where}/chain-{i}")
		for follow in (True, False):
			try:
				os.link(target, f"{where}/hard-{i}-{follow}", follow_symlinks=follow)
			except OSError as e:
				failed.append(str(e))
	for i, target in enumerate(directories):
		os.symlink(target, f"{where}/dir-{i}")
for i, fd in enumerate(os.listdir("/proc/self/fd")):
	for process in ("self", "1"):
		os.symlink(f"/proc/{process}/fd/{fd}", f"fd-{process}-{i}")
		try:
			os.link(f"/proc/{process}/fd/{fd}", f"hardfd-{process}-{i}", follow_symlinks=True)
		except OSError as e:
			failed.append(str(e))
for reserved in (".htcd-out", ".htcd-names", ".htcd-name-0", ".htcd-pull", ".htcd-results", ".credential-note", ".htcd-plugin-https", "token", "htcd-send"):
	os.symlink(victim + "/_condor_stdout", reserved)
os.symlink(".", ".htcd")
with open("d/.htcd-names", "wb") as f:
	f.write(bytes(16 << 20))

os.symlink("plain/file", "relative")
os.symlink(here + "/plain/file", "absolute")
os.symlink("plain", "latest")
for file, text in (("plain/file", "inside\n"), ("result", "whole\n"), ("d/deeper/result", "deep\n")):
	with open(file, "w") as f:
		f.write(text)

# The names that the accomplice changes while they are collected.
os.makedirs("flip/below")
held = [os.open(d, os.O_RDONLY) for d in (".", "flip", "flip/below", "d", "d/deeper")]
s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
for _ in range(600):
	try:
		s.connect("\0" + name)
		break
	except OSError:
		time.sleep(0.2)
socket.send_fds(s, [b"x"], held)
print("passed", s.recv(1).decode(), len(failed), "links refused")

# A mount in a namespace of the script's own, which ends with it.
libc = ctypes.CDLL(None, use_errno=True)
if os.fork() == 0:
	if libc.unshare(0x10000000 | 0x00020000) == 0:
		os.makedirs("mounted")
		done = [libc.mount(source.encode(), target.encode(), None, 4096, None) for source, target in
			(("/etc", "mounted"), ("plain", "d/deeper"), ("/proc/self/root", "mounted"), ("/", ".htcd"))]
		print("mounts", done, flush=True)
	else:
		print("no namespaces", flush=True)
	time.sleep(1000)
time.sleep(3)
`

// accomplice changes names in the directories that it got, all the time, until it is told to end.
const accomplice = `
import os, socket, threading
victim, name = @VICTIM@, @NAME@
s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
s.bind("\0" + name)
s.listen()
def serve(c):
	_, fds, _, _ = socket.recv_fds(c, 1, 16)
	c.send(b"y")
	n = 0
	while True:
		n += 1
		for i, fd in enumerate(fds):
			for entry, made in (("flip-a", "file"), ("flip-b", "directory"), ("result", "file"), ("below", "directory"), ("deeper", "directory")):
				if i == 0 and entry == "result":
					continue
				try:
					os.symlink(victim + ("/_condor_stdout" if made == "file" else ""), ".s", dir_fd=fd)
					if made == "directory":
						os.rename(entry, f".o{n}", src_dir_fd=fd, dst_dir_fd=fd)
					os.rename(".s", entry, src_dir_fd=fd, dst_dir_fd=fd)
				except OSError:
					pass
				try:
					if made == "file":
						os.close(os.open(".f", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=fd))
						os.rename(".f", entry, src_dir_fd=fd, dst_dir_fd=fd)
					else:
						os.unlink(entry, dir_fd=fd)
						os.rename(f".o{n}", entry, src_dir_fd=fd, dst_dir_fd=fd)
				except OSError:
					pass
while True:
	c, _ = s.accept()
	print("holding", flush=True)
	threading.Thread(target=serve, args=(c,), daemon=True).start()
`

// Jobs of all namespaces may have one account, and HTCondor follows links as that account, where the container is not.
func TestNothingOutsideOfTheScriptsDirectoryIsOutput(t *testing.T) {
	victim, b := trial.New(t), trial.New(t)
	victim.ApplyText(
		`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "notes", "labels": {"htc.cern.ch/jobs": "true"}}, "stringData": {"text": "WORD-of-a-secret"}}`,
	)
	victim.Create(
		"job",
		"echo WORD-of-stdout; echo WORD-of-a-file >mine; touch runs-$$-"+victim.Namespace+"; sleep 1000 # WORD-of-the-script\n",
		noted,
	)
	robbed := victim.Phase("job", v1alpha1.PhaseRunning)
	var at string
	victim.Eventually(func() bool {
		for _, pattern := range []string{"dir_*", "dir_*/scratch"} { // the latter with HTCondor 25
			found, err := filepath.Glob(
				b.Lab.Path("condor", "execute", pattern, ".htcd", "job", "runs-*-"+victim.Namespace),
			)
			require.NoError(t, err)
			for _, file := range found {
				at = filepath.Dir(filepath.Dir(filepath.Dir(file)))
			}
		}
		return at != ""
	}, func() string { return "the job's directory is not to be found" })
	stdout, err := os.ReadFile(filepath.Join(at, "_condor_stdout"))
	require.NoError(t, err)
	require.Contains(t, string(stdout), "WORD-of-stdout", "what would be stolen is there")
	credential, err := os.ReadFile(filepath.Join(at, ".htcd", "credentials", "note"))
	require.NoError(t, err)
	require.Contains(t, string(credential), "WORD-of-a-secret")

	source := func(text string) string {
		return strings.NewReplacer(
			"@VICTIM@",
			fmt.Sprintf("%q", at),
			"@NAME@",
			fmt.Sprintf("%q", "accomplice-of-"+b.Namespace),
		).Replace(
			text,
		)
	}
	python := func(outputs ...string) func(*v1alpha1.HTCJob) {
		return func(job *v1alpha1.HTCJob) {
			job.Spec.Script.Image, job.Spec.Script.Command = "python", "python3"
			for _, path := range outputs {
				job.Spec.Outputs = append(job.Spec.Outputs, v1alpha1.Output{Path: path})
			}
		}
	}
	b.Create("accomplice", source(accomplice), python())
	b.Phase("accomplice", v1alpha1.PhaseRunning)
	before, _ := resident(b)
	for name, outputs := range map[string][]string{
		"all":         nil,
		"files":       {"result", "relative", "absolute", "sym-*", "chain-*", "hard-*", "fd-*", "hardfd-*", "latest/file"},
		"directories": {"d", "flip", "result", "plain"},
		"patterns":    {"d*/*", "d*/*/*", "*/_condor_stdout", "*/*/mine", "latest/*", "result", "flip/*/*"},
		"everything":  {"*"},
	} {
		b.Create(name, source(grab), python(outputs...))
	}
	b.Create("named", source(grab), python(), func(job *v1alpha1.HTCJob) {
		job.Spec.HTCOpts = "transfer_output_files = d, flip, plain, result, relative, absolute, d/.htcd-names\n"
	})
	for _, name := range []string{"all", "files", "directories", "patterns", "everything", "named"} {
		b.Until(name, "ended", func(job *v1alpha1.HTCJob) bool { return job.Status.Phase.Terminal() })
		job := b.Fetched(name)
		kept := 0
		require.NoError(t, filepath.WalkDir(b.Kept(job), func(path string, entry os.DirEntry, err error) error {
			require.NoError(t, err)
			require.True(t, entry.IsDir() || entry.Type().IsRegular(), path)
			if entry.IsDir() {
				return nil
			}
			kept++
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NotContains(t, string(text), "WORD-of", "%s of %s", path, name)
			require.NotContains(t, string(text), string(robbed.UID), "%s of %s", path, name)
			require.NotContains(t, string(text), "root:x:0", "%s of %s", path, name)
			require.NotRegexp(t, `(?m)^[A-Za-z0-9_-]{43}$`, string(text), "a token: %s of %s", path, name)
			return nil
		}))
		t.Logf("%s: %s, %d files; said %s", name, job.Status.Phase, kept, strings.TrimSpace(b.Output(job, 0)))
		if name == "all" || name == "files" {
			require.Equal(t, "whole\n", b.File(job, 0, "result"))
			require.Equal(t, "inside\n", b.File(job, 0, "relative"))
			require.Equal(t, "inside\n", b.File(job, 0, "absolute"))
		}
		if name == "files" {
			require.Equal(t, "inside\n", b.File(job, 0, "latest/file"))
		}
		if name == "directories" {
			require.Equal(t, "inside\n", b.File(job, 0, "plain/file"))
		}
	}
	after, _ := resident(b)
	require.Less(t, after, before+300, "MiB: the list of names, 16 MiB of NULs, is not read whole")
	require.Equal(t, v1alpha1.PhaseRunning, b.Get("accomplice").Status.Phase, "it has held the directories to the end")
	b.Kubectl("delete", "htcjob", "accomplice", "--timeout="+trial.Patience.String())
	victim.Kubectl("delete", "htcjob", "job", "--timeout="+trial.Patience.String())
}
