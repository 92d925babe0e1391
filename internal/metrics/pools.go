package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/poolcontrol"
)

// poolDescs are the metrics of HTCPools.
type poolDescs struct {
	jobs, open, waiting, most, accepting, blocked *prometheus.Desc
}

// pools shows how full the HTCPools are.
type pools struct {
	poolDescs
	loads func() []poolcontrol.Load
}

// otherNamespaces stands for those beyond the first ones; no namespace can have that name.
const otherNamespaces = "_other"

// Describe implements prometheus.Collector.
func (p pools) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{p.jobs, p.open, p.waiting, p.most, p.accepting, p.blocked} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (p pools) Collect(metrics chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value int, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	for _, l := range p.loads() {
		for state, n := range map[string]int{"idle": l.Idle, "running": l.Running, "held": l.Held} {
			gauge(p.jobs, n, l.Pool, state)
		}
		var open, waiting int
		for i, at := range l.Namespaces {
			if i >= v1alpha1.MaxPoolNamespaces {
				open, waiting = open+at.Open, waiting+at.Waiting
				continue
			}
			gauge(p.open, at.Open, l.Pool, at.Name)
			gauge(p.waiting, at.Waiting, l.Pool, at.Name)
		}
		gauge(p.open, open, l.Pool, otherNamespaces)
		gauge(p.waiting, waiting, l.Pool, otherNamespaces)
		if l.MaxOpen > 0 {
			gauge(p.most, l.MaxOpen, l.Pool)
		}
		gauge(p.accepting, int(number(l.Blocked == "")), l.Pool)
		if l.Blocked != "" {
			gauge(p.blocked, 1, l.Pool, l.Blocked)
		}
	}
}
