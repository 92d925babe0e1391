package plugin

import (
	"os"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

func TestAFileIsToldByItsEndingOrItsLines(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		want       fileKind
	}{
		"a manifest":                       {"a.yaml", "spec:\n  source: |\n    queue 2\n", aManifest},
		"a manifest of another name":       {"a", "{\"apiVersion\": \"v1\"}\nqueue\n", aManifest},
		"a manifest of the standard input": {"-", "source: |\n  queue\n", aManifest},
		"a submit file":                    {"a.sub", "executable = a\n", aSubmitFile},
		"a submit file of another name":    {"a.jdl", "# JOB A a\n\nJOB = 3\r\nQueue x from (\n  job a b\n)\n", aSubmitFile},
		"a submit file that includes one":  {"a.condor", "include : base\nqueue\n", aSubmitFile},
		"a DAG file":                       {"a.dag", "", aDAGFile},
		"a DAG file of another name":       {"dag.sub", "# two nodes\n\n Job A a.sub\nJOB B {\n queue\n}\n", aDAGFile},
		"a DAG file that includes one":     {"a", "INCLUDE base.dag\n", aDAGFile},
	} {
		require.Equal(t, c.want, kindOfFile(c.file, []byte(c.text)), name)
	}
}

func TestASubmitFileOfAnyNameIsSubmitted(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("owl.jdl", []byte("executable = /bin/true\nqueue\n"), 0o600))
	require.NoError(t, os.WriteFile("owl.yaml", []byte("apiVersion: htc.cern.ch/v1alpha1\nkind: HTCJob\n"), 0o600))
	by := conversion{after: []string{"request_cpus = 2"}}
	by.options.Image = "centos"
	all, _, err := submitted("owl.jdl", &cobra.Command{}, &by)
	require.NoError(t, err)
	require.Equal(t, "owl", all[0].Metadata.Name)
	_, _, err = submitted("owl.yaml", &cobra.Command{}, &by)
	require.EqualError(t, err, "NAME=VALUE and --append are for submit files, and owl.yaml is none")
}
