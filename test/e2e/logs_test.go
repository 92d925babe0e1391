//go:build !releases

package e2e

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

const outputPath = "/apis/output.htc.cern.ch/v1alpha1/namespaces/%s/htcjobs/%s/log"

func TestOutputIsReadThroughTheApiserver(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("talk", `echo "out of $1"; echo "err of $1" >&2; exit $1`+"\n", trial.Queue(2))
	htcd := func(args ...string) string {
		out, err := b.Lab.Run(t.Context(), "htcd", append(args, "-n", b.Namespace)...)
		require.NoError(t, err)
		return out
	}
	// A follower waits for it from before it is sent until its end.
	require.Equal(t, "out of 1\n", htcd("logs", "talk", "--proc=1", "--follow"))
	require.ElementsMatch(
		t,
		[]string{"[0] out of 0\n", "[1] out of 1\n"},
		slices.Collect(strings.Lines(htcd("logs", "talk", "--all", "--follow"))),
	)
	require.Equal(t, "err of 0\n", htcd("logs", "htcjob.htc.cern.ch/talk", "--stderr"))
	plugin, err := b.Lab.Run(t.Context(), "kubectl", "htcjob", "logs", "talk", "--stderr", "--all", "-n", b.Namespace)
	require.NoError(t, err)
	require.Equal(t, "[0] err of 0\n[1] err of 1\n", plugin)
	require.Equal(t, "out of 1\n", b.Kubectl("get", "--raw", fmt.Sprintf(outputPath, b.Namespace, "talk")+"?proc=1"))
	for _, odd := range []string{fmt.Sprintf(outputPath, b.Namespace, "%2e%2e"), fmt.Sprintf(outputPath, b.Namespace, "talk") + "/%2e%2e"} {
		_, err = b.Lab.Run(t.Context(), "kubectl", "get", "--raw", odd)
		require.ErrorContains(t, err, "(NotFound)", odd)
	}

	dir := t.TempDir()
	htcd("get-output", "talk", dir)
	for file, text := range map[string]string{"0/stdout": "out of 0\n", "1/stdout": "out of 1\n", "1/stderr": "err of 1\n"} {
		got, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		require.Equal(t, text, string(got))
	}
	htcd("get-output", "talk", dir)
	b.Script("other", "true\n")
	htcd("logs", "other", "--follow")
	_, err = b.Lab.Run(t.Context(), "htcd", "get-output", "other", dir, "-n", b.Namespace)
	require.ErrorContains(t, err, "holds other output")

	// Only fetched files are replaced, and nothing else.
	mine := []string{filepath.Join(dir, "0", "mine"), filepath.Join(dir, "2024", "mine")}
	for _, file := range mine {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte("mine"), 0o644))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "0", "stdout"), []byte("spoilt"), 0o644))
	htcd("get-output", "talk", dir, "--force")
	_, err = b.Lab.Run(t.Context(), "htcd", "get-output", "other", dir, "--force", "-n", b.Namespace)
	require.ErrorContains(t, err, "holds other output")
	for file, text := range map[string]string{"0/stdout": "out of 0\n", "1/stderr": "err of 1\n", "0/mine": "mine", "2024/mine": "mine"} {
		got, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		require.Equal(t, text, string(got))
	}

	// The output of an ended job is fetched a moment later.
	b.Create("short", "echo said\n")
	b.Ended("short")
	require.Equal(t, "said\n", htcd("logs", "short"))

	for name, args := range map[string][]string{
		"has no HTCJob and no HTCWorkflow of this name": {"logs", "none"},
		"has no job 2":        {"logs", "talk", "--proc=2"},
		"want a whole number": {"logs", "talk", "--proc=-1"},
	} {
		_, err := b.Lab.Run(t.Context(), "htcd", append(args, "-n", b.Namespace)...)
		require.ErrorContains(t, err, name)
	}
	// kubectl interprets htcjobs as the HTCJobs themselves.
	require.Contains(t, b.Kubectl("get", "htcjobs"), "talk")
}

func TestGetOutputThatLacksJobsIsNoSuccess(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("some", "[ $1 != 1 ] || sleep 600; exit $(($1 / 2))\n", trial.Queue(3))
	get := func(args ...string) (code int, said string) {
		c := exec.CommandContext(
			t.Context(),
			b.Lab.Bin("htcd"),
			append([]string{"get-output", "some", "-n", b.Namespace}, args...)...)
		out, err := c.CombinedOutput()
		if _, exited := errors.AsType[*exec.ExitError](err); !exited {
			require.NoError(t, err)
		}
		return c.ProcessState.ExitCode(), string(out)
	}
	dir := t.TempDir()
	b.Until("some", "one running and two ended", func(job *v1alpha1.HTCJob) bool {
		return job.Status.Succeeded == 1 && job.Status.Failed == 1 && job.Status.Running == 1
	})
	for _, proc := range []string{"0", "2"} { // each time it waits for half a minute
		b.Eventually(func() bool {
			code, _ := get(t.TempDir(), "--proc="+proc)
			return code == 0
		}, func() string { return "the output of job " + proc + " was never fetched" })
	}
	code, said := get(dir)
	require.Equal(t, 3, code, said)
	require.Regexp(t, `jobs whose output is missing: 1\njob \d+\.1 runs: there is no output yet\n`, said)
	code, said = get(t.TempDir(), "--proc=1")
	require.Equal(t, 3, code, said)
	require.Regexp(t, `job \d+\.1 runs: there is no output yet\n`, said)
	require.FileExists(t, filepath.Join(dir, "2", "stdout"))
	require.NoDirExists(t, filepath.Join(dir, "1"))
	code, said = get(t.TempDir(), "--proc=2")
	require.Zero(t, code, said)
}

func TestARunningJobIsFollowedAcrossARestart(t *testing.T) {
	b := trial.New(t)
	wait, end := b.Gate()
	b.Script("count", "for i in $(seq 30); do echo line $i; [ $i != 10 ] || { "+wait+"}; done\n")
	var want strings.Builder
	for i := range 30 {
		fmt.Fprintf(&want, "line %d\n", i+1)
	}
	follow := exec.CommandContext(t.Context(), b.Lab.Bin("htcd"), "logs", "count", "-f", "-n", b.Namespace)
	out, err := follow.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, follow.Start())
	begun := make([]byte, len("line 1\n"))
	_, err = io.ReadFull(out, begun)
	require.NoError(t, err)

	job := b.Phase("count", v1alpha1.PhaseRunning)
	require.Zero(t, job.Status.Succeeded, "it is shown while it runs")
	now, err := b.Lab.Run(t.Context(), "htcd", "logs", "count", "-n", b.Namespace)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(want.String(), now), now)
	tail, err := b.Lab.Run(t.Context(), "htcd", "logs", "count", "--tail=1", "-n", b.Namespace)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(tail, "\n"))

	htcd := b.Lab.Part("htcd")
	require.NoError(t, htcd.Stop(t.Context()))
	require.NoError(t, htcd.Start(t.Context()))
	end()
	rest, err := io.ReadAll(out)
	require.NoError(t, err)
	require.NoError(t, follow.Wait())
	require.Equal(t, want.String(), string(begun)+string(rest))
	b.Phase("count", v1alpha1.PhaseSucceeded)
}

func TestOutputIsReadByWhoMayAndNobodyElse(t *testing.T) {
	t.Parallel()
	mine, theirs := trial.New(t), trial.New(t)
	anna, token := trial.User(t, mine.Namespace)
	file := filepath.Join(t.TempDir(), "job.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`apiVersion: htc.cern.ch/v1alpha1
kind: HTCJob
metadata: {name: secret}
spec:
  script: {image: centos, command: bash, source: "echo what only we may read\n"}
`), 0o644))
	// The role is all that is needed to submit, wait and read.
	_, err := mine.Lab.Run(t.Context(), "htcd", "submit", file, "--watch", "--kubeconfig", anna)
	require.NoError(t, err)
	text, err := mine.Lab.Run(t.Context(), "htcd", "logs", "secret", "-f", "--kubeconfig", anna)
	require.NoError(t, err)
	require.Equal(t, "what only we may read\n", text)

	again, err := mine.Lab.Run(t.Context(), "htcd", "submit", "-f", file, "--kubeconfig", anna)
	require.NoError(t, err)
	require.Equal(t, "htcjob.htc.cern.ch/secret unchanged\n", again)

	theirs.Script("secret", "echo what only they may read\n")
	theirs.Ended("secret")
	for _, args := range [][]string{{"logs", "secret"}, {"get-output", "secret", t.TempDir()}} {
		text, err = mine.Lab.Run(t.Context(), "htcd", append(args, "-n", theirs.Namespace, "--kubeconfig", anna)...)
		require.ErrorContains(t, err, "forbidden")
		require.Empty(t, text)
	}
	out, err := mine.Lab.Run(
		t.Context(),
		"kubectl",
		"--kubeconfig",
		anna,
		"get",
		"--raw",
		fmt.Sprintf(outputPath, theirs.Namespace, "secret")+"/archive",
	)
	require.ErrorContains(t, err, "orbidden")
	require.Empty(t, out)

	// Without going through the apiserver nobody even gets to authenticate, whatever credentials they have.
	world, err := parts.Open(mine.Lab)
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		fmt.Sprintf("https://127.0.0.1:%d", world.Ports.Output)+fmt.Sprintf(outputPath, mine.Namespace, "secret"), nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("X-Remote-User", "system:admin")
	request.Header.Set("X-Remote-Group", "system:masters")
	transport, err := rest.TransportFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	require.NoError(t, err)
	response, err := (&http.Client{Transport: transport}).Do(request)
	require.Error(t, err)
	require.Nil(t, response)
	wrong, err := tls.LoadX509KeyPair(
		mine.Lab.Path("kube", "certs", "apiserver.crt"),
		mine.Lab.Path("kube", "certs", "apiserver.key"),
	)
	require.NoError(t, err)
	transport = &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{wrong}},
	}
	response, err = (&http.Client{Transport: transport}).Do(request)
	require.Error(t, err)
	require.Nil(t, response)
}

func TestAReaderOfManyLeavesPlacesToOthers(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script("long", "echo begun; sleep 600\n")
	b.Phase("long", v1alpha1.PhaseRunning)
	// read begins to read as a user, and continues until the test ends.
	read := func(user, parameters string) (code int, said string) {
		config := trial.Config(t)
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
		client, err := rest.HTTPClientFor(config)
		require.NoError(t, err)
		request, err := http.NewRequestWithContext(
			t.Context(),
			http.MethodGet,
			config.Host+fmt.Sprintf(outputPath, b.Namespace, "long")+parameters,
			nil,
		)
		require.NoError(t, err)
		response, err := client.Do(request)
		require.NoError(t, err)
		t.Cleanup(func() { _ = response.Body.Close() })
		begin := make([]byte, len("begun\n"))
		_, err = io.ReadFull(response.Body, begin)
		require.NoError(t, err)
		return response.StatusCode, string(begin)
	}
	code, readers := 0, 0
	for ; readers < 32; readers++ {
		if code, _ = read("anna", "?follow=true"); code != http.StatusOK {
			break
		}
	}
	require.Equal(t, http.StatusTooManyRequests, code, "%d readers", readers)
	require.LessOrEqual(t, readers, 16)
	code, said := read("bert", "")
	require.Equal(t, http.StatusOK, code, said)
	require.Equal(t, "begun\n", said)
}

func TestSubmitEndsAsTheJobsDo(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	const one = `apiVersion: htc.cern.ch/v1alpha1
kind: HTCJob
metadata: {name: %s}
spec:
  script: {image: centos, command: bash, source: %q, queue: %d}
  htcopts: %q
`
	for name, c := range map[string]struct {
		source  string
		queue   int
		options string
		code    int
		says    string
	}{
		"succeeds":  {"exit 0\n", 2, "", 0, ""},
		"fails":     {"exit 42\n", 2, "", 42, "fails: Failed"},
		"disagrees": {"exit $(($1 + 3))\n", 2, "", 1, "disagrees: Failed"},
		"refused":   {"exit 0\n", 1, "executable = /bin/id\n", 1, "refused: Failed"},
		"held":      {"exit 5\n", 1, "on_exit_hold = ExitCode == 5\non_exit_hold_reason = \"look at me\"\nperiodic_remove = JobStatus == 5 && time() - EnteredCurrentStatus > 12\n", 1, "look at me.* Set spec.suspend to true, mend the cause, and set it to false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			submit := exec.CommandContext(t.Context(), b.Lab.Bin("htcd"), "submit", "-", "--watch", "-n", b.Namespace)
			submit.Stdin = strings.NewReader(fmt.Sprintf(one, name, c.source, c.queue, c.options))
			var stderr strings.Builder
			submit.Stderr = &stderr
			err := submit.Run()
			code := 0
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				code = exit.ExitCode()
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, c.code, code, stderr.String())
			require.Regexp(t, c.says, stderr.String())
			require.NotContains(t, stderr.String(), "\r", "no line is written over where nobody looks")

			again := exec.CommandContext(
				t.Context(),
				b.Lab.Bin("htcd"),
				"submit",
				"-f",
				"-",
				"--watch",
				"-n",
				b.Namespace,
			)
			again.Stdin = strings.NewReader(fmt.Sprintf(one, name, c.source, c.queue, c.options))
			var said strings.Builder
			again.Stdout, again.Stderr = &said, &said
			_ = again.Run()
			require.Equal(t, c.code, again.ProcessState.ExitCode(), said.String())
			require.Contains(t, said.String(), name+" unchanged\n")
			require.Contains(t, said.String(), "has ended already; to run it again: kubectl annotate")
		})
	}
	for name, text := range map[string]string{
		"only HTCJobs":                 "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n",
		"field not declared in schema": strings.Replace(fmt.Sprintf(one, "x", "true\n", 1, ""), "htcopts:", "htcoptions:", 1),
		"without metadata.name":        strings.Replace(fmt.Sprintf(one, "x", "true\n", 1, ""), "name: x", "labels: {a: b}", 1),
		"there is no HTCJob and no HT": "# nothing\n",
		"spec.script.image in body":    strings.Replace(fmt.Sprintf(one, "x", "true\n", 1, ""), "image: centos", `image: ""`, 1),
	} {
		_, err := b.Lab.RunInput(t.Context(), text, "htcd", "submit", "-", "-n", b.Namespace)
		require.ErrorContains(t, err, name)
	}
}
