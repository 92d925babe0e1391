// Package monitoring tests the files of deploy/monitoring with Debian's Prometheus and promtool in a running lab.
package monitoring

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/trial"
)

// file returns the path of a file of deploy/monitoring, which is the same inside the lab's Debian root.
func file(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../deploy/monitoring", name))
	require.NoError(t, err)
	return path
}

func TestPromtoolFindsNoFaultInTheAlerts(t *testing.T) {
	t.Parallel()
	running, err := lab.Find()
	require.NoError(t, err)
	for what, name := range map[string]string{"check": "alerts.yaml", "test": "alerts_test.yaml"} {
		out, err := running.RunAs(t.Context(), "alice", "promtool", what, "rules", file(t, name))
		require.NoError(t, err, out)
		require.Contains(t, out, "SUCCESS")
	}
}

// dashboard is the part of a Grafana dashboard that concerns Prometheus.
type dashboard struct {
	Panels []struct {
		Type       string
		Title      string
		Datasource source
		Targets    []struct {
			Datasource source
			Expr       string
		}
	}
	Templating struct {
		List []struct {
			Name, Type string
			Query      any
		}
	}
}

type source struct{ Type, UID string }

// queries returns the dashboard's queries as Grafana sends them for a range of a few minutes.
func queries(t *testing.T) (found []string) {
	t.Helper()
	text, err := os.ReadFile(file(t, "dashboard.json"))
	require.NoError(t, err)
	var d dashboard
	require.NoError(t, json.Unmarshal(text, &d))
	require.Len(t, d.Templating.List, 2)
	require.Equal(t, "datasource", d.Templating.List[0].Type)
	require.Equal(t, "pool", d.Templating.List[1].Name, "each HTCPool has a row")
	chosen := source{d.Templating.List[0].Query.(string), "${" + d.Templating.List[0].Name + "}"}
	for _, p := range d.Panels {
		if p.Type == "row" {
			continue
		}
		require.NotEmpty(t, p.Targets, p.Title)
		require.Equal(t, chosen, p.Datasource, p.Title)
		for _, target := range p.Targets {
			require.Equal(t, chosen, target.Datasource, p.Title)
			query := strings.NewReplacer("$__rate_interval", "1m", "$pool", ".+").Replace(target.Expr)
			require.NotContains(t, query, "$", p.Title)
			found = append(found, query)
		}
	}
	return found
}

func TestEachQueryOfTheDashboardHasAResult(t *testing.T) {
	b := trial.New(t)
	part := b.Lab.Part("prometheus")
	require.NoError(t, part.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, part.Stop(context.WithoutCancel(t.Context()))) })
	address := prometheus(t, b.Lab)

	// A rate needs an earlier sample.
	b.Eventually(func() bool { return hasNumber(t, address, "htcd_submission_duration_seconds_count") },
		func() string { return "Prometheus never had a sample of htcd's" })

	// Some metrics exist only while a run is open.
	b.Script("open", "sleep 600\n")
	b.Phase("open", v1alpha1.PhaseRunning)
	b.Script("ends", "echo A\n", trial.Queue(2))
	b.Fetched("ends")

	b.Pool("", "{state: Draining, limits: {maxOpen: 5}}")

	waiting := queries(t)
	require.NotEmpty(t, waiting)
	b.Eventually(func() bool {
		waiting = slices.DeleteFunc(waiting, func(query string) bool { return hasNumber(t, address, query) })
		return len(waiting) == 0
	}, func() string { return fmt.Sprintf("no number came of %q", waiting) })

	var rules struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	ask(t, address+"/api/v1/rules", &rules)
	require.Len(t, rules.Groups, 1)
	for _, rule := range rules.Groups[0].Rules {
		require.NotEqual(t, "err", rule.Health, "%s: %s", rule.Name, rule.LastError)
	}
}

// prometheus returns the address of the lab's Prometheus.
func prometheus(t *testing.T, running *lab.Lab) string {
	t.Helper()
	event, err := running.Ask(t.Context(), lab.Request{Op: lab.OpStatus}, nil)
	require.NoError(t, err)
	i := slices.IndexFunc(event.Parts, func(s lab.Status) bool { return s.Part == "prometheus" })
	require.GreaterOrEqual(t, i, 0)
	return fmt.Sprintf("http://127.0.0.1:%d", event.Parts[i].Port)
}

// hasNumber reports whether a query has a result now other than NaN, which is the quantile of no samples.
func hasNumber(t *testing.T, address, query string) bool {
	t.Helper()
	var result struct {
		Result []struct{ Value [2]any }
	}
	ask(t, address+"/api/v1/query?"+url.Values{"query": {query}}.Encode(), &result)
	for _, sample := range result.Result {
		if sample.Value[1] != "NaN" {
			return true
		}
	}
	return false
}

// ask sends a request to Prometheus, which must succeed.
func ask(t *testing.T, address string, data any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	answer := struct {
		Error string
		Data  any
	}{Data: data}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
	require.Empty(t, answer.Error, address)
	require.Equal(t, http.StatusOK, response.StatusCode, address)
}
