package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/job"
	"htc.cern.ch/htcd/internal/serve/control"
)

// working is a running htcd whose passes this function makes.
type working func(job.ReconcileOptions) (job.Report, error)

func (w working) Reconcile(_ context.Context, o job.ReconcileOptions) (job.Report, error) {
	return w(o)
}

func (w working) serve(t *testing.T, synced bool) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "own", "control.sock")
	listener, err := control.Listen(socket)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	server := control.NewServer(ctx, w, nil, func() bool { return synced })
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
	return socket
}

// reconcileWith runs htcd reconcile and returns what it prints.
func reconcileWith(t *testing.T, environ []string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := rootCommand("htcd", environ)
	c.SetOut(&out)
	c.SetErr(&out)
	c.SetArgs(append([]string{"reconcile"}, args...))
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

func TestReconcileAsksTheWorkingHtcdAndPrintsATable(t *testing.T) {
	var asked job.ReconcileOptions
	report := job.Report{Checked: 1200, Differences: []crosscheck.Difference{
		{
			Namespace: "default",
			Name:      "zero",
			JobID:     "7.0",
			Was:       "Running",
			Is:        "Succeeded",
			Evidence:  "condor_q: JobStatus 4 (Completed), exit code 0",
			Repaired:  true,
		},
		{
			Namespace: "default",
			Name:      "zero",
			JobID:     "7.1",
			Was:       "Running",
			Is:        "Held",
			Evidence:  "two\nlines\tand a \x1b[31mcolour",
			Repaired:  true,
		},
		{Namespace: "other", Name: "one", Was: "phase=Failed", Is: "phase=Succeeded", Evidence: "ledger"},
	}}
	socket := working(func(o job.ReconcileOptions) (job.Report, error) { asked = o; return report, nil }).serve(t, true)

	out, err := reconcileWith(
		t,
		[]string{"HTCD_NAMESPACE=default", "HTCD_LOG_LEVEL=debug"},
		"--once",
		"--name=zero",
		"--control-socket",
		socket,
	)
	require.NoError(t, err)
	require.Equal(t, job.ReconcileOptions{Namespace: "default", Name: "zero"}, asked)
	require.Equal(
		t,
		`NAMESPACE/NAME  JOB  WAS           IS               EVIDENCE                                        REPAIRED
default/zero    7.0  Running       Succeeded        condor_q: JobStatus 4 (Completed), exit code 0  yes
default/zero    7.1  Running       Held             two lines and a  [31mcolour                     yes
other/one       -    phase=Failed  phase=Succeeded  ledger                                          not yet
1200 jobs checked, 3 differ, 2 repaired
`,
		out,
	)

	out, err = reconcileWith(
		t,
		nil,
		"--once",
		"--dry-run",
		"-o",
		"json",
		"--namespace=other",
		"--ticket-dir",
		filepath.Dir(socket),
	)
	require.NoError(t, err)
	require.Equal(t, job.ReconcileOptions{Namespace: "other", DryRun: true}, asked)
	var printed job.Report
	require.NoError(t, json.Unmarshal([]byte(out), &printed))
	require.Equal(t, report, printed)

	report = job.Report{Checked: 1}
	out, err = reconcileWith(t, nil, "--once", "--control-socket", socket)
	require.NoError(t, err)
	require.Equal(t, "1 job checked, nothing differs\n", out)
	out, err = reconcileWith(t, nil, "--once", "-o=json", "--control-socket", socket)
	require.NoError(t, err)
	require.JSONEq(t, `{"differences": [], "checked": 1}`, out)
}

func TestReconcileShowsWhatWasDoneBeforeItFailed(t *testing.T) {
	socket := working(func(job.ReconcileOptions) (job.Report, error) {
		return job.Report{
				Checked: 2,
				Differences: []crosscheck.Difference{
					{Namespace: "a", Name: "b", JobID: "1.0", Was: "Idle", Is: "Running", Repaired: true},
				},
			},
			errors.New(
				"condor_q: no answer within 1m0s",
			)
	}).serve(t, true)
	out, err := reconcileWith(t, nil, "--once", "--control-socket", socket)
	require.EqualError(t, err, "reconcile: condor_q: no answer within 1m0s")
	require.Contains(t, out, "a/b")
	require.Contains(t, out, "2 jobs checked, 1 differs, 1 repaired\n")

	out, err = reconcileWith(t, nil, "--once", "-o=json", "--control-socket", socket)
	require.Error(t, err)
	require.Contains(t, out, `"error": "condor_q: no answer within 1m0s"`)
}

func TestReconcileSaysWhenHtcdIsNotReady(t *testing.T) {
	socket := working(nil).serve(t, false)
	out, err := reconcileWith(t, nil, "--once", "--control-socket", socket)
	require.ErrorContains(t, err, "just started")
	require.Empty(t, out)
}

func TestExitCodesOfReconcile(t *testing.T) {
	empty := t.TempDir()
	for name, c := range map[string]struct {
		args    []string
		environ []string
		want    int
	}{
		"help":                             {[]string{"--help"}, nil, 0},
		"without --once":                   {nil, nil, exitUsage},
		"an unknown format":                {[]string{"--once", "-o", "yaml"}, nil, exitUsage},
		"an unknown variable":              {[]string{"--once"}, []string{"HTCD_ONCE=true"}, exitUsage},
		"an argument too many":             {[]string{"--once", "zero"}, nil, exitUsage},
		"a namespace that cannot be":       {[]string{"--once", "--namespace=A_b"}, nil, exitUsage},
		"a socket's path that is too long": {[]string{"--once", "--control-socket=/" + string(bytes.Repeat([]byte("x"), 200))}, nil, exitUsage},
		"neither an htcd nor a ledger":     {[]string{"--once", "--ticket-dir", empty, "--data", empty}, nil, exitFailure},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, run("htcd", append([]string{"reconcile"}, c.args...), c.environ))
		})
	}
	left, err := os.ReadDir(empty)
	require.NoError(t, err)
	require.Empty(t, left, "asking for a ledger made none")
}
