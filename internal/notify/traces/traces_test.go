package traces

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// collector takes requests, or answers with a code while it is not zero.
type collector struct {
	mu    sync.Mutex
	code  int
	asked int // requests
	got   []string
	done  chan struct{} // closed with the first one that was taken
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if c.code != 0 {
		w.WriteHeader(c.code)
		return
	}
	body, _ := io.ReadAll(r.Body)
	if c.got = append(c.got, r.URL.Path+" "+r.Header.Get("Content-Type")+" "+string(body)); len(c.got) == 1 {
		close(c.done)
	}
}

func (c *collector) answer(code int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.code = code
}

// counts are how many traces were sent, and lost.
type counts struct {
	mu         sync.Mutex
	sent, lost int
}

func (c *counts) add(sent bool, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sent {
		c.sent += n
	} else {
		c.lost += n
	}
}

func exporter(t *testing.T, code int) (*Exporter, *collector, *counts) {
	t.Helper()
	c, n := &collector{code: code, done: make(chan struct{})}, &counts{}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	e := New(server.URL+Path, "v1", n.add, zerolog.Nop())
	e.pauses = []time.Duration{time.Millisecond, time.Millisecond}
	return e, c, n
}

func trace(uid string) Trace {
	at := time.Unix(1000, 5)
	return Trace{UID: uid, Attempt: 2, Spans: []Span{
		{
			Name: "HTCJob", Start: at, End: at.Add(time.Second), Error: "it failed",
			Attributes: map[string]string{"b": "2", "a": "1", "c": ""},
		},
		{Path: "dag 1", Name: "DAG", Start: at, End: at},
		{Path: "dag 1/run", Name: "run", Start: at, End: at},
	}}
}

// over is a context that has ended.
func over(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestATraceIsSentAsOTLPAndItsSpansLieInEachOther(t *testing.T) {
	e, c, n := exporter(t, 0)
	e.Add(trace("uid"))
	e.Run(over(t))
	require.Equal(t, 1, n.sent)
	require.Len(t, c.got, 1)
	head := Path + " application/json "
	require.Equal(t, head, c.got[0][:len(head)])
	var r request
	require.NoError(t, json.Unmarshal([]byte(c.got[0][len(head):]), &r))
	require.Equal(t, []attribute{{"service.name", value{"htcd"}}, {"service.version", value{"v1"}}},
		r.ResourceSpans[0].Resource.Attributes)
	spans := r.ResourceSpans[0].ScopeSpans[0].Spans
	require.Equal(t, span{
		TraceID: spans[0].TraceID, SpanID: spans[0].SpanID, Name: "HTCJob", Kind: kindInternal,
		Start: "1000000000005", End: "1001000000005",
		Attributes: []attribute{{"a", value{"1"}}, {"b", value{"2"}}}, Status: status{codeError, "it failed"},
	}, spans[0])
	require.Len(t, spans[0].TraceID, 32)
	require.Len(t, spans[0].SpanID, 16)
	require.Equal(t, spans[0].SpanID, spans[1].ParentID)
	require.Equal(t, spans[1].SpanID, spans[2].ParentID)
	require.Equal(t, "00-"+spans[0].TraceID+"-"+spans[2].SpanID+"-01", Parent("uid", 2, "dag 1/run"))
	require.NotEqual(t, Parent("uid", 2, "dag 1/run")[:36], Parent("uid", 3, "dag 1/run")[:36])
}

func TestATraceIsSentAgainUntilTheCollectorTakesIt(t *testing.T) {
	e, c, n := exporter(t, http.StatusServiceUnavailable)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { e.Run(ctx); close(ended) }()
	e.Add(trace("lost"))
	require.Eventually(
		t,
		func() bool { n.mu.Lock(); defer n.mu.Unlock(); return n.lost == 1 },
		time.Minute,
		time.Millisecond,
	)
	c.answer(0)
	e.Add(trace("kept"))
	<-c.done
	require.Eventually(
		t,
		func() bool { n.mu.Lock(); defer n.mu.Unlock(); return n.sent == 1 },
		time.Minute,
		time.Millisecond,
	)
	cancel()
	<-ended
}

func TestWhatTheCollectorRefusesIsNotSentAgain(t *testing.T) {
	e, c, n := exporter(t, http.StatusBadRequest)
	e.pauses = []time.Duration{time.Hour}
	e.send(t.Context(), []Trace{trace("a"), trace("b")})
	require.Equal(t, 2, n.lost)
	require.Empty(t, c.got)
}

func TestWithoutACollectorAddingNeverBlocks(t *testing.T) {
	e, _, n := exporter(t, 0)
	for range mostWaiting + 7 {
		e.Add(trace("uid"))
	}
	require.Equal(t, 7, n.lost)
	e.Run(over(t))
	require.Equal(t, mostWaiting, n.sent)
}

func TestAnEnormousTraceIsSentInPartsAndWithoutTheOthers(t *testing.T) {
	e, c, n := exporter(t, 0)
	enormous := trace("enormous")
	for len(enormous.Spans) < 2*mostSpans+7 {
		enormous.Spans = append(enormous.Spans, enormous.Spans[1])
	}
	e.Add(trace("a"))
	e.Add(enormous)
	e.Add(trace("b"))
	e.Run(over(t))
	require.Equal(t, 3, n.sent)
	var spans []int
	for _, body := range c.got {
		require.Less(t, len(body), 4<<20)
		spans = append(spans, strings.Count(body, `"spanId"`))
	}
	require.Equal(t, []int{3, mostSpans, mostSpans, 7, 3}, spans)
}

func TestWhatIsBeingSentWhenHtcdEndsIsSentOnceMore(t *testing.T) {
	e, c, n := exporter(t, http.StatusServiceUnavailable)
	e.pauses = []time.Duration{time.Hour}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { e.Run(ctx); close(ended) }()
	e.Add(trace("uid"))
	require.Eventually(
		t,
		func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.asked > 0 },
		time.Minute,
		time.Millisecond,
	)
	c.answer(0)
	cancel()
	<-ended
	require.Equal(t, 1, n.sent)
	require.Len(t, c.got, 1)
}
