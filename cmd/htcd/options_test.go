package main

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/daemon"
)

// parsed returns the options that htcd run makes of flags and environment.
func parsed(t *testing.T, args []string, environ ...string) (daemon.Options, error) {
	t.Helper()
	var o daemon.Options
	f := pflag.NewFlagSet("run", pflag.ContinueOnError)
	flags(&o, f)
	if err := f.Parse(args); err != nil {
		return o, setting.Explain(err, "")
	}
	if err := setting.Complete(f, environ); err != nil {
		return o, err
	}
	return o, o.Check()
}

const callback = "--callback-url=http://htcd.test/cloudevents"

func TestAFlagStandsAboveTheEnvironmentAndThatAboveTheDefault(t *testing.T) {
	o, err := parsed(
		t,
		[]string{callback, "--workers=3"},
		"HTCD_WORKERS=9",
		"HTCD_SUBMITTERS=7",
		"HTCD_BINDS=/cvmfs,/eos",
	)
	require.NoError(t, err)
	require.Equal(t, 3, o.Workers)
	require.Equal(t, 7, o.Submitters)
	require.Equal(t, []string{"/cvmfs", "/eos"}, o.Binds)
	require.Equal(t, 10*time.Second, o.Resync)
	require.Equal(t, "/data/sqlite/htcjobs.db", o.LedgerFile())
}

func TestAWrongSettingIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		args    []string
		environ []string
		says    string
	}{
		"no callback URL":                    {nil, nil, "--callback-url is required"},
		"a callback URL that is none":        {[]string{"--callback-url=htcd.test"}, nil, "--callback-url"},
		"a namespace that cannot be":         {[]string{callback, "--namespace=A_b"}, nil, "--namespace"},
		"an address without a port":          {[]string{callback, "--listen=localhost"}, nil, "--listen"},
		"no workers":                         {[]string{callback, "--workers=0"}, nil, "--workers"},
		"a time too short":                   {[]string{callback, "--resync=1ms"}, nil, "--resync"},
		"a relative path":                    {[]string{callback, "--data=data"}, nil, "--data"},
		"a bind that the wrapper cannot use": {[]string{callback, "--binds=/a b"}, nil, "--binds"},
		"a sender that is not there":         {[]string{callback, "--ship-sender=/nowhere/htcd"}, nil, "--ship-sender"},
		"a command that htcd sets itself":    {[]string{callback, "--allow-htcopts=batch_project,Executable"}, nil, "--allow-htcopts: Executable is htcd's own"},
		"a certificate without its key":      {[]string{callback, "--tls-cert=/etc/htcd/tls.crt"}, nil, "--tls-cert and --tls-key go together"},
		"an ephemeral registry that is none": {[]string{callback, "--ephemeral-registries=a/b"}, nil, "--ephemeral-registries: \"a/b\""},
		"a registry that is none":            {[]string{callback, "--allow-registries=https://a/b"}, nil, "--allow-registries: \"https://a/b\""},
		"an image pattern without a scheme":  {[]string{callback, "--allow-images=centos"}, nil, "--allow-images: \"centos\""},
		"a schedd's name twice":              {[]string{callback, "--schedd=a", "--schedd-command=/b"}, nil, "--schedd and --schedd-command"},
		"a command without its place":        {[]string{callback, "--schedd-command=myschedd show"}, nil, "--schedd-command \"myschedd show\""},
		"a realm with its account":           {[]string{callback, "--realms=A.ORG,robot@B.ORG"}, nil, `--realms "robot@B.ORG": want a realm such as EXAMPLE.ORG`},
		"a pool that cannot be":              {[]string{callback, "--allow-pools=a/b/c"}, nil, "--allow-pools: \"a/b/c\""},
		"secrets that nobody may read":       {[]string{callback, "--pool-secrets=mine"}, nil, "--pool-secrets"},
		"a limit below none":                 {[]string{callback, "--max-queue=-1"}, nil, "--max-queue -1"},
		"a schedule that is none":            {[]string{callback, "--reconcile-schedule=often"}, nil, "--reconcile-schedule"},
		"a number in the environment":        {[]string{callback}, []string{"HTCD_WORKERS=many"}, "HTCD_WORKERS"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parsed(t, c.args, c.environ...)
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestExitCodes(t *testing.T) {
	for name, c := range map[string]struct {
		args    []string
		environ []string
		want    int
	}{
		"version":              {[]string{"version"}, nil, 0},
		"its flag":             {[]string{"--version"}, nil, 0},
		"help":                 {[]string{"run", "--help"}, nil, 0},
		"an unknown flag":      {[]string{"run", "--bogus"}, nil, exitUsage},
		"an unknown command":   {[]string{"bogus"}, nil, exitUsage},
		"an argument too many": {[]string{"run", "now"}, nil, exitUsage},
		"an unknown variable":  {[]string{"run", callback}, []string{"HTCD_BOGUS=1"}, exitUsage},
		"one of no command":    {[]string{"feed"}, []string{"HTCD_BOGUS=1"}, exitUsage},
		"no kubeconfig":        {[]string{"run", callback, "--kubeconfig=/nowhere"}, nil, exitFailure},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, run("htcd", c.args, c.environ)) })
	}
}

func TestHTCdSaysItsVersion(t *testing.T) {
	for _, name := range append(pluginNames, "htcd") {
		var said [2]strings.Builder
		for i, argument := range []string{"version", "--version"} {
			c := rootCommand(name, nil)
			c.SetArgs([]string{argument})
			c.SetOut(&said[i])
			require.NoError(t, c.Execute())
		}
		require.Equal(t, "htcd "+version+"\n", said[0].String())
		require.Equal(t, said[0].String(), said[1].String())
	}
}

func TestOneFileHasTheVariablesOfRunAndFeed(t *testing.T) {
	environ := []string{"HTCD_CALLBACK_URL=http://htcd.test/cloudevents", "HTCD_SPOOL=/spool", "HTCD_ALLOW=htcd=robot",
		"HTCD_COLLECTOR=collector.test"}
	code, says := said(t, []string{"feed"}, environ)
	require.Equal(t, exitUsage, code)
	require.Equal(t, "htcd: feed: --tls-cert is required\n", says)
	code, says = said(t, []string{"run", "--kubeconfig=/nowhere"}, environ)
	require.Equal(t, exitFailure, code, says)
	code, says = said(t, []string{"feed"}, append(environ, "HTCD_SPOLL=/spool"))
	require.Equal(t, exitUsage, code)
	require.Equal(t, "htcd: feed: HTCD_SPOLL: no such setting; htcd run --help and htcd feed --help list them\n", says)
}
