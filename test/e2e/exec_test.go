package e2e

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// terminal is one whose user does something when the command has written something.
type terminal struct {
	sizes chan remotecommand.TerminalSize
	does  map[string]func()
	seen  bytes.Buffer
}

func (q *terminal) Next() *remotecommand.TerminalSize {
	size, more := <-q.sizes
	if !more {
		return nil
	}
	return &size
}

func (q *terminal) Write(p []byte) (int, error) {
	q.seen.Write(p)
	for text, do := range q.does {
		if strings.Contains(q.seen.String(), text) {
			delete(q.does, text)
			do()
		}
	}
	return len(p), nil
}

func TestACommandRunsInTheContainerOfAJob(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	client, err := kubernetes.NewForConfig(trial.Config(t))
	require.NoError(t, err)
	// run runs a command as a user of a ClusterRole.
	run := func(role, name string, proc int, stream remotecommand.StreamOptions, words ...string) (stdout,
		stderr string, err error) {
		t.Helper()
		config := trial.Config(t)
		config.Impersonate = rest.ImpersonationConfig{
			UserName: "anna-" + role,
			Groups:   []string{"system:authenticated", "some"},
		}
		r := client.CoreV1().RESTClient().Get().AbsPath(
			"/apis/output.htc.cern.ch/v1alpha1/namespaces/"+b.Namespace+"/htcjobs/"+name+"/exec",
		).
			Param(
				"proc",
				strconv.Itoa(proc),
			).Param(
			"stdin",
			strconv.FormatBool(stream.Stdin != nil),
		).Param(
			"tty",
			strconv.FormatBool(stream.Tty),
		)
		for _, word := range words {
			r = r.Param("command", word)
		}
		executor, err := remotecommand.NewWebSocketExecutor(config, "GET", r.URL().String())
		require.NoError(t, err)
		var out, errs bytes.Buffer
		if stream.Stdout == nil {
			stream.Stdout = &out
		}
		if !stream.Tty {
			stream.Stderr = &errs
		}
		err = executor.StreamWithContext(t.Context(), stream)
		return out.String(), errs.String(), err
	}
	may := func(user string, verbs ...string) {
		_, err := client.RbacV1().Roles(
			b.Namespace,
		).Create(
			t.Context(),
			&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user},
				Rules: []rbacv1.PolicyRule{
					{APIGroups: []string{"output.htc.cern.ch"}, Resources: []string{"htcjobs/exec"}, Verbs: verbs},
				}},
			metav1.CreateOptions{},
		)
		require.NoError(t, err)
		b.Kubectl("create", "rolebinding", user, "--role", user, "--user", "anna-"+user)
	}
	may("all", "get", "create")
	may("looks", "get")
	b.Kubectl("create", "rolebinding", "user", "--clusterrole", "htcjob-user", "--user", "anna-user")
	b.Kubectl("create", "rolebinding", "exec", "--clusterrole", "htcjob-exec", "--user", "anna-exec")

	b.Script("busy", "echo $$ >pid; echo begun; sleep 600\n", trial.Queue(2), func(job *v1alpha1.HTCJob) {
		job.Spec.Environment = map[string]v1alpha1.EnvironmentValue{"GREETING": "hello  * $HOME", "PROC": "of all"}
	})
	b.Script("look", "false\n", func(job *v1alpha1.HTCJob) { job.Spec.Interactive = true })
	b.Until("busy", "both running", func(job *v1alpha1.HTCJob) bool { return job.Status.Running == 2 })
	b.Phase("look", v1alpha1.PhaseRunning)

	// As the script: its variables, its directory, its processes; and what the words are is not changed.
	none := remotecommand.StreamOptions{}
	var out, errs string
	b.Eventually(func() bool {
		out, errs, err = run(
			"all",
			"busy",
			1,
			none,
			"sh",
			"-c",
			`until [ -s pid ]; do sleep 1; done; echo "$HTCPROCID $GREETING|$1|"; kill -0 $(cat pid) && cat /proc/1/comm; echo oops >&2; exit 7`,
			"sh",
			"a  'b' \\ \"*\n$(id)",
		)
		return !strings.Contains(errs, "has no container now")
	}, func() string { return errs })
	exit := utilexec.CodeExitError{}
	require.ErrorAs(t, err, &exit, "%s%s", out, errs)
	require.Equal(t, 7, exit.Code)
	require.Equal(t, "1 hello  * $HOME|a  'b' \\ \"*\n$(id)|\nappinit\n", out)
	require.Equal(t, "oops\n", errs, "and nothing of sshd")

	// Not beside it: neither the node's files nor its processes are there.
	out, _, err = run(
		"exec",
		"look",
		0,
		none,
		"sh",
		"-c",
		"ls -d "+b.Lab.Path("condor", "log")+"; cat /proc/[0-9]*/comm; grep -E 'CapEff|NoNewPrivs' /proc/self/status",
	)
	require.NoError(t, err)
	require.NotContains(t, out, "condor")
	require.NotContains(t, out, "sshd")
	require.Contains(t, out, "sleep\n")
	require.Contains(t, out, "CapEff:\t0000000000000000\n")
	require.Contains(t, out, "NoNewPrivs:\t1\n")
	b.Event("look", "anna-exec runs a command in the container of job")
	b.Eventually(func() bool {
		audit, err := os.ReadFile(b.Lab.Log("audit"))
		require.NoError(t, err)
		return regexp.MustCompile(
			`(?m)^.*"requestURI":"[^"]*/` + b.Namespace + `/htcjobs/look/exec\?command=sh[^"]*CapEff.*"anna-exec"`,
		).Match(
			audit,
		)
	}, func() string { return "the audit log has no line that says who has run what" })

	out, _, err = run(
		"all",
		"look",
		0,
		remotecommand.StreamOptions{Stdin: strings.NewReader(strings.Repeat("0123456789abcde\n", 1<<16))},
		"sh",
		"-c",
		"cat | wc -c",
	)
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(16<<16), strings.TrimSpace(out), "the standard input ends")

	_, _, err = run("all", "look", 0, none, "sh", "-c", "kill -TERM $$")
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 128+15, exit.Code)

	// A shell on a terminal: its size, also when that changes, and Ctrl-C.
	in, typed := io.Pipe()
	screen := &terminal{sizes: make(chan remotecommand.TerminalSize, 2)}
	types := func(text string) func() {
		return func() { _, _ = io.WriteString(typed, text) } // the shell may have ended
	}
	screen.does = map[string]func(){
		"[37 101]": func() { screen.sizes <- remotecommand.TerminalSize{Width: 120, Height: 50} },
		"[50 120]": types(`sh -c 'trap "echo c""aught; exit" INT; echo beg""un; while :; do sleep 1; done'` + "\n"),
		"begun":    types("\x03"),
		"caught":   types("exit 3\n"),
	}
	screen.sizes <- remotecommand.TerminalSize{Width: 101, Height: 37}
	go types(
		"for size in '37 101' '50 120'; do until [ \"$(stty size)\" = \"$size\" ]; do sleep 1; done; echo \"[$size]\"; done\n",
	)()
	_, _, err = run(
		"all",
		"look",
		0,
		remotecommand.StreamOptions{Stdin: in, Stdout: screen, Tty: true, TerminalSizeQueue: screen},
		"sh",
	)
	require.ErrorAs(t, err, &exit, screen.seen.String())
	require.Equal(t, 3, exit.Code, screen.seen.String())
	require.NoError(t, typed.Close())
	close(screen.sizes)

	// A program on a terminal handles Ctrl-C itself, and goes on after Ctrl-Z.
	in, typed = io.Pipe()
	defer typed.Close()
	screen = &terminal{does: map[string]func(){"begun": types("\x1a\x1a\x03")}}
	_, _, err = run("all", "look", 0, remotecommand.StreamOptions{Stdin: in, Stdout: screen, Tty: true},
		"sh", "-c", `trap "echo caught; exit 4" INT; echo begun; while :; do sleep 1; done`)
	require.ErrorAs(t, err, &exit, screen.seen.String())
	require.Equal(t, 4, exit.Code, screen.seen.String())
	require.Contains(t, screen.seen.String(), "caught")
	require.NoError(t, typed.Close())
	in, typed = io.Pipe()
	defer typed.Close()
	screen = &terminal{does: map[string]func(){"begun": types("\x03")}}
	_, _, err = run(
		"all",
		"look",
		0,
		remotecommand.StreamOptions{Stdin: in, Stdout: screen, Tty: true},
		"sh",
		"-c",
		"echo begun; exec sleep 600",
	)
	require.ErrorAs(t, err, &exit, screen.seen.String())
	require.Equal(t, 128+2, exit.Code, screen.seen.String())
	require.NoError(t, typed.Close())

	for role, says := range map[string]string{
		"user":   "forbidden",
		"looks":  `cannot create resource "htcjobs/exec"`,
		"nobody": "forbidden",
	} {
		_, _, err = run(role, "look", 0, none, "id")
		require.ErrorContains(t, err, says, role)
	}
	_, _, err = run("all", "busy", 2, none, "id")
	require.ErrorContains(t, err, "has no job 2")
	b.Script("over", "true\n")
	b.Ended("over")
	_, _, err = run("all", "over", 0, none, "id")
	require.ErrorContains(t, err, "there is no container to run anything in")

	// A node of a workflow.
	flow := flowIn(
		b,
		"flow",
		"  interactive: true\n  steps:\n"+
			"  - {name: look, job: {script: {image: centos, command: bash, source: \"false\"}}}\n"+
			"  - {name: after, pull: [{from: look, path: left}], job: {script: {image: centos, command: bash, source: \"false\"}}}\n",
	)
	b.Eventually(func() bool {
		out, err = b.Lab.Run(
			t.Context(),
			"htcd",
			"exec",
			"flow",
			"-n",
			b.Namespace,
			"--step",
			"look",
			"--",
			"sh",
			"-c",
			"cat /proc/[0-9]*/comm | grep -cx sleep",
		)
		return err == nil
	}, func() string { return fmt.Sprint(out, err) })
	require.Equal(t, "1\n", out, "the container waits, and the script has not run")
	b.Event("flow", "runs a command in the container of job")

	// Its wait is ended, and the next one begins where it has left off.
	for _, step := range [][2]string{{"look", "echo mine > left"}, {"after", "cat left > seen"}} {
		b.Eventually(func() bool {
			out, err = b.Lab.Run(
				t.Context(), "htcd", "exec", "wf/flow", "-n", b.Namespace, "--step", step[0], "--",
				"sh", "-c", step[1]+`; kill $(grep -lx sleep /proc/[0-9]*/comm | tr -dc "0-9\n")`,
			)
			return err == nil || strings.Contains(err.Error(), "has ended") // with the connection that has asked for it
		}, func() string { return fmt.Sprint(step[0], out, err) })
	}
	ended := flow.ended()
	require.Equal(t, v1alpha1.PhaseSucceeded, ended.Status.Phase, "%+v", ended.Status)
	require.Equal(t, "mine\n", flow.output(ended, "after/job_0", "seen"))

	_, err = b.Lab.Run(t.Context(), "htcd", "exec", "over", "-n", b.Namespace, "--", "id")
	require.Regexp(t, `status 1: htcd: job [0-9]+\.0 has ended: there is no container to run anything in$`, err.Error())
	c := commands{b}
	require.Equal(t, "said\n", c.ends(0, "exec", "look", "--", "echo", "said"))
	c.ends(5, "exec", "look", "--", "sh", "-c", "exit 5")
	c.ends(2, "exec", "look", "sh")
	// HTCondor removes its sshd's files when it has seen that end.
	var left []string
	b.Eventually(func() bool {
		left = nil
		for _, pattern := range []string{b.Lab.Path("htcd", "data", "ssh", "*"), b.Lab.Path("condor", "execute", "dir_*", ".condor_ssh_to_job_*"), b.Lab.Path("condor", "execute", "dir_*", "scratch", ".condor_ssh_to_job_*")} {
			found, err := filepath.Glob(pattern)
			require.NoError(t, err)
			left = append(left, found...)
		}
		return len(left) == 0
	}, func() string { return "keys of connections: " + strings.Join(left, " ") })
}
