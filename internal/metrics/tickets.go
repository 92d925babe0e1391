package metrics

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"htc.cern.ch/htcd/internal/target/backend"
)

// needed is how long a ticket or a token counts as needed after a request for it. An unused one is not renewed, and its
// expiry does not matter; the ticket of a deleted Secret is forgotten.
const needed = 15 * time.Minute

// tickets shows whether the Secrets in use give a ticket or a token, and its expiry.
type tickets struct {
	usable, ends *prometheus.Desc
	now          func() time.Time

	mu sync.Mutex
	m  map[string]ticket // by namespace/name of the Secret
}

type ticket struct {
	asked   time.Time
	usable  bool
	expires time.Time // zero: never, or there is none
}

// Ticket is for backend.SecretCredentials.
func (m *Metrics) Ticket(namespace, name string, expires time.Time, err error) {
	result := ok
	if err != nil {
		result = "Unknown"
		if e, is := errors.AsType[*backend.CredentialError](err); is {
			result = e.Reason
		}
	}
	m.ticketAsks.WithLabelValues(result).Inc()
	m.tickets.note(namespace+"/"+name, expires, err)
}

// note keeps only the last answer: what the Secret held before proves nothing.
func (t *tickets) note(secret string, expires time.Time, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.m[secret] = ticket{asked: t.now(), usable: err == nil, expires: expires}
}

// Describe implements prometheus.Collector.
func (t *tickets) Describe(descs chan<- *prometheus.Desc) { descs <- t.usable; descs <- t.ends }

// Collect implements prometheus.Collector.
func (t *tickets) Collect(metrics chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for secret, ticket := range t.m {
		if t.now().Sub(ticket.asked) > needed {
			delete(t.m, secret)
			continue
		}
		metrics <- prometheus.MustNewConstMetric(t.usable, prometheus.GaugeValue, number(ticket.usable), secret)
		if ticket.usable && !ticket.expires.IsZero() {
			metrics <- prometheus.MustNewConstMetric(t.ends, prometheus.GaugeValue, unix(ticket.expires), secret)
		}
	}
}

// unix is a time as metrics have it; 0 is never.
func unix(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}
