package setting

import (
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

func TestAMisspeltVariableIsFoundAndAServicesAreNot(t *testing.T) {
	var workers int
	f := pflag.NewFlagSet("run", pflag.ContinueOnError)
	Int(f, &workers, "workers", 4, 1, 1000, "workers")
	environ := []string{
		"PATH=/bin",
		"HTCD_WORKRES=1",
		"HTCD_WORKERS=1",
		"HTCD_SERVICE_HOST=10.0.0.1",
		"HTCD_PORT_80_TCP=x",
		"HTCD_PORT=x",
	}
	require.ErrorContains(t, Complete(f, environ), "HTCD_WORKRES: no such setting")
}

func TestTheCommandLineOverridesTheEnvironmentAlsoInFlagsThatACommandHasAdded(t *testing.T) {
	var workers int
	f, command := pflag.NewFlagSet("settings", pflag.ContinueOnError), pflag.NewFlagSet("doctor", pflag.ContinueOnError)
	Int(f, &workers, "workers", 4, 1, 1000, "workers")
	command.AddFlagSet(f)
	require.NoError(t, command.Parse([]string{"--workers=2"}))
	require.NoError(t, Complete(f, []string{"HTCD_WORKERS=3"}))
	require.Equal(t, 2, workers)
}

func TestAFormerNameStillSetsTheFlag(t *testing.T) {
	for name, c := range map[string]struct {
		args, environ []string
		want          string
	}{
		"by itself":                                {[]string{"--pool=old"}, nil, "old"},
		"by itself as a variable":                  {nil, []string{"HTCD_POOL=old"}, "old"},
		"over the new one of a base":               {nil, []string{"HTCD_POOL=old", "HTCD_COLLECTOR=new"}, "old"},
		"but not over the command line":            {[]string{"--collector=new"}, []string{"HTCD_POOL=old"}, "new"},
		"and its flag over the variable of either": {[]string{"--pool=old"}, []string{"HTCD_COLLECTOR=new"}, "old"},
		"empty it is none":                         {nil, []string{"HTCD_POOL=", "HTCD_COLLECTOR=new"}, "new"},
	} {
		t.Run(name, func(t *testing.T) {
			var collector string
			f := pflag.NewFlagSet("run", pflag.ContinueOnError)
			Text(f, &collector, "collector", "", HostPort, "`host` of the collector")
			Former(f, "pool", "collector")
			require.NoError(t, f.Parse(c.args))
			require.NoError(t, Complete(f, c.environ))
			require.Equal(t, c.want, collector)
		})
	}
}
