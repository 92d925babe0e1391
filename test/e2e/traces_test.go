//go:build !releases

package e2e

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// collected is a span as OTLP's JSON has it.
type collected struct {
	TraceID, SpanID, ParentSpanID, Name string
	StartTimeUnixNano, EndTimeUnixNano  string
	Attributes                          []struct {
		Key   string
		Value struct{ StringValue string }
	}
}

func (s collected) of(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.StringValue
		}
	}
	return ""
}

func (s collected) within(t *testing.T) (begun, ended int64) {
	t.Helper()
	begun, err := strconv.ParseInt(s.StartTimeUnixNano, 10, 64)
	require.NoError(t, err)
	ended, err = strconv.ParseInt(s.EndTimeUnixNano, 10, 64)
	require.NoError(t, err)
	return begun, ended
}

// collector takes the traces that htcd sends.
type collector struct {
	mu  sync.Mutex
	got [][]collected
}

func (c *collector) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var request struct {
		ResourceSpans []struct{ ScopeSpans []struct{ Spans []collected } }
	}
	body, _ := io.ReadAll(r.Body)
	if json.Unmarshal(body, &request) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	byTrace := map[string][]collected{}
	for _, s := range request.ResourceSpans[0].ScopeSpans[0].Spans {
		byTrace[s.TraceID] = append(byTrace[s.TraceID], s)
	}
	for _, spans := range byTrace {
		c.got = append(c.got, spans)
	}
}

// of returns the trace of an object, nil if there is none yet.
func (c *collector) of(namespace, name string) []collected {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, spans := range c.got {
		if spans[0].of("k8s.namespace.name") == namespace && spans[0].of("htc.name") == name {
			return spans
		}
	}
	return nil
}

// All tests share htcd's flags, so this one runs alone.
func TestATraceShowsWhereTheTimeOfAnHTCJobAndAnHTCWorkflowWent(t *testing.T) {
	b := trial.New(t)
	taken := &collector{}
	server := httptest.NewServer(taken)
	t.Cleanup(server.Close)
	htcd := b.Lab.Part("htcd")
	require.NoError(t, htcd.Restart(t.Context(), "--traces="+server.URL+"/v1/traces"))
	t.Cleanup(func() { require.NoError(t, htcd.Restart(context.WithoutCancel(t.Context()))) })

	b.ApplyText(`{apiVersion: htc.cern.ch/v1alpha1, kind: HTCWorkflow, metadata: {name: two}, spec: {steps: [
  {name: one, job: {script: {image: centos, command: bash, source: "echo $TRACEPARENT > trace"}, outputs: [{path: trace}]}}]}}`)
	b.Script("where", "echo $TRACEPARENT; sleep 2\n")
	job := b.Fetched("where")
	var spans, flow []collected
	b.Eventually(func() bool {
		spans, flow = taken.of(b.Namespace, "where"), taken.of(b.Namespace, "two")
		return spans != nil && flow != nil
	}, func() string { return "the traces never arrived" })

	names := func(all []collected) (list []string) {
		for _, s := range all {
			list = append(list, s.Name)
		}
		return list
	}
	steps := []string{"staging", "condor_submit", "queue", "run", "notice"}
	require.Equal(t, append(append([]string{"HTCJob", "admission"}, steps...), "fetch"), names(spans))
	require.Equal(t, append(append([]string{"HTCWorkflow", "admission", "DAG"}, steps...), "fetch"), names(flow))

	at, end := spans[0].within(t)
	require.Equal(t, job.CreationTimestamp.UnixNano(), at)
	for _, s := range spans[1:] {
		require.Equal(t, spans[0].SpanID, s.ParentSpanID)
		begun, ended := s.within(t)
		require.Equal(t, at, begun, "%s begins where the one before ended", s.Name)
		require.GreaterOrEqual(t, ended, begun)
		at = ended
	}
	require.Equal(t, end, at, "together they are the whole")
	run := spans[5]
	begun, ended := run.within(t)
	require.GreaterOrEqual(t, time.Duration(ended-begun), time.Second, "HTCondor counts whole seconds")
	require.Equal(t, "00-"+run.TraceID+"-"+run.SpanID+"-01", strings.TrimSpace(b.Output(job, 0)))
	require.Equal(t, string(v1alpha1.PhaseSucceeded), spans[0].of("htc.phase"))
	require.Equal(t, flow[0].SpanID, flow[2].ParentSpanID)
	require.Equal(t, flow[2].SpanID, flow[6].ParentSpanID)
}
