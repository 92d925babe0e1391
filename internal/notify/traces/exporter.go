package traces

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/rs/zerolog"
)

// Path is where a collector takes traces.
const Path = "/v1/traces"

const (
	mostWaiting = 1000 // traces
	mostAtOnce  = 100  // in a request
	timeout     = 10 * time.Second
	lastTimeout = 2 * time.Second // at the end
)

// Exporter sends traces in the order in which they are added. Those that nobody takes are lost.
type Exporter struct {
	url, version string
	count        func(sent bool, traces int)
	log          zerolog.Logger
	client       http.Client
	waiting      chan Trace
	pauses       []time.Duration // between the tries of a request
	failing      bool            // the last request was not taken
}

// New returns an exporter to a URL that ends in Path. count is told what became of traces.
func New(url, version string, count func(sent bool, traces int), log zerolog.Logger) *Exporter {
	return &Exporter{
		url:     url,
		version: version,
		count:   count,
		log:     log,
		waiting: make(chan Trace, mostWaiting),
		pauses:  []time.Duration{time.Second, 5 * time.Second, 30 * time.Second},
		client: http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Add queues a trace. It never blocks: where there are too many, it is lost.
func (e *Exporter) Add(t Trace) {
	select {
	case e.waiting <- t:
	default:
		e.count(false, 1)
	}
}

// Run sends what was added until ctx ends, and then what is left, each once.
func (e *Exporter) Run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case t := <-e.waiting:
			e.send(ctx, e.with(t))
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTimeout)
	defer cancel()
	for {
		select {
		case t := <-e.waiting:
			all := e.with(t)
			_, err := e.post(last, all)
			e.count(err == nil, len(all))
		default:
			return
		}
	}
}

// with returns a trace and what else waits, as far as it goes into one request.
func (e *Exporter) with(t Trace) []Trace {
	all := []Trace{t}
	for len(all) < mostAtOnce {
		select {
		case t := <-e.waiting:
			all = append(all, t)
		default:
			return all
		}
	}
	return all
}

// send sends traces, with a few tries.
func (e *Exporter) send(ctx context.Context, all []Trace) {
	for try := 0; ; try++ {
		again, err := e.post(ctx, all)
		switch {
		case err == nil && e.failing:
			e.log.Info().Str("url", e.url).Msg("traces are taken again")
		case err != nil && !e.failing && ctx.Err() == nil:
			e.log.Warn().Err(err).Str("url", e.url).Msg("traces are not taken: they are lost if that lasts")
		}
		e.failing = err != nil
		if err == nil || !again || try == len(e.pauses) {
			e.count(err == nil, len(all))
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(e.pauses[try]):
		}
	}
}

// post sends traces once. again is whether another try may succeed.
func (e *Exporter) post(ctx context.Context, all []Trace) (again bool, err error) {
	body, err := encode(all, e.version)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "htcd/"+e.version)
	resp, err := e.client.Do(req)
	if err != nil {
		return true, err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be used again
	if resp.StatusCode/100 == 2 {
		return false, nil
	}
	return resp.StatusCode == http.StatusTooManyRequests ||
			resp.StatusCode >= 500, fmt.Errorf(
			"the collector says %s",
			resp.Status,
		)
}
