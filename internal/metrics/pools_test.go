package metrics

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/admission"
	"htc.cern.ch/htcd/internal/kube/poolcontrol"
)

func noPools() []poolcontrol.Load { return nil }

func TestHTCPoolsAreShownWithTheirFirstNamespaces(t *testing.T) {
	full := poolcontrol.Load{Pool: "grid", MaxOpen: 1000, Blocked: "LimitReached"}
	full.Idle, full.Running, full.Held = 3, 2, 1
	for i := range 10_000 { // one is called as the rest might be
		name := fmt.Sprintf("n%d", i)
		if i == 0 {
			name = "other"
		}
		full.Namespaces = append(full.Namespaces, admission.NamespaceLoad{Name: name, Open: 100, Waiting: 1})
	}
	m := New(Build{})
	m.registry.MustRegister(
		pools{m.pools, func() []poolcontrol.Load { return []poolcontrol.Load{full, {Pool: "new"}} }},
	)
	got := page(t, m)
	for series, want := range map[string]string{
		`htcd_pool_jobs{pool="grid",state="idle"}`:                   "3",
		`htcd_pool_jobs{pool="grid",state="running"}`:                "2",
		`htcd_pool_jobs{pool="grid",state="held"}`:                   "1",
		`htcd_pool_open_jobs{namespace="other",pool="grid"}`:         "100",
		`htcd_pool_open_jobs{namespace="n19",pool="grid"}`:           "100",
		`htcd_pool_open_jobs{namespace="n20",pool="grid"}`:           "",
		`htcd_pool_open_jobs{namespace="_other",pool="grid"}`:        "998000",
		`htcd_pool_waiting_htcjobs{namespace="_other",pool="grid"}`:  "9980",
		`htcd_pool_max_open_jobs{pool="grid"}`:                       "1000",
		`htcd_pool_max_open_jobs{pool="new"}`:                        "",
		`htcd_pool_accepting{pool="grid"}`:                           "0",
		`htcd_pool_accepting{pool="new"}`:                            "1",
		`htcd_pool_not_accepting{pool="grid",reason="LimitReached"}`: "1",
		`htcd_pool_not_accepting{pool="new",reason="LimitReached"}`:  "",
	} {
		require.Equal(t, want, value(t, got, series), series)
	}
}
