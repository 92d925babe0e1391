//go:build !releases

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"htc.cern.ch/htcd/test/trial"
)

// argoBench is a namespace with deploy/components/argo-plugin, in which a workflow has been started. The test does what
// Argo's controller would do.
type argoBench struct {
	*trial.Bench
	kubeconfig, token string
}

func newArgoBench(t *testing.T) argoBench {
	t.Helper()
	b := argoBench{Bench: trial.New(t)}
	crds, err := filepath.Abs("testdata/argo-crds.yaml")
	require.NoError(t, err)
	b.Kubectl("apply", "-f", crds)
	b.Kubectl("wait", "--for=condition=Established", "-f", crds)

	dir := t.TempDir()
	component, err := filepath.Abs("../../deploy/components/argo-plugin")
	require.NoError(t, err)
	component, err = filepath.Rel(dir, component)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), fmt.Appendf(nil, `namespace: %s
components: [%s]
configMapGenerator:
- {name: argo-plugin, literals: [image=registry.example.org/htcd:v1], options: {annotations: {config.kubernetes.io/local-config: "true"}}}
`, b.Namespace, component), 0o600))
	b.Kubectl("apply", "-k", dir)
	var sidecar corev1.Container
	require.NoError(
		t,
		yaml.UnmarshalStrict(
			[]byte(
				b.Kubectl("get", "configmap", "htcjob-executor-plugin", "-o", `jsonpath={.data.sidecar\.container}`),
			),
			&sidecar,
		),
	)
	require.Equal(t, "registry.example.org/htcd:v1", sidecar.Image)

	admin, err := os.ReadFile(b.Lab.Kubeconfig())
	require.NoError(t, err)
	var config map[string]any
	require.NoError(t, yaml.Unmarshal(admin, &config))
	account := strings.TrimSpace(b.Kubectl("create", "token", "htcjob-executor-plugin"))
	config["users"] = []any{map[string]any{"name": "lab", "user": map[string]any{"token": account}}}
	text, err := yaml.Marshal(config)
	require.NoError(t, err)
	b.kubeconfig, b.token = filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(b.kubeconfig, text, 0o600))
	require.NoError(t, os.WriteFile(b.token, []byte("secret"), 0o600))
	b.create(`{"kind": "Workflow", "metadata": {"name": "w"}, "status": {"startedAt": "2026-03-01T12:00:00Z"}}`)
	return b
}

func (b argoBench) create(object string) {
	b.T.Helper()
	object = strings.Replace(object, "{", `{"apiVersion": "argoproj.io/v1alpha1", `, 1)
	_, err := b.Lab.RunInput(b.T.Context(), object, "kubectl", "-n", b.Namespace, "create", "-f", "-")
	require.NoError(b.T, err)
}

// plugin starts the plugin; end sends it a signal and waits for it.
func (b argoBench) plugin() (end func(s os.Signal)) {
	b.T.Helper()
	c := exec.CommandContext(
		b.T.Context(),
		b.Lab.Path("htcd", "bin", "htcd"),
		"argo-plugin",
		"--kubeconfig",
		b.kubeconfig,
		"-n",
		b.Namespace,
		"--workflow",
		"w",
		"--token-file",
		b.token,
		"--listen",
		"127.0.0.1:0",
		"--log-format",
		"text",
	)
	c.Stderr = b.T.Output()
	require.NoError(b.T, c.Start())
	return func(s os.Signal) {
		require.NoError(b.T, c.Process.Signal(s))
		_ = c.Wait()
	}
}

// argoNode is what the task set says of a step.
type argoNode struct {
	Phase, Message string
	Outputs        struct {
		Parameters       []struct{ Name, Value string }
		Result, ExitCode string
	}
}

// step waits until a step is in a phase, and its message contains a text.
func (b argoBench) step(id, phase, message string) (is argoNode) {
	b.T.Helper()
	b.Eventually(func() bool {
		is = argoNode{}
		if text := b.Kubectl("get", "workflowtaskset", "w", "-o", "jsonpath={.status.nodes."+id+"}"); text != "" {
			require.NoError(b.T, json.Unmarshal([]byte(text), &is))
		}
		return is.Phase == phase && strings.Contains(is.Message, message)
	}, func() string { return fmt.Sprintf("%s is %+v\n%s", id, is, b.Kubectl("get", "htcjobs")) })
	return is
}

func (b argoBench) tasks(patch string) {
	b.T.Helper()
	b.Kubectl("patch", "workflowtaskset", "w", "--type=merge", "-p", patch)
}

func TestThePluginForArgoRunsSteps(t *testing.T) {
	t.Parallel()
	b := newArgoBench(t)
	job := func(rest string) string {
		return `{"name": "step", "plugin": {"htcjob": {"script": {"image": "centos", "command": "bash", "source": ` + rest + `}}}`
	}
	b.create(`{"kind": "WorkflowTaskSet", "metadata": {"name": "w"}, "spec": {"tasks": {
		"w-1": ` + job(`"echo 42"}, "result": "stdout"`) + `, "w-2": ` + job(`"echo oh no >&2; exit 3"}`) + `,
		"w-3": ` + job(`""}, "reslut": "stdout"`) + `, "w-4": ` + job(`"sleep 1000"}`) + `, "w-5": ` + job(`"sleep 1000"}`) + `,
		"w-6": {"name": "other", "plugin": {"slack": {}}},
		"w-8": {"name": "flow", "plugin": {"htcworkflow": {"result": "stdout", "steps": [
			{"name": "a", "job": {"script": {"image": "centos", "command": "bash", "source": "echo 7"}}}]}}}}}}`)
	end := b.plugin()
	good, bad := b.step("w-1", "Succeeded", ""), b.step("w-2", "Failed", "exit code 3: oh no")
	require.Equal(t, []string{"42", "0"}, []string{good.Outputs.Result, good.Outputs.ExitCode})
	require.Equal(t, "3", bad.Outputs.ExitCode)
	graph := b.step("w-8", "Succeeded", "1 node is done")
	require.Equal(t, []string{"7", "0"}, []string{graph.Outputs.Result, graph.Outputs.ExitCode})
	b.step("w-3", "Error", `unknown field "spec.reslut"`)
	removed, vanished := b.step("w-4", "Pending", "running").Outputs.Parameters[0].Value, b.step("w-5", "Pending", "running").Outputs.Parameters[0].Value

	end(os.Kill)
	before := b.Get(vanished)
	b.Kubectl("delete", "htcjob", removed)
	end = b.plugin()
	b.step("w-4", "Failed", "was deleted")
	require.Equal(t, before.UID, b.Get(vanished).UID)

	b.tasks(`{"spec": {"tasks": {"w-5": null}}}`)
	b.Kubectl("wait", "--for=delete", "htcjob/"+vanished, "--timeout="+trial.Patience.String())
	require.Empty(t, b.Queued(trial.Tagged(before)))

	// As at the end of a workflow: the pod is deleted, and then its steps are over.
	b.tasks(`{"spec": {"tasks": {"w-7": ` + job(`"sleep 1000"}`) + `}}}`)
	last := b.step("w-7", "Pending", "running").Outputs.Parameters[0].Value
	over := make(chan struct{})
	go func() { defer close(over); end(os.Interrupt) }()
	b.tasks(`{"spec": {"tasks": {"w-7": null}}, "metadata": {"labels": {"workflows.argoproj.io/completed": "true"}}}`)
	<-over
	b.Kubectl("wait", "--for=delete", "htcjob/"+last, "--timeout="+trial.Patience.String())

	list := strings.Fields(b.Kubectl("get", "htcjobs", "-o", "name"))
	require.Len(t, list, 2, "those that have ended stay: %v", list)
	for _, name := range list {
		require.EqualValues(t, 1, b.Get(strings.TrimPrefix(name, "htcjob.htc.cern.ch/")).Status.Attempt)
	}
}
