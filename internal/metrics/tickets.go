package metrics

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"htc.cern.ch/htcd/internal/credential"
)

// needed is how long a ticket, or a token, counts as needed after somebody asked for it. One that nobody asks for is not renewed, and
// its end is nobody's concern; and the ticket of a Secret that was deleted is forgotten.
const needed = 15 * time.Minute

// tickets shows until when the tickets and tokens last that are in use.
type tickets struct {
	desc *prometheus.Desc
	now  func() time.Time

	mu sync.Mutex
	m  map[string]ticket // by namespace/name of the Secret
}

type ticket struct {
	expires, asked time.Time
	endless        bool // there is one, and it has no end
}

func newTickets(desc *prometheus.Desc) *tickets {
	return &tickets{desc: desc, now: time.Now, m: map[string]ticket{}}
}

// Ticket is for kube.SecretOptions.
func (m *Metrics) Ticket(namespace, name string, expires time.Time, err error) {
	result := ok
	if err != nil {
		result = "Unknown"
		if e, is := errors.AsType[*credential.Error](err); is {
			result = e.Reason
		}
	}
	m.ticketAsks.WithLabelValues(result).Inc()
	m.tickets.note(namespace+"/"+name, expires, err)
}

// note keeps the end of the last ticket when there was no other.
func (t *tickets) note(secret string, expires time.Time, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.m[secret]
	if now.asked = t.now(); err == nil {
		now.expires, now.endless = expires, expires.IsZero()
	}
	t.m[secret] = now
}

// Describe implements prometheus.Collector.
func (t *tickets) Describe(descs chan<- *prometheus.Desc) { descs <- t.desc }

// Collect implements prometheus.Collector.
func (t *tickets) Collect(metrics chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for secret, ticket := range t.m {
		if t.now().Sub(ticket.asked) > needed {
			delete(t.m, secret)
			continue
		}
		if ticket.endless {
			continue
		}
		metrics <- prometheus.MustNewConstMetric(t.desc, prometheus.GaugeValue, unix(ticket.expires), secret)
	}
}

// unix is a time as metrics have it; 0 is never.
func unix(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}
