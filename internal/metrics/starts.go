package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"htc.cern.ch/htcd/internal/schedd/tool"
)

const startsHelp = "processes that htcd has started, by `program`: `condor_q`, `kinit` and the like"

// starts shows how many processes htcd has started.
type starts struct{ total *prometheus.Desc }

// Describe implements prometheus.Collector.
func (s starts) Describe(descs chan<- *prometheus.Desc) { descs <- s.total }

// Collect implements prometheus.Collector.
func (s starts) Collect(metrics chan<- prometheus.Metric) {
	for program, n := range tool.Starts() {
		metrics <- prometheus.MustNewConstMetric(s.total, prometheus.CounterValue, float64(n), program)
	}
}
