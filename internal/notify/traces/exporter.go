package traces

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/rs/zerolog"
)

// Path is where a collector takes traces.
const Path = "/v1/traces"

const (
	mostWaiting = 1000 // traces
	mostAtOnce  = 100  // in a request
	mostSpans   = 5000 // in a request: about 2 MB, and collectors take 20 MiB
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
	var left []Trace
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case t := <-e.waiting:
			left = e.send(ctx, e.with(t))
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTimeout)
	defer cancel()
	for {
		for _, some := range parts(left) {
			_, err := e.post(last, some)
			e.count(err == nil, begun(some))
		}
		select {
		case t := <-e.waiting:
			left = e.with(t)
		default:
			return
		}
	}
}

// with returns a trace and what else waits, as far as it goes into one request.
func (e *Exporter) with(t Trace) []Trace {
	all, spans := []Trace{t}, len(t.Spans)
	for len(all) < mostAtOnce && spans < mostSpans {
		select {
		case t := <-e.waiting:
			all, spans = append(all, t), spans+len(t.Spans)
		default:
			return all
		}
	}
	return all
}

// parts cuts traces into what goes into one request each: a workflow may have been repeated thousands of times, and a
// collector that does not take its trace must not lose the others with it.
func parts(all []Trace) (requests [][]Trace) {
	var one []Trace
	spans := 0
	for _, t := range all {
		if len(one) > 0 && spans+len(t.Spans) > mostSpans {
			requests, one, spans = append(requests, one), nil, 0
		}
		for rest := t.Spans; len(rest) > mostSpans; rest = t.Spans {
			part := t
			part.Spans, t.Spans, t.goesOn = rest[:mostSpans], rest[mostSpans:], true
			requests = append(requests, []Trace{part})
		}
		one, spans = append(one, t), spans+len(t.Spans)
	}
	if len(one) > 0 {
		requests = append(requests, one)
	}
	return requests
}

// begun counts the traces that begin in a request.
func begun(all []Trace) (n int) {
	for _, t := range all {
		if !t.goesOn {
			n++
		}
	}
	return n
}

// send sends traces, with a few tries. It returns what it has not sent when ctx ends.
func (e *Exporter) send(ctx context.Context, all []Trace) (left []Trace) {
	requests := parts(all)
	for i, some := range requests {
		if !e.try(ctx, some) {
			return slices.Concat(requests[i:]...)
		}
	}
	return nil
}

// try makes one request, with a few tries. over: the traces were taken, or are lost; else ctx has ended.
func (e *Exporter) try(ctx context.Context, some []Trace) (over bool) {
	for try := 0; ; try++ {
		again, err := e.post(ctx, some)
		if err != nil && ctx.Err() != nil {
			return false
		}
		switch {
		case err == nil && e.failing:
			e.log.Info().Str("url", e.url).Msg("traces are taken again")
		case err != nil && !e.failing:
			e.log.Warn().Err(err).Str("url", e.url).Msg("traces are not taken: they are lost if that lasts")
		}
		e.failing = err != nil
		if err == nil || !again || try == len(e.pauses) {
			e.count(err == nil, begun(some))
			return true
		}
		select {
		case <-ctx.Done():
			return false
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
