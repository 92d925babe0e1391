package metrics

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// family is a metric's row in docs/metrics.md.
type family struct {
	name, kind, help string
	labels           []string
}

// note records a family for the docs and gives it its full name.
func (m *Metrics) note(kind, name, help string, labels []string) string {
	name = "htcd_" + name
	m.families = append(m.families, family{name, kind, help, labels})
	return name
}

func (m *Metrics) counters(name, help string, labels ...string) *prometheus.CounterVec {
	name = m.note("counter", name, help, labels)
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(v)
	return v
}

func (m *Metrics) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	name = m.note("gauge", name, help, labels)
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(v)
	return v
}

func (m *Metrics) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	name = m.note("histogram", name, help, labels)
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(v)
	return v
}

// lookedUp is a gauge whose value is found when Prometheus asks.
func (m *Metrics) lookedUp(name, help string, labels ...string) *prometheus.Desc {
	name = m.note("gauge", name, help, labels)
	return prometheus.NewDesc(name, help, labels, nil)
}

// Markdown is the table of docs/metrics.md.
func (m *Metrics) Markdown() string {
	var b strings.Builder
	b.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, f := range m.families {
		labels := ""
		if len(f.labels) > 0 {
			labels = "`" + strings.Join(f.labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.name, f.kind, labels, f.help)
	}
	return b.String()
}
