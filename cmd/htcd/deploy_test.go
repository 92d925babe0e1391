package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/daemon"
)

// settingsIn reads a settings.env: what it sets, and what it only suggests, in comments.
func settingsIn(t *testing.T, file string) (set, suggested []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if suggestion, is := strings.CutPrefix(line, "# HTCD_"); is && strings.Contains(suggestion, "=") {
			suggested = append(suggested, "HTCD_"+suggestion)
		} else if strings.HasPrefix(line, "HTCD_") {
			set = append(set, line)
		}
	}
	require.NotEmpty(t, set, file)
	return set, suggested
}

// merged is the one over the other, as kustomize merges them.
func merged(under, over []string) []string {
	values := map[string]string{}
	for _, entry := range append(append([]string(nil), under...), over...) {
		name, value, _ := strings.Cut(entry, "=")
		values[name] = value
	}
	var all []string
	for name, value := range values {
		all = append(all, name+"="+value)
	}
	return all
}

func TestHTCdTakesWhatIsDeployed(t *testing.T) {
	base, baseSuggests := settingsIn(t, "../../deploy/base/manager/settings.env")
	overlays, err := filepath.Glob("../../deploy/overlays/*/settings.env")
	require.NoError(t, err)
	require.NotEmpty(t, overlays)
	takes := func(environ ...[]string) {
		var all []string
		for _, more := range environ {
			all = merged(all, more)
		}
		var o daemon.Options
		f := pflag.NewFlagSet("run", pflag.ContinueOnError)
		flags(&o, f)
		require.NoError(t, setting.Complete(f, all), all)
		require.NoError(t, o.Check(), all)
	}
	takes(base)
	for _, suggestion := range baseSuggests {
		takes(base, []string{suggestion})
	}
	for _, file := range overlays {
		overlay, suggests := settingsIn(t, file)
		takes(base, overlay)
		for _, suggestion := range suggests {
			takes(base, overlay, []string{suggestion})
		}
	}
}

func TestThePageNamesWhatTheDeploymentSets(t *testing.T) {
	deployment, err := os.ReadFile("../../deploy/base/manager/deployment.yaml")
	require.NoError(t, err)
	page, err := os.ReadFile("../../docs/configure.md")
	require.NoError(t, err)
	names := regexp.MustCompile(`name: (HTCD_[A-Z0-9_]+)`).FindAllStringSubmatch(string(deployment), -1)
	require.NotEmpty(t, names)
	for _, name := range names {
		require.True(t, strings.Contains(string(page), "`"+name[1]+"`"), "%s takes precedence", name[1])
	}
}
