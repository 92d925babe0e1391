//go:build argo

package argo

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

// The images of Argo's programs, under the host that stands for no registry.
const (
	controllerImage = "localhost/workflow-controller:lab"
	executorImage   = "localhost/argoexec:lab"
)

// bench is a test's namespace, in which workflows can run.
type bench struct{ *trial.Bench }

func newBench(t *testing.T) bench {
	t.Helper()
	b := bench{trial.New(t)}
	require.NoError(t, installed(b))
	b.Kubectl("label", "namespace", b.Namespace, "pod-security.kubernetes.io/enforce=baseline", "--overwrite")
	return b
}

var (
	once       sync.Once
	installing error
)

// installed installs Argo with its own manifests, once for all tests.
func installed(b bench) error {
	once.Do(func() { installing = install(b) })
	return installing
}

func install(b bench) error {
	ctx := b.T.Context()
	c, clone, err := b.Cache()
	if err != nil {
		return err
	}
	argo, err := c.Argo(ctx, filepath.Join(clone, "test", "parts", "argo", trial.PeerRelease()))
	if err != nil {
		return err
	}
	for tag, program := range map[string]string{controllerImage: "workflow-controller", executorImage: "argoexec"} {
		if err := parts.LoadProgram(ctx, b.Lab, tag, filepath.Join(argo, "bin", program), "/bin/"+program); err != nil {
			return err
		}
	}
	dir := b.Lab.Path("node", "argo")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	manifests, err := filepath.Rel(dir, filepath.Join(argo, "manifests"))
	if err != nil {
		return err
	}
	// The release's own way to install it: from 4.0 on its CRDs validate the whole of a workflow and of a task set.
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), fmt.Appendf(nil, `namespace: argo
resources: [%q]
patches:
- target: {kind: Deployment, name: argo-server}
  patch: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: argo-server}, $patch: delete}"
- target: {kind: Deployment, name: workflow-controller}
  patch: |
    - {op: replace, path: /spec/template/spec/containers/0/image, value: %q}
    - {op: replace, path: /spec/template/spec/containers/0/args, value: [--executor-image, %q]}
    - {op: add, path: /spec/template/spec/containers/0/env/-, value: {name: ARGO_EXECUTOR_PLUGINS, value: "true"}}
    - {op: add, path: /spec/template/spec/containers/0/env/-, value: {name: DEFAULT_REQUEUE_TIME, value: 2s}}
`, manifests+"/cluster-install", controllerImage, executorImage), 0o600); err != nil {
		return err
	}
	if _, err := b.Lab.RunInput(
		ctx,
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: argo}\n",
		"kubectl",
		"apply",
		"-f",
		"-",
	); err != nil {
		return err
	}
	// A busy apiserver takes longer than it grants itself for the CRDs of 4.0, which have megabytes.
	b.Eventually(func() bool {
		_, err = b.Lab.Run(ctx, "kubectl", "apply", "--server-side", "-k", dir)
		return err == nil
	}, func() string { return fmt.Sprint("Argo is not installed: ", err) })
	if _, err := b.Lab.Run(
		ctx,
		"kubectl",
		"-n",
		"argo",
		"rollout",
		"status",
		"deployment/workflow-controller",
		"--timeout=3m",
	); err != nil {
		said, _ := b.Lab.Run(ctx, "kubectl", "-n", "argo", "describe", "pods")
		return fmt.Errorf("%w\n%s", err, said)
	}
	return nil
}

// plugin installs deploy/components/argo-plugin in the test's namespace, as docs/argo.md says.
func (b bench) plugin() {
	b.T.Helper()
	dir := b.T.TempDir()
	component, err := filepath.Abs("../../deploy/components/argo-plugin")
	require.NoError(b.T, err)
	component, err = filepath.Rel(dir, component)
	require.NoError(b.T, err)
	require.NoError(b.T, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), fmt.Appendf(nil, `namespace: %s
components: [%s]
configMapGenerator:
- {name: argo-plugin, literals: [image=localhost/htcd:dev], options: {annotations: {config.kubernetes.io/local-config: "true"}}}
`, b.Namespace, component), 0o600))
	b.Kubectl("apply", "-k", dir)
}

// workflow is what a test reads of one.
type workflow struct {
	Metadata struct{ Name string }
	Status   struct {
		Phase, Message string
		Nodes          map[string]node
	}
}

type node struct {
	DisplayName, Type, Phase, Message string
	Outputs                           struct {
		Parameters       []struct{ Name, Value string }
		Result, ExitCode string
	}
}

// submit creates a workflow and returns its name.
func (b bench) submit(manifest string) string {
	b.T.Helper()
	out, err := b.Lab.RunInput(b.T.Context(), manifest, "kubectl", "-n", b.Namespace, "create", "-o", "name", "-f", "-")
	require.NoError(b.T, err)
	_, name, _ := strings.Cut(strings.TrimSpace(out), "/")
	return name
}

// of returns a workflow of one template for htcd's plugin, whose spec is given as YAML in one line.
func of(spec string, more ...string) string {
	return fmt.Sprintf(
		`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {generateName: w-}, spec: {entrypoint: main, serviceAccountName: argo-workflow,
  %s templates: [{name: main, plugin: {htcjob: %s}}]}}`,
		strings.Join(more, " "),
		spec,
	)
}

// script is a spec with the source of its script.
func script(source, more string) string {
	return fmt.Sprintf("{script: {image: centos, command: bash, source: %q}%s}", source, more)
}

func (b bench) workflow(name string) (w workflow) {
	b.T.Helper()
	require.NoError(b.T, json.Unmarshal([]byte(b.Kubectl("get", "workflow", name, "-o", "json")), &w))
	return w
}

// until waits for a phase of a workflow.
func (b bench) until(name string, phase string) workflow {
	b.T.Helper()
	var w workflow
	b.Eventually(func() bool { w = b.workflow(name); return w.Status.Phase == phase }, func() string {
		return fmt.Sprintf("%s never was %s: %+v\n%s", name, phase, w, b.Kubectl("get", "htcjobs,pods"))
	})
	return w
}

// running reports whether a workflow has not ended.
func (b bench) running(name string) bool {
	phase := b.workflow(name).Status.Phase
	return phase != "Succeeded" && phase != "Failed" && phase != "Error"
}

// step returns a workflow's only node of a name.
func (w workflow) step(t *testing.T, name string) node {
	t.Helper()
	for _, n := range w.Status.Nodes {
		if n.DisplayName == name || name == "" {
			return n
		}
	}
	require.FailNow(t, "no such step", "%s in %+v", name, w)
	return node{}
}

func (n node) parameter(name string) string {
	for _, p := range n.Outputs.Parameters {
		if p.Name == name {
			return p.Value
		}
	}
	return ""
}

// jobs returns the HTCJobs that the plugin has made for a workflow.
func (b bench) jobs(workflow string) []v1alpha1.HTCJob {
	return b.selected("workflows.argoproj.io/workflow=" + workflow)
}

func (b bench) selected(labels string) []v1alpha1.HTCJob {
	b.T.Helper()
	var list v1alpha1.HTCJobList
	require.NoError(b.T, json.Unmarshal([]byte(b.Kubectl("get", "htcjobs", "-l", labels, "-o", "json")), &list))
	return list.Items
}
