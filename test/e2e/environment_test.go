package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

func TestTheScriptSeesItsEnvironmentAsItWasWritten(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	environment := map[string]v1alpha1.EnvironmentValue{
		"QUOTES":                  `it's "so" ` + "`id`",
		"DOLLARS":                 `$HOME ${HOME} $(id) $$ $(X) $ENV(HOME)`,
		"SLASHES":                 `\ \\ \n \" \$ trailing\`,
		"BLANKS":                  "  two before, two after  ",
		"UNICODE":                 "ä € 😀 \u202e \u2028",
		"SIGNS":                   `a=b;c|d&e>f<g*h?i[j]{k}~!#%`,
		"EMPTY":                   "",
		"LONG":                    v1alpha1.EnvironmentValue(strings.Repeat("x", 4096)),
		"PATH":                    "/nowhere:/bin",
		"BASH_ENV":                "/nowhere",
		"LC_ALL":                  "C",
		"TMPDIR":                  "/tmp/of/my/own",
		"USER":                    "somebody",
		"LD_LIBRARY_PATH_OF_MINE": "/x",
	}
	var script strings.Builder
	for name, value := range environment {
		fmt.Fprintf(
			&script,
			"[ \"$%s\" = %s ] || { echo %s; exit 7; }\n",
			name,
			"'"+strings.ReplaceAll(string(value), "'", `'\''`)+"'",
			name,
		)
	}
	for i := len(environment); i < 128; i++ {
		name := fmt.Sprintf("MANY_%d", i)
		environment[name] = v1alpha1.EnvironmentValue(name)
		fmt.Fprintf(&script, "[ \"$%s\" = %s ] || { echo %s; exit 7; }\n", name, name, name)
	}
	script.WriteString("[ \"$HTCPROCID\" = 0 ] && [ ! -e .environment ] && [ ! -e token ] || exit 8\n")
	b.Script("variables", script.String(), func(job *v1alpha1.HTCJob) { job.Spec.Environment = environment })
	job := b.Ended("variables")
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase, b.Kubectl("describe", "htcjob", "variables"))
	for _, tool := range []string{"condor_q", "condor_history"} {
		args := []string{"-constraint", trial.Tagged(job), "-l"}
		if tool == "condor_q" {
			args = append(args, "-allusers")
		}
		ad, err := b.Lab.Run(t.Context(), tool, args...)
		require.NoError(t, err)
		require.NotContains(t, ad, "MANY_", "the ad is public")
	}
}

// Variables that mean something to programs outside the container have no effect there.
func TestVariablesDoNotReachOutOfTheContainer(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Script(
		"preload",
		"[ \"$LD_PRELOAD\" = /nowhere/evil.so ] && [ \"$BASH_FUNC\" = '() { exit 9; }' ]\n",
		func(job *v1alpha1.HTCJob) {
			job.Spec.Environment = map[string]v1alpha1.EnvironmentValue{
				"LD_PRELOAD": "/nowhere/evil.so",
				"LD_AUDIT":   "/nowhere/evil.so",
				"BASH_FUNC":  "() { exit 9; }",
				"IFS":        "/",
				"CURL_HOME":  "/nowhere",
				"http_proxy": "http://127.0.0.1:1",
				"HTTP_PROXY": "http://127.0.0.1:1",
				"ALL_PROXY":  "http://127.0.0.1:1",
			}
		},
	)
	job := b.Ended("preload")
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase, b.Kubectl("describe", "htcjob", "preload"))
	require.Equal(t, "callback", b.Source(job), "no proxy stands between the job and htcd")
}
