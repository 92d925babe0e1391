package plugin

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

func TestABrokenListOfNodesGoesOn(t *testing.T) {
	var asked []string
	c := serving(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path+"?"+r.URL.RawQuery)
		w.Header().Set(aggregate.HeaderAttempt, "3")
		if len(asked) == 1 {
			_, _ = io.WriteString(
				w,
				`{"step":"fit","sequence":0,"index":1,"state":"failed","dag":1,"node":4}`+"\n"+`{"step":"fi`,
			)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, `{"step":"plot","index":0,"state":"failed","dag":2,"node":0}`+"\n")
	})
	c.resource = v1alpha1.WorkflowResource
	var got []string
	require.NoError(t, c.nodes(t.Context(), "scan", selected("failed", "", 0), func(n aggregate.Node) error {
		got = append(got, n.Step+" "+sequenceOf(n))
		return nil
	}))
	require.Equal(t, []string{"fit 0", "plot all"}, got, "each once")
	const path = "/apis/output.htc.cern.ch/v1alpha1/namespaces/ns/htcworkflows/scan/log/nodes?"
	require.Equal(t, []string{path + "attempt=0&state=failed", path + "after=1.4&attempt=3&state=failed"}, asked)
}

func TestNodesAreLinesOfATable(t *testing.T) {
	var out bytes.Buffer
	row := tableOf(&out)
	require.NoError(
		t,
		row(
			aggregate.Node{
				Step:     "simulate",
				Sequence: new(17),
				Index:    2,
				State:    aggregate.NodeFailed,
				JobID:    "93.0",
				ExitCode: new(3),
				Reason:   "Exited",
				Message:  "exit\n3 \x1b[31m",
			},
		),
	)
	require.NoError(t, row(aggregate.Node{Step: "plot", State: aggregate.NodeWaiting}))
	require.Equal(t, `STEP                     SEQUENCE INDEX  STATE    JOBID        EXIT  REASON
simulate                       17     2  failed   93.0            3  Exited exit 3 [31m
plot                          all     0  waiting
`, out.String())
}

func TestWhatHasFailedIsShownOneAfterTheOther(t *testing.T) {
	c := serving(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/nodes"):
			_, _ = io.WriteString(w, `{"step":"fit","sequence":1,"index":0,"state":"failed","dag":1,"node":1}
{"step":"fit","sequence":2,"index":0,"state":"failed","stderr":"its end","dag":1,"node":2}
{"step":"plot","index":0,"state":"failed","dag":2,"node":0}
`)
		case r.FormValue("sequence") == "1":
			require.Equal(t, "attempt=0&index=0&sequence=1&step=fit&stream=stderr", r.URL.RawQuery)
			_, _ = io.WriteString(w, "one\ntwo")
		default:
			http.Error(w, `{"kind":"Status","message":"it is not fetched yet"}`, http.StatusConflict)
		}
	})
	var out, warnings bytes.Buffer
	common := func() url.Values { return url.Values{"attempt": {"0"}, "stream": {"stderr"}} }
	err := c.nodeLogs(t.Context(), "scan", nodeFlags{failed: true}, common, &out, &warnings)
	require.EqualError(t, err, "1 of 3 nodes could not be shown")
	require.Equal(t, "[fit 1 0] one\n[fit 1 0] two\n[fit 2 0] its end\n", out.String())
	require.Equal(t, "[plot all 0] it is not fetched yet\n", warnings.String())
}

func TestFlagsSayWhatCanBeMeant(t *testing.T) {
	const both, ofJob, ofWorkflow = "an HTCJob or an HTCWorkflow", "an HTCJob", "an HTCWorkflow"
	for line, want := range map[string]string{
		"":                                  both,
		"--all":                             both,
		"--follow":                          both,
		"--proc 3":                          ofJob,
		"--step fit":                        ofWorkflow,
		"--step fit --sequence 3 --index 2": ofWorkflow,
		"--step fit --all":                  ofWorkflow,
		"--failed":                          ofWorkflow,
		"--node left":                       ofWorkflow,
		"--node left --failed":              "--node names one node",
		"--failed --step fit":               ofWorkflow,
		"--sequence 3":                      "are for --step",
		"--failed --step fit --sequence 3":  "not for --failed",
		"--all --step fit --index 3":        "not for --failed or --all",
		"--failed --all":                    "want one of them",
		"--step fit --proc 1":               "--proc is for HTCJobs",
		"--failed --follow":                 "cannot be followed",
	} {
		n, flags := nodeFlagsOf(t, line)
		among, err := n.given(flags)
		if err != nil {
			require.ErrorContains(t, err, want, line)
			continue
		}
		require.Equal(t, want, either(among), line)
	}
	for line, want := range map[string]string{
		"":               "scan is an HTCWorkflow: want --step, and --sequence, for one of its nodes, --failed for all that have failed, or --all",
		"--follow":       "want --step",
		"--all --follow": "one node can be followed, which --step names",
		"--all":          "", "--failed": "", "--step fit": "", "--step fit --follow": "",
	} {
		n, flags := nodeFlagsOf(t, line)
		if err := n.fit(flags, "scan"); want == "" {
			require.NoError(t, err, line)
		} else {
			require.ErrorContains(t, err, want, line)
		}
	}
}

// nodeFlagsOf are the flags of htcd logs.
func nodeFlagsOf(t *testing.T, line string) (n nodeFlags, flags *pflag.FlagSet) {
	t.Helper()
	flags = pflag.NewFlagSet("logs", pflag.ContinueOnError)
	flags.Int("proc", 0, "")
	flags.BoolVar(&n.all, "all", false, "")
	flags.Bool("follow", false, "")
	n.define(flags)
	require.NoError(t, flags.Parse(strings.Fields(line)))
	return n, flags
}

func TestTheWorkflowsOfAFileAreDrawn(t *testing.T) {
	const head = "apiVersion: htc.cern.ch/v1alpha1\nkind: HTCWorkflow\nmetadata: {name: a}\n"
	const job = "job: {script: {image: a, command: b, source: c}}"
	var out bytes.Buffer
	require.NoError(
		t,
		drawFile(
			&out,
			"x.yaml",
			[]byte(
				"kind: ConfigMap\n---\n"+head+"spec: {sequences: {count: 3}, steps: [{name: x, "+job+"}, {name: b, "+job+"}]}",
			),
		),
	)
	require.Contains(t, out.String(), `"x" [label="x\n3 nodes", fillcolor=white];`)
	for words, text := range map[string]string{
		"x.yaml: there is no HTCWorkflow in it":                   "kind: ConfigMap\n",
		`unknown field "stepz"`:                                   head + "spec: {stepz: []}",
		"x.yaml: spec.steps: there is none":                       head + "spec: {}",
		`x.yaml: spec.steps[0].needs: there is no step "z"`:       head + "spec: {steps: [{name: x, needs: [z], " + job + "}]}",
		"x.yaml: spec.sequences: with 200000 sequences there are": head + "spec: {sequences: {count: 200000}, steps: [{name: x, " + job + "}]}",
		`x.yaml: spec.ports[0]: there is no step "z"`:             head + "spec: {ports: [{port: 1, step: z}], steps: [{name: x, " + job + "}]}",
	} {
		require.ErrorContains(t, drawFile(io.Discard, "x.yaml", []byte(text)), words)
	}
	files, err := filepath.Glob("../../../examples/workflow/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, drawFile(io.Discard, file, text))
	}
}
