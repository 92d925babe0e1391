package traces

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// What OTLP's JSON says of spans, as far as htcd says it.
type (
	request struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	resource struct {
		Attributes []attribute `json:"attributes"`
	}
	scopeSpans struct {
		Scope scope  `json:"scope"`
		Spans []span `json:"spans"`
	}
	scope struct {
		Name string `json:"name"`
	}
	attribute struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	value struct {
		StringValue string `json:"stringValue"`
	}
	span struct {
		TraceID    string      `json:"traceId"`
		SpanID     string      `json:"spanId"`
		ParentID   string      `json:"parentSpanId,omitempty"`
		Name       string      `json:"name"`
		Kind       int         `json:"kind"`
		Start      string      `json:"startTimeUnixNano"`
		End        string      `json:"endTimeUnixNano"`
		Attributes []attribute `json:"attributes,omitempty"`
		Status     status      `json:"status"`
	}
	status struct {
		Code    int    `json:"code,omitempty"`
		Message string `json:"message,omitempty"`
	}
)

const (
	kindInternal = 1
	codeError    = 2
)

// encode returns the request that sends these traces.
func encode(all []Trace, version string) ([]byte, error) {
	var spans []span
	for _, t := range all {
		id := traceID(t.UID, t.Attempt)
		for _, s := range t.Spans {
			one := span{
				TraceID:    id,
				SpanID:     spanID(id, s.Path),
				ParentID:   parentID(id, s.Path),
				Name:       s.Name,
				Kind:       kindInternal,
				Start:      strconv.FormatInt(s.Start.UnixNano(), 10),
				End:        strconv.FormatInt(s.End.UnixNano(), 10),
				Attributes: attributes(s.Attributes),
			}
			if s.Error != "" {
				one.Status = status{codeError, s.Error}
			}
			spans = append(spans, one)
		}
	}
	return json.Marshal(request{[]resourceSpans{{
		Resource:   resource{attributes(map[string]string{"service.name": "htcd", "service.version": version})},
		ScopeSpans: []scopeSpans{{scope{"htc.cern.ch/htcd"}, spans}},
	}}})
}

func attributes(of map[string]string) (list []attribute) {
	for _, key := range slices.Sorted(maps.Keys(of)) {
		if of[key] != "" {
			list = append(list, attribute{key, value{of[key]}})
		}
	}
	return list
}
