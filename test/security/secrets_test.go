package security

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

// secret is something that nobody may find, in the forms in which it could be written.
type secret struct {
	name  string
	forms [][]byte
}

func newSecret(name, value string) secret {
	quoted := strconv.Quote(value)
	var plain bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // a string can always be encoded
	escaped := strings.Trim(strings.TrimSpace(plain.String()), `"`)
	html, _ := json.Marshal(value)
	s := secret{name: name}
	for _, form := range []string{
		value, quoted[1 : len(quoted)-1], escaped, string(html[1 : len(html)-1]), strings.ReplaceAll(value, " ", "\x00"),
		base64.StdEncoding.EncodeToString([]byte(value)), hex.EncodeToString([]byte(value)), url.QueryEscape(value),
		url.PathEscape(value),
	} {
		s.forms = append(s.forms, []byte(form))
	}
	return s
}

// signature is the secret part of a token. The rest, its claims, is shown to everybody who asks.
func signature(name, token string) secret {
	return newSecret(name, token[strings.LastIndexByte(token, '.')+1:])
}

func (s secret) in(text []byte) bool {
	for _, form := range s.forms {
		if bytes.Contains(text, form) {
			return true
		}
	}
	return false
}

// hunt looks for secrets and records where it found them.
type hunt struct {
	secrets []secret
	found   []string
	looked  int
}

func (h *hunt) look(where string, text []byte) {
	h.looked++
	for _, s := range h.secrets {
		if s.in(text) {
			h.found = append(h.found, fmt.Sprintf("%s in %s", s.name, where))
		}
	}
}

// looks is a script that prints every environment and command line that a job can see, and the contents of its
// directory.
const looks = `env
for p in /proc/[0-9]*; do tr '\0' '\n' <$p/environ; tr '\0' '\n' <$p/cmdline; done 2>/dev/null
ls -la . "$_CONDOR_SCRATCH_DIR" "$(dirname "$_CONDOR_JOB_AD")"
cat "$_CONDOR_JOB_AD" "$_CONDOR_MACHINE_AD"
exit 3
`

// A complete life with everything that can go wrong: a job, its failure, a refusal, a wrong password, a silent KDC, a
// rejected token and an accepted one, a deletion. All tests share the Secret, so this one runs alone.
func TestPasswordsAndTokensAreFoundNowhere(t *testing.T) {
	b := trial.New(t)
	ctx := t.Context()
	client, err := kubernetes.NewForConfig(trial.Config(t))
	require.NoError(t, err)
	secrets := client.CoreV1().Secrets("default")
	right, err := secrets.Get(ctx, "kinit-secret", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, parts.Passwords["robot"], string(right.Data["password"]))
	const wrong = `not it, 31337 "$guess`
	replace := func(ctx context.Context, data map[string][]byte) {
		current, err := secrets.Get(ctx, "kinit-secret", metav1.GetOptions{})
		require.NoError(t, err)
		current.Data = data
		_, err = secrets.Update(ctx, current, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	write := func(ctx context.Context, password string) {
		replace(ctx, map[string][]byte{"username": []byte("robot"), "password": []byte(password)})
	}
	foreign, err := parts.Token(
		ctx,
		b.Lab,
		parts.TokenAsk{Account: "robot", Issuer: "elsewhere.invalid", Life: time.Hour},
	)
	require.NoError(t, err)
	token, err := parts.Token(ctx, b.Lab, parts.TokenAsk{Account: "robot", Life: time.Hour})
	require.NoError(t, err)
	// Each of these is blocked until the program that waits for it has been examined.
	kdc, schedd, callbacks := b.Lab.Part("kdc"), b.Lab.Part("schedd"), b.Lab.Part("receiver-net")
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, part := range []lab.Part{kdc, schedd, callbacks} {
			require.NoError(t, part.Thaw(ctx))
		}
		write(ctx, parts.Passwords["robot"])
	})
	processes := watchProcesses(b)

	seen := func(program string) {
		b.Eventually(
			func() bool { return processes.saw(program) },
			func() string { return program + " was never seen" },
		)
	}
	// HTCondor 25.14 offers the machines no more jobs of an account after 20 that none accepts.
	kept := b.Create(
		"kept",
		"exit 0\n",
		trial.Queue(10),
		func(job *v1alpha1.HTCJob) { job.Spec.HTCOpts = "requirements = false\n" },
	)
	seen("condor_submit")
	b.Phase("kept", v1alpha1.PhaseIdle)
	require.NoError(t, callbacks.Freeze(ctx))
	job := b.Create("job", looks)
	seen("curl")
	told, waiting := tokenOf(b, b.Get("job")), tokenOf(b, b.Get("kept"))
	require.NoError(t, callbacks.Thaw(ctx))
	b.Script("refused", "exit 0\n", func(job *v1alpha1.HTCJob) { job.Spec.HTCOpts = "+ProjectName = \"forbidden\"\n" })
	b.Phase("refused", v1alpha1.PhaseFailed)
	ended := b.Ended("job")
	require.EqualValues(t, 3, *ended.Status.Failures[0].ExitCode)
	looked := b.Output(ended, 0) // fetched with the correct password

	require.NoError(t, kdc.Freeze(ctx))
	write(ctx, wrong)
	seen("kinit")
	require.NoError(t, kdc.Thaw(ctx))
	refused := func(name, by, reason string) {
		b.Until(name, "refused by "+by, func(job *v1alpha1.HTCJob) bool {
			return slices.ContainsFunc(
				job.Status.Conditions,
				func(c metav1.Condition) bool { return c.Reason == reason },
			)
		})
	}
	refused(
		"kept",
		"the KDC",
		"BadPassword",
	) // until htcd has seen the Secret, it may send jobs with the ticket that it has
	b.Create("silent", "exit 0\n")
	refused("silent", "the KDC", "BadPassword")
	replace(ctx, map[string][]byte{"token": []byte(foreign)})
	refused("silent", "the pool", "Credentials")

	h := &hunt{secrets: []secret{
		newSecret("robot's password", parts.Passwords["robot"]), newSecret("the wrong password", wrong),
		signature("robot's token", token), signature("the token that is not taken", foreign),
		newSecret("a token", told), newSecret("another token", waiting),
	}}
	require.NotEmpty(t, looked, "the job saw nothing")
	h.look("what the job could see", []byte(looked))
	modes(b, kept)
	health(b, h)
	ads := func(of *v1alpha1.HTCJob, tool string, args ...string) {
		out, err := b.Lab.Run(ctx, tool, append(args, "-long")...)
		require.NoError(t, err)
		require.True(t, strings.Contains(out, string(of.UID)), tool)
		h.look(tool, []byte(out))
	}
	ads(kept, "condor_q", "-allusers") // a job leaves the queue once its output is fetched
	ledger := b.SQL(".dump")
	hash := sha256.Sum256([]byte(waiting))
	require.Contains(t, strings.ToLower(ledger), hex.EncodeToString(hash[:]), "only the hash is there")
	h.look("the ledger's dump", []byte(ledger))
	files(b, h)

	replace(ctx, map[string][]byte{"token": []byte(token)})
	require.Empty(t, b.Output(b.Ended("silent"), 0))
	modes(b, kept)
	objects := b.Kubectl("get", "htcjobs,events", "-o", "json")
	require.Contains(t, objects, "BadPassword")
	require.Contains(t, objects, "Refused")
	h.look("HTCJobs and Events", []byte(objects))
	require.NoError(t, schedd.Freeze(ctx))
	b.Kubectl("delete", "htcjob", "--all", "--wait=false")
	seen("condor_rm")
	seen("condor_q")
	require.NoError(t, schedd.Thaw(ctx))
	b.Eventually(func() bool { return b.Kubectl("get", "htcjob", "-o", "name") == "" },
		func() string { return b.Kubectl("describe", "htcjob") })
	ads(job, "condor_history")
	files(b, h)
	health(b, h)
	h.look("HTCJobs and Events", []byte(b.Kubectl("get", "htcjobs,events", "-o", "json")))

	all := processes.stop()
	for process := range all {
		h.look("the arguments or the environment of a process: "+strconv.QuoteToASCII(process), []byte(process))
	}
	require.Empty(t, h.found)
	t.Logf("looked at %d places, among them %d processes", h.looked, len(all))
}

// modes checks that only htcd's account can read secrets that must be stored somewhere.
func modes(b *trial.Bench, job *v1alpha1.HTCJob) {
	b.T.Helper()
	staging := b.Lab.Path("htcd", "data", "staging")
	require.NoDirExists(b.T, filepath.Join(staging, string(job.UID)+"-1"), "HTCondor has it")
	for path, mode := range map[string]fs.FileMode{staging: fs.ModeDir | 0o700, filepath.Join(spooled(b, b.Get(job.Name)), "token"): 0o600} {
		info, err := os.Stat(path)
		require.NoError(b.T, err)
		require.Equal(b.T, mode, info.Mode(), path)
	}
	out, err := b.Lab.RunAs(b.T.Context(), "root", "find", "/dev/shm/htcd", "-printf", "%y %m %u %p\\n")
	require.NoError(b.T, err)
	var caches int
	for line := range strings.Lines(out) {
		require.Regexp(b.T, "^(d 700|[fs] 600) htcd ", line)
		if strings.HasPrefix(line, "f ") {
			caches++
		}
	}
	require.Positive(b.T, caches, out)
	for _, account := range []string{"robot", "alice"} {
		_, err := b.Lab.RunAs(b.T.Context(), account, "ls", "/dev/shm/htcd")
		require.ErrorContains(b.T, err, "Permission denied")
	}
}

// files searches every file of the lab: logs, the ledger and its journal, HTCondor's queue, history and spool. etcd has
// the Secret, of course. A token may be in its own file, which only its owner can read.
func files(b *trial.Bench, h *hunt) {
	b.T.Helper()
	err := filepath.WalkDir(b.Lab.Dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case os.IsNotExist(err):
			return nil // jobs come and go
		case err != nil:
			return err
		case entry.IsDir() && (path == b.Lab.Path("etcd") || path == b.Lab.Path("run", "root") || path == b.Lab.Path("bin")):
			return filepath.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if name := entry.Name(); (name == "token" || filepath.Base(filepath.Dir(path)) == ".htcd") &&
			info.Mode() == 0o600 {
			return nil
		}
		h.look(path, text)
		return nil
	})
	require.NoError(b.T, err)
}

func health(b *trial.Bench, h *hunt) {
	b.T.Helper()
	world, err := parts.Open(b.Lab)
	require.NoError(b.T, err)
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/"} {
		answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d%s", world.Ports.Health, path))
		require.NoError(b.T, err)
		text, err := io.ReadAll(answer.Body)
		require.NoError(b.T, err)
		require.NoError(b.T, answer.Body.Close())
		if path == "/metrics" {
			require.Contains(b.T, string(text), `htcd_ticket_expiry_timestamp_seconds{secret="default/kinit-secret"}`)
		}
		h.look(path, text)
	}
}

func TestTheHuntFindsWhatIsThere(t *testing.T) {
	password := parts.Passwords["robot"]
	encoded, err := json.Marshal(map[string]string{"password": password})
	require.NoError(t, err)
	for name, text := range map[string]string{
		"plain": "kinit: " + password + "!", "in JSON": string(encoded), "quoted by Go": fmt.Sprintf("%q", password),
		"in base64": base64.StdEncoding.EncodeToString([]byte(password)), "as several arguments": strings.ReplaceAll(password, " ", "\x00"),
	} {
		h := &hunt{secrets: []secret{newSecret("the password", password)}}
		h.look(name, []byte(text))
		require.Equal(t, []string{"the password in " + name}, h.found)
	}
}
