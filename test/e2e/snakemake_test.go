//go:build !releases

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// snake is Debian's snakemake in a test's namespace, with the profile of examples/snakemake and the rights that
// docs/snakemake.md names.
type snake struct {
	*trial.Bench
	dir   string // as seen in the lab, too; the working directory is flow in it
	image string
}

func newSnake(t *testing.T) snake {
	b := trial.New(t)
	s := snake{b, b.Lab.Path("flow-" + b.Namespace), b.Image("snakemake")}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(s.dir)) })
	require.NoError(t, os.MkdirAll(s.dir, 0o755))
	// Where the user's is bound.
	require.NoError(t, os.WriteFile(filepath.Join(s.image, "usr", "bin", "htcd"), nil, 0o755))
	onHost(t, "cp", "-r", "../../examples/snakemake", filepath.Join(s.dir, "flow"))

	settings := filepath.Join(s.dir, "flow", "profile", "htcd.yaml")
	text, err := os.ReadFile(settings)
	require.NoError(t, err)
	changed := strings.Replace(string(text), "snakemake/snakemake:v7.32.4", s.image, 1)
	require.NotEqual(t, string(text), changed)
	require.NoError(t, os.WriteFile(settings, []byte(changed), 0o644))

	b.Kubectl("create", "serviceaccount", "alice")
	for _, role := range []string{"htcjob-user", "htcjob-input-files"} {
		b.Kubectl("create", "rolebinding", role, "--clusterrole="+role, "--serviceaccount="+b.Namespace+":alice")
	}
	kubeconfig := filepath.Join(s.dir, "kubeconfig")
	onHost(t, "cp", b.Lab.Kubeconfig(), kubeconfig)
	onHost(t, "chmod", "644", kubeconfig)
	token := strings.TrimSpace(b.Kubectl("create", "token", "alice"))
	b.Kubectl("--kubeconfig", kubeconfig, "config", "set-credentials", "lab", "--token", token)
	b.Kubectl("--kubeconfig", kubeconfig, "config", "set-context", "--current", "--namespace", b.Namespace)
	_, err = b.Lab.RunAs(t.Context(), "root", "chown", "-R", "alice:", s.dir+"/flow")
	require.NoError(t, err)
	return s
}

// onHost runs a program of the machine on which the tests run.
func onHost(t *testing.T, program string, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	require.NoError(t, err, string(out))
}

// make is snakemake with the profile.
func (s snake) make(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(
		ctx,
		s.Lab.Bin("lab"),
		append([]string{
			"as",
			"alice",
			"apptainer",
			"--quiet",
			"exec",
			"--contain",
			"--bind",
			s.dir,
			"--bind",
			s.Lab.Path("htcd", "bin", "htcd") + ":/usr/bin/htcd",
			"--pwd",
			filepath.Join(s.dir, "flow"),
			"--env",
			"KUBECONFIG=" + filepath.Join(s.dir, "kubeconfig"),
			s.image,
			"bash",
			"-c",
			`echo $$ >pid; exec snakemake --profile profile "$@"`,
			"bash",
		}, args...)...)
}

func (s snake) file(name string) string {
	text, err := os.ReadFile(filepath.Join(s.dir, "flow", name))
	if os.IsNotExist(err) {
		return ""
	}
	require.NoError(s.T, err)
	return string(text)
}

func (s snake) jobs(rule string) []v1alpha1.HTCJob {
	list, err := s.Jobs.List(s.T.Context(), metav1.ListOptions{LabelSelector: "snakemake-rule=" + rule})
	require.NoError(s.T, err)
	return list.Items
}

func TestSnakemakeRunsItsRulesAsHTCJobs(t *testing.T) {
	t.Parallel()
	s := newSnake(t)
	out, err := s.make(t.Context()).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, "1 1274\n2 1274\n3 1274\n", s.file("summary.txt"))
	require.Len(t, s.jobs("simulate"), 3)
	require.Len(t, s.jobs("merge"), 1)
	fits := s.jobs("fit")
	require.Len(t, fits, 3)
	require.NotNil(t, fits[0].Spec.Inputs[0].JobRef, "what is large is not sent again")
	require.Len(t, s.jobs("merge")[0].Spec.Inputs, 1, "what is small is")

	out, err = s.make(t.Context()).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "Nothing to be done")
}

func TestSnakemakeSaysWhyARuleFailedAndRemovesWhatItStopped(t *testing.T) {
	t.Parallel()
	s := newSnake(t)
	snakefile := `
rule all:
    input: "bad", "slow"
rule bad:
    output: "bad"
    log: "logs/bad"
    shell: "echo written > {log}; echo is not well >&2; touch {output}; exit 7"
rule slow:
    output: "slow"
    shell: "sleep 1000"
`
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "flow", "Snakefile"), []byte(snakefile), 0o644))
	running := s.make(t.Context(), "--keep-going")
	said, err := os.Create(filepath.Join(s.dir, "said"))
	require.NoError(t, err)
	defer said.Close()
	running.Stdout, running.Stderr = said, said
	require.NoError(t, running.Start())
	says := func() string {
		text, err := os.ReadFile(said.Name())
		require.NoError(t, err)
		return string(text)
	}
	s.Eventually(func() bool { return strings.Contains(says(), "Error in rule bad") && len(s.jobs("slow")) == 1 }, says)
	require.Contains(t, says(), "is not well")
	require.Equal(t, "written\n", s.file("logs/bad"))
	require.NoFileExists(t, filepath.Join(s.dir, "flow", "bad"))

	// It alone, as apptainer passes signals on.
	_, err = s.Lab.RunAs(t.Context(), "root", "kill", "-INT", strings.TrimSpace(s.file("pid")))
	require.NoError(t, err)
	require.Error(t, running.Wait())
	s.Eventually(func() bool { return len(s.jobs("slow")) == 0 }, says)
	require.Len(t, s.jobs("bad"), 1, "its output stays for reading")

	again := strings.ReplaceAll(strings.ReplaceAll(snakefile, "exit 7", "exit 0"), "sleep 1000", "touch {output}")
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "flow", "Snakefile"), []byte(again), 0o644))
	out, err := s.make(t.Context()).CombinedOutput()
	require.NoError(t, err, string(out))
	require.FileExists(t, filepath.Join(s.dir, "flow", "slow"))
}
