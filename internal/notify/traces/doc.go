// Package traces sends traces to a collector of OpenTelemetry, by OTLP over HTTP with JSON.
//
// The ids follow from what a trace is of, an object's UID and attempt, and from the paths of its spans. So a job can be
// told in its environment which span it belongs to (W3C's traceparent) before that span exists, and a trace that is
// sent again after a restart is the same one.
//
// OpenTelemetry's own exporter is not used: it would make the program half as large again, since gRPC comes with it.
package traces
