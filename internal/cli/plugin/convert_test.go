package plugin

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// converted runs `convert` in a directory with a submit file and its program.
func converted(t *testing.T, text string, args ...string) (out, told string, err error) {
	t.Helper()
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("owl.sub", []byte(text), 0o600))
	require.NoError(t, os.WriteFile("owl.sh", []byte("#!/bin/sh\n"), 0o600))
	var stdout, stderr bytes.Buffer
	c := convertCommand()
	c.SilenceUsage, c.SilenceErrors = true, true
	c.SetOut(&stdout)
	c.SetErr(&stderr)
	c.SetArgs(append([]string{"owl.sub"}, args...))
	err = c.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestAConversionThatLosesNothingSaysNothingAndSucceeds(t *testing.T) {
	out, told, err := converted(t, "executable = owl.sh\nqueue 2\n", "--image", "centos")
	require.NoError(t, err)
	require.Empty(t, told)
	all, err := objects([]byte(out))
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, "owl", all[1].Metadata.Name)
}

func TestAConversionThatLosesALineNamesItAndFailsWithTheManifestOfTheRest(t *testing.T) {
	out, told, err := converted(
		t,
		"executable = owl.sh\ngetenv = true\nqueue\n",
		"--image",
		"centos",
		"-o",
		"made",
		"--name",
		"barn",
	)
	require.Equal(t, Exit{1}, err)
	require.Empty(t, out)
	require.Contains(t, told, "owl.sub:2: getenv = true\n    cannot: ")
	require.FileExists(t, filepath.Join("made", "barn.yaml"))
}

func TestAConversionThatCanMakeNothingSaysWhy(t *testing.T) {
	out, told, err := converted(t, "executable = owl.sh\nqueue\n")
	require.ErrorContains(t, err, "owl.sub: no HTCJob is made of it")
	require.Empty(t, out)
	require.Contains(t, told, "--image IMAGE")
}

func TestProgramsThatASubmitFileNamesRunOnlyIfTheyAreAskedFor(t *testing.T) {
	const text = "executable = owl.sh\narguments = $(x)\nqueue x from echo 7; echo 8 |\n"
	_, told, err := converted(t, text, "--image", "centos")
	require.Error(t, err)
	require.Contains(t, told, "none is run here")
	out, _, err := converted(t, text, "--image", "centos", "--run")
	require.NoError(t, err)
	require.Contains(t, out, `x: "8"`)
}

func TestStatementsOfTheCommandLineCountAsCondorSubmitTakesThem(t *testing.T) {
	const text = "executable = owl.sh\nrequest_cpus = 1\narguments = $(wood)\nqueue\n"
	out, _, err := converted(t, text, "--image", "centos", "wood=elm", "-a", "request_cpus = 2", "request_cpus=4")
	require.NoError(t, err)
	require.Contains(t, out, "- elm\n")
	require.Contains(t, out, "cpus: \"2\"")

	_, told, err := converted(t, text, "--image", "centos", "getenv=true")
	require.Equal(t, Exit{1}, err)
	require.Contains(t, told, "getenv=true\n    cannot: ")

	require.NoError(t, os.WriteFile("owl.job", []byte("JOB a owl.sub\n"), 0o600))
	var by conversion
	by.options.Image, by.before = "centos", []string{"wood=elm"}
	_, _, err = by.manifests("owl.job", contentOf(t, "owl.job"), new(bytes.Buffer))
	require.ErrorContains(t, err, "owl.job is a DAG file: VARS ALL_NODES")
	by.before = nil
	all, _, err := by.manifests("owl.job", contentOf(t, "owl.job"), new(bytes.Buffer))
	require.NoError(t, err)
	require.Equal(t, workflowKind, all[0].kind())
}

func TestASubmitFileThatWouldLoseALineIsNotSubmitted(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("owl.sub", []byte("executable = /bin/true\ngetenv = true\nqueue\n"), 0o600))
	var by conversion
	by.options.Image = "centos"
	_, _, err := by.manifests("owl.sub", contentOf(t, "owl.sub"), new(bytes.Buffer))
	require.ErrorContains(t, err, "something would be lost")
}

func TestWhatNoConfigMapHasRoomForIsUploadedWithASubmitFileOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	large := bytes.Repeat([]byte("owl"), 1<<20)
	require.NoError(t, os.WriteFile("barn.root", large, 0o600))
	require.NoError(t, os.WriteFile("owl.sub", []byte(`executable = /bin/ls
transfer_input_files = barn.root, small.txt
arguments = $(n)
queue n in (1, 2)
request_memory = 512M
transfer_input_files = small.txt
queue
`), 0o600))
	require.NoError(t, os.WriteFile("small.txt", []byte("mouse"), 0o600))
	var by conversion
	by.options.Image = "centos"
	var told bytes.Buffer
	all, _, err := by.manifests("owl.sub", contentOf(t, "owl.sub"), &told)
	require.NoError(t, err)
	require.Contains(t, told.String(), "owl.sub:2: transfer_input_files = barn.root, small.txt\n"+
		"    asks: barn.root has 3145728 bytes, and a ConfigMap holds 1 MiB: it is uploaded; to do: htcd submit does that; before a manifest "+
		"is applied, htcd upload barn.root\n")
	require.Len(t, all, 2)
	upload := fmt.Sprintf("sha256:%x", sha256.Sum256(large))
	require.Contains(t, string(all[0].text), upload)
	require.Equal(t, []toUpload{{path: "barn.root", upload: upload, size: 3 << 20}}, by.uploadsOf(all[0]))
	require.Empty(t, by.uploadsOf(all[1]))

	require.NoError(
		t,
		os.WriteFile(
			"owl.sub",
			[]byte("executable = /bin/ls\ntransfer_input_files = $(f)\nqueue f in (barn.root, small.txt)\n"),
			0o600,
		),
	)
	_, _, err = by.manifests("owl.sub", contentOf(t, "owl.sub"), &told)
	require.ErrorContains(t, err, "something would be lost", "each job would get the files of all")
}

func contentOf(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return text
}
