//go:build !releases

package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

// pushedAll waits until a workflow has ended and everything that can be pushed has been.
func (f *flow) pushedAll() *v1alpha1.HTCWorkflow {
	f.T.Helper()
	return f.until("pushed", func(w *v1alpha1.HTCWorkflow) bool {
		c := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionOutputsPushed)
		return w.Status.Phase.Terminal() && c != nil && (c.Reason == "Pushed" || c.Reason == "NotPushed")
	})
}

func TestStepsPushWhatTheyBringBackAndPullItFromTheRegistry(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	at := b.Registry() + "/" + b.Namespace
	f := flowIn(b, "pushing", fmt.Sprintf(`
  sequences: {count: 2}
  steps:
  - name: job_a
    push: {artifact: %[1]q}
    job:
      script: {image: centos, command: sh, source: "echo $jobid >a.txt; mkdir d; echo deep >d/x; echo \"$registry $pull_tag $push_tag\""}
      outputs: [{path: a.txt}, {path: d}]
  - name: job_b
    pull: [{from: job_a, path: a.txt}]
    forEach: {count: 2}
    push: {artifact: "%[1]s/b", tag: v1}
    job: {script: {image: centos, command: sh, source: "cat a.txt >b.txt; echo \"$registry $pull_tag $push_tag\""}}
  - name: empty
    push: {artifact: %[1]q}
    job: {script: {image: centos, command: sh, source: "echo \"$registry,$pull_tag,$push_tag\""}}
  - name: all
    pairing: All
    push: {artifact: %[1]q}
    job: {script: {image: centos, command: sh, source: "echo done >all.txt"}}
  - name: last
    job: {script: {image: centos, command: sh, source: "echo \"$registry,$pull_tag,$push_tag,\""}}
`, at))
	w := f.pushedAll()
	require.Equal(t, v1alpha1.PhaseSucceeded, w.Status.Phase, w.Status)
	c := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionOutputsPushed)
	require.Equal(t, "NotPushed", c.Reason)
	require.Contains(t, c.Message, "7 artifacts are pushed, 2 cannot be pushed; the output of empty/job_")
	require.Contains(t, c.Message, "it has no files")
	for _, reference := range []string{
		"/job_0:job_a", "/job_1:job_a", "/b/job_0:v1-0", "/b/job_0:v1-1", "/b/job_1:v1-0", "/b/job_1:v1-1", "/all:all",
	} {
		require.NotEmpty(t, digest(b, at+reference), reference)
	}
	require.Empty(t, digest(b, at+"/job_0:empty"))
	require.Equal(t, at+"  job_a\n", f.output(w, "job_a/job_0", "_condor_stdout"))
	require.Equal(t, at+"/b job_a v1-1\n", f.output(w, "job_b/job_0/1", "_condor_stdout"))
	require.Equal(t, ",,,\n", f.output(w, "last/job_0", "_condor_stdout"))

	g := flowIn(b, "pulling", fmt.Sprintf(`
  sequences: {count: 2}
  steps:
  - name: use
    pull: [{artifact: %[1]q, tag: job_a, path: "*.txt"}, {artifact: %[1]q, tag: job_a, path: d}]
    job: {script: {image: centos, command: sh, source: "cat a.txt d/x; ls; echo \"$registry $pull_tag $push_tag\""}}
  - name: once
    pairing: All
    pull: [{artifact: %[1]q, tag: all, path: all.txt}]
    job: {script: {image: centos, command: sh, source: "cat all.txt"}}
`, at))
	w = g.ended()
	require.Equal(t, v1alpha1.PhaseSucceeded, w.Status.Phase, w.Status)
	for i := range 2 {
		text := g.output(w, fmt.Sprintf("use/job_%d", i), "_condor_stdout")
		require.Regexp(t, fmt.Sprintf("^job_%d\ndeep\n", i), text)
		require.Contains(t, text, at+" job_a \n")
	}
	require.Equal(t, "done\n", g.output(w, "once/all", "_condor_stdout"))
}

func TestArtifactsInAnEphemeralRegistryGoWithTheirWorkflow(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	world, err := parts.Open(b.Lab)
	require.NoError(t, err)
	ephemeral := fmt.Sprintf("localhost:%d", world.Ports.Registry) // the same registry, as which it wants a login
	account := base64.StdEncoding.EncodeToString([]byte(parts.RegistryUser + ":" + parts.RegistryPassword))
	jobSecret(
		b,
		"login",
		".dockerconfigjson",
		fmt.Sprintf(`{"auths": {%q: {"auth": %[3]q}, %[2]q: {"auth": %[3]q}}}`, ephemeral, b.Registry(), account),
	)
	apply := func(name, more string) *flow {
		return flowIn(b, name, fmt.Sprintf(`
  sequences: {count: 2}
  %[4]s
  steps:
  - name: goes
    push: {artifact: "%[1]s/%[2]s/%[3]s"}
    job:
      script: {image: centos, command: sh, source: "echo the same >a"}
      credentials: [{name: login, secretKeyRef: {name: login, key: .dockerconfigjson}, as: Registry}]
  - name: stays
    push: {artifact: "%[5]s/%[2]s/%[3]s"}
    job: {script: {image: centos, command: sh, source: "echo other >a"}}
`, ephemeral, b.Namespace, name, more, b.Registry()))
	}
	at := func(name, reference string) string { return b.Registry() + "/" + b.Namespace + "/" + name + reference }
	flows := []*flow{apply("dropped", ""), apply("kept", "keepArtifacts: true")}
	for _, f := range flows {
		w := f.pushedAll()
		require.Equal(
			t,
			"4 artifacts are pushed",
			meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionOutputsPushed).Message,
		)
	}
	moved := b.Push(at("dropped", "/job_1:goes"), map[string][]byte{"b": []byte("somebody else's")})
	for i, f := range flows {
		b.Kubectl("delete", "htcworkflow", f.name, "--timeout="+trial.Patience.String())
		require.Equal(t, i == 0, digest(b, at(f.name, "/job_0:goes")) == "", f.name)
		require.NotEmpty(t, digest(b, at(f.name, "/job_1:goes")))
		for sequence := range 2 {
			require.NotEmpty(t, digest(b, at(f.name, fmt.Sprintf("/job_%d:stays", sequence))))
		}
	}
	require.Equal(t, moved, digest(b, at("dropped", "/job_1:goes")))
}

func TestStepsThatNameAWrongRegistryAreRefused(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	for name, c := range map[string]struct{ step, prefix, words string }{
		"elsewhere": {"push: {artifact: other.example.org/x}", "job_", "step a: push: the registry other.example.org is not one that the administrator of htcd allows"},
		"capitals":  {fmt.Sprintf("push: {artifact: %q}", b.Registry()+"/x"), "Job_", "step a: push:"},
		"pull":      {"pull: [{artifact: other.example.org/x, tag: v1, path: a}]", "job_", "the registry other.example.org is not one"},
		"same":      {"", "job_", "jobRef.proc Same, {{item.NAME}} and {{proc}} cannot be used in a workflow"},
	} {
		job := `{script: {image: centos, command: sh, source: "true"}}`
		if name == "same" {
			job = `{script: {image: centos, command: sh, source: "true"}, inputs: [{name: x, jobRef: {name: other, path: z, proc: Same}}]}`
		}
		f := flowIn(
			b,
			name,
			fmt.Sprintf(
				"\n  sequences: {prefix: %s}\n  steps:\n  - name: a\n    %s\n    job: %s\n",
				c.prefix,
				c.step,
				job,
			),
		)
		w := f.ended()
		require.Equal(t, "Refused", w.Status.Reason, name)
		require.Contains(
			t,
			meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionFailed).Message,
			c.words,
			name,
		)
	}
}

func TestAWorkflowsPushSurvivesAnAbsentRegistryAndTheDeathOfHTCd(t *testing.T) {
	b := trial.New(t)
	away := newFaulty(t)
	htcd := b.Lab.Part("htcd")
	listed := "--allow-registries=" + away.URL
	require.NoError(t, htcd.Restart(t.Context(), listed))
	t.Cleanup(func() { require.NoError(t, htcd.Restart(context.WithoutCancel(t.Context()))) })
	host := strings.TrimPrefix(away.URL, "http://")
	away.status.Store(http.StatusServiceUnavailable)
	f := flowIn(b, "waits", fmt.Sprintf(`
  sequences: {count: 3}
  steps:
  - name: a
    push: {artifact: %q}
    job: {script: {image: centos, command: sh, source: "echo $jobid >a"}}
`, host+"/m"))
	w := f.until("waiting for the registry", func(w *v1alpha1.HTCWorkflow) bool {
		said := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionOutputsPushed)
		return said != nil && said.Reason == "RegistryUnreachable"
	})
	require.Equal(t, v1alpha1.PhaseSucceeded, w.Status.Phase)
	require.Contains(t, meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionOutputsPushed).Message,
		"the output of a/job_0 to "+host+"/m/job_0:a: the registry "+host+" answers with status 503")

	away.killWhileItPushes(t, htcd, listed)
	w = f.pushedAll()
	require.Equal(
		t,
		"3 artifacts are pushed",
		meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionOutputsPushed).Message,
	)
	for i := range 3 {
		require.NotEmpty(t, digest(b, fmt.Sprintf("%s/m/job_%d:a", host, i)))
	}
}

// The example of docs/from-state-machine.md, on the lab's registry.
func TestTheStateMachineWithARegistry(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	at := b.Registry() + "/" + b.Namespace
	text, err := os.ReadFile("../../examples/workflow/registry.yaml")
	require.NoError(t, err)
	for i := range 4 {
		b.Push(fmt.Sprintf("%s/words/job_%d:v1", at, i), map[string][]byte{"words.txt": []byte("some words\n")})
	}
	_, spec, _ := strings.Cut(strings.ReplaceAll(string(text), "registry.example.org", at), "\nspec:\n")
	f := flowIn(b, "state-machine-registry", spec)
	w := f.pushedAll()
	require.Equal(t, v1alpha1.PhaseSucceeded, w.Status.Phase)
	require.Equal(
		t,
		"12 artifacts are pushed",
		meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionOutputsPushed).Message,
	)
	require.Equal(t, "JOB_3\nSOME WORDS\n", f.output(w, "job_b/job_3", "b.txt"))
	require.Equal(t, "this becomes "+at+"/state-machine/job_3:job_b\n", f.output(w, "job_b/job_3", "_condor_stdout"))
	require.NotEmpty(t, digest(b, at+"/state-machine/job_3:job_c"))
}

func TestAResumedWorkflowPushesNothingTwice(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	at := b.Registry() + "/" + b.Namespace
	f := flowIn(b, "resumed", fmt.Sprintf(`
  resume: FromFailure
  sequences: {count: 2}
  steps:
  - name: a
    push: {artifact: %[1]q}
    job: {script: {image: centos, command: sh, source: "echo $jobid >a"}}
  - name: b
    pull: [{from: a, path: a}]
    push: {artifact: %[1]q}
    job: {script: {image: centos, command: sh, source: "cat a >b; test $jobid = job_0"}}
`, at))
	message := func(w *v1alpha1.HTCWorkflow) string {
		return meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionOutputsPushed).Message
	}
	w := f.pushedAll()
	require.Equal(t, v1alpha1.PhaseFailed, w.Status.Phase)
	require.Equal(t, "3 artifacts are pushed", message(w))
	b.Push(at+"/job_0:a", map[string][]byte{"other": []byte("x")})
	other, before := digest(b, at+"/job_0:a"), digest(b, at+"/job_0:b")

	f.again("cat a >b", 2)
	w = f.pushedAll()
	require.Equal(t, v1alpha1.PhaseSucceeded, w.Status.Phase)
	require.Equal(t, "4 artifacts are pushed", message(w))
	require.Equal(t, other, digest(b, at+"/job_0:a"), "a user has put something else there")
	require.Equal(t, before, digest(b, at+"/job_0:b"))
	require.NotEmpty(t, digest(b, at+"/job_1:b"))
	require.Equal(t, "job_1\n", f.output(w, "b/job_1", "b"))
}
