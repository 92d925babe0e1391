package e2e

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

const reader = `apiVersion: htc.cern.ch/v1alpha1
kind: HTCJob
metadata: {name: reader}
spec:
  script: {image: centos, command: bash, source: "cat fit.yaml; sha256sum table\n"}
`

// fileIn makes a file in a directory of the test's.
func fileIn(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// bundles lists the ConfigMaps that belong to HTCJobs.
func bundles(b *trial.Bench) []string {
	b.T.Helper()
	return strings.Fields(
		b.Kubectl(
			"get",
			"configmaps",
			"-o",
			`jsonpath={range .items[?(@.metadata.ownerReferences[0].kind=="HTCJob")]}{.metadata.name} {end}`,
		),
	)
}

func TestSubmittedFilesAreInputsAndGoWithTheirHTCJob(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	dir := t.TempDir()
	file := fileIn(t, dir, "job.yaml", reader)
	// Together 1 MiB, of which one is text that is long in JSON, and one is no text.
	fit, table := strings.Repeat("<", 700<<10)+"\n", strings.Repeat("\xff\x00", (1<<20-700<<10-1)/2)
	submit := func(name string, args ...string) string {
		t.Helper()
		words := append(
			[]string{
				"submit",
				file,
				"-n",
				b.Namespace,
				"--input",
				filepath.Join(dir, name),
				"--input",
				"table=" + filepath.Join(dir, "a table"),
			},
			args...)
		out, err := b.Lab.Run(t.Context(), "htcd", words...)
		require.NoError(t, err)
		return out
	}
	fileIn(t, dir, "fit.yaml", fit)
	fileIn(t, dir, "a table", table)
	require.Equal(t, "htcjob.htc.cern.ch/reader submitted\n", submit("fit.yaml", "--watch"))
	job := b.Fetched("reader")
	require.Equal(t, fit+fmt.Sprintf("%x  table\n", sha256.Sum256([]byte(table))), b.Output(job, 0))
	first := bundles(b)
	require.Len(t, first, 1)
	require.Equal(t, "true", b.Kubectl("get", "configmap", first[0], "-o", "jsonpath={.immutable}"))
	require.Equal(
		t,
		string(job.UID),
		b.Kubectl("get", "configmap", first[0], "-o", "jsonpath={.metadata.ownerReferences[0].uid}"),
	)

	// The same files change nothing; others are another attempt, and the first ConfigMap has had its time.
	require.Equal(t, "htcjob.htc.cern.ch/reader unchanged\n", submit("fit.yaml", "--watch"))
	fileIn(t, dir, "fit.yaml", "it's another\n")
	require.Equal(t, "htcjob.htc.cern.ch/reader submitted\n", submit("fit.yaml", "--watch"))
	again := b.Fetched("reader")
	require.EqualValues(t, 2, again.Status.Attempt)
	require.True(t, strings.HasPrefix(b.Output(again, 0), "it's another\n"))
	second := bundles(b)
	require.Len(t, second, 1)
	require.NotEqual(t, first, second)

	// Deleted and submitted again at once: Kubernetes deletes the ConfigMap of the first meanwhile.
	b.Kubectl("delete", "htcjob", "reader", "--timeout="+trial.Patience.String())
	require.Equal(t, "htcjob.htc.cern.ch/reader submitted\n", submit("fit.yaml", "--watch"))
	require.Equal(t, second, bundles(b), "its name follows from what is in it")

	b.Kubectl("delete", "htcjob", "reader", "--timeout="+trial.Patience.String())
	b.Eventually(
		func() bool { return len(bundles(b)) == 0 },
		func() string { return "ConfigMaps are left: " + strings.Join(bundles(b), " ") },
	)
}

// Some 20 MB, of which a first client has sent a part before its connection broke.
func TestALargeInputIsUploadedGoesOnWhereItWasCutAndGoesWithItsHTCJob(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	dir := t.TempDir()
	content := strings.Repeat("0123456789abcdef", 20<<16)
	events := fileIn(t, dir, "events.root", content)
	digest := fmt.Sprintf("%x", sha256.Sum256([]byte(content)))
	at := "/apis/output.htc.cern.ch/v1alpha1/namespaces/" + b.Namespace + "/uploads/sha256:" + digest
	client, err := kubernetes.NewForConfig(trial.Config(t))
	require.NoError(t, err)
	patch := func(parameter, value string, body io.Reader) error {
		return client.CoreV1().
			RESTClient().
			Patch("").
			AbsPath(at).
			Param(parameter, value).
			Body(body).
			Do(t.Context()).
			Error()
	}
	require.NoError(t, patch("size", fmt.Sprint(len(content)), strings.NewReader("")))
	require.NoError(t, patch("offset", "0", strings.NewReader(content[:5<<20])))
	cut := io.MultiReader(strings.NewReader(content[5<<20:9<<20]), iotest.ErrReader(errors.New("cut")))
	require.Error(t, patch("offset", fmt.Sprint(5<<20), cut))
	list := func() string {
		t.Helper()
		out, err := b.Lab.Run(t.Context(), "htcd", "upload", "--list", "-n", b.Namespace)
		require.NoError(t, err)
		return out
	}
	require.Contains(t, list(), "%")
	job := strings.ReplaceAll(
		strings.Replace(reader, "cat fit.yaml; sha256sum table", "sha256sum events.root", 1),
		"reader",
		"large",
	)
	out, err := b.Lab.Run(
		t.Context(),
		"htcd",
		"submit",
		fileIn(t, dir, "job.yaml", job),
		"-n",
		b.Namespace,
		"--input",
		events,
		"--watch",
	)
	require.NoError(t, err)
	require.Equal(t, "htcjob.htc.cern.ch/large submitted\n", out)
	require.Equal(t, digest+"  events.root\n", b.Output(b.Fetched("large"), 0))
	require.Contains(t, list(), "HTCJob large")
	_, err = b.Lab.Run(t.Context(), "htcd", "upload", "--delete", "sha256:"+digest, "-n", b.Namespace)
	require.ErrorContains(t, err, "is an input of HTCJob large")
	b.Kubectl("delete", "htcjob", "large", "--timeout="+trial.Patience.String())
	b.Eventually(func() bool { // htcd learns of it a moment later
		_, err = b.Lab.Run(t.Context(), "htcd", "upload", "--delete", "sha256:"+digest, "-n", b.Namespace)
		return err == nil
	}, list)
	require.NotContains(t, list(), digest)
}

func TestASubmissionThatWasInterruptedBeforeItsConfigMapIsCompleted(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	dir := t.TempDir()
	file, fit, table := fileIn(
		t,
		dir,
		"job.yaml",
		reader,
	), fileIn(
		t,
		dir,
		"fit.yaml",
		"1\n",
	), fileIn(
		t,
		dir,
		"table",
		"2\n",
	)
	submit := func(args ...string) {
		t.Helper()
		_, err := b.Lab.Run(
			t.Context(),
			"htcd",
			append([]string{"submit", file, "-n", b.Namespace, "--input", fit, "--input", table}, args...)...)
		require.NoError(t, err)
	}
	submit("--watch")
	bundle := bundles(b)
	require.Len(t, bundle, 1)
	b.Kubectl("delete", "configmap", bundle[0])
	b.Kubectl("annotate", "htcjob", "reader", v1alpha1.RerunAnnotation+"=1")
	b.Event("reader", "there is no configmap "+bundle[0])
	submit()
	b.Until("reader", "run again", func(job *v1alpha1.HTCJob) bool {
		return job.Status.Attempt == 2 && job.Status.Phase == v1alpha1.PhaseSucceeded
	})
}

func TestARefusedSubmissionLeavesNoConfigMap(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	anna, _ := trial.User(t, b.Namespace)
	dir := t.TempDir()
	fit := fileIn(t, dir, "fit.yaml", "1\n")
	bad := fileIn(t, dir, "bad.yaml", strings.Replace(reader, "image:", "imgae:", 1))
	for name, c := range map[string]struct {
		args  []string
		words string
	}{
		"a misspelt field":      {[]string{bad, "--input", fit}, ".spec.script.imgae: field not declared in schema"},
		"a name that htcd uses": {[]string{fileIn(t, dir, "job.yaml", reader), "--input", "script=" + fit}, "an input must not be called script"},
		"a program":             {[]string{"/bin/true"}, "/bin/true: yaml: control characters are not allowed"},
	} {
		_, err := b.Lab.Run(t.Context(), "htcd", append(append([]string{"submit"}, c.args...), "-n", b.Namespace)...)
		require.ErrorContains(t, err, c.words, name)
	}
	require.Empty(t, bundles(b))
	require.Empty(t, b.Kubectl("get", "htcjobs", "-o", "name"))

	one := fileIn(t, dir, "one.yaml", reader)
	_, err := b.Lab.Run(t.Context(), "htcd", "submit", one, "--input", fit, "--kubeconfig", anna)
	require.ErrorContains(t, err, "--input needs the right to create and get ConfigMaps in namespace "+b.Namespace)
	require.Empty(t, b.Kubectl("get", "htcjobs", "-o", "name"), "it would wait for its ConfigMap")
	b.Kubectl(
		"create",
		"rolebinding",
		"files",
		"--clusterrole=htcjob-input-files",
		"--serviceaccount="+b.Namespace+":anna",
	)
	_, err = b.Lab.Run(
		t.Context(),
		"htcd",
		"submit",
		one,
		"--watch",
		"--input",
		fit,
		"--input",
		"table="+fit,
		"--kubeconfig",
		anna,
	)
	require.NoError(t, err)
	require.Len(t, bundles(b), 1)
}
