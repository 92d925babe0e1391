package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// profiles serves what go tool pprof asks for, where --pprof-listen says so. It tells much about what htcd does, and so
// an address without a host is this machine's own.
func (d *daemon) profiles() (stop func() error, err error) {
	if d.o.PprofListen == "" {
		return func() error { return nil }, nil
	}
	listener, err := net.Listen("tcp", loopback(d.o.PprofListen))
	if err != nil {
		return nil, fmt.Errorf("--pprof-listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }()
	d.log.Info().Str("profiles", "http://"+listener.Addr().String()+"/debug/pprof/").Msg("profiles may be taken")
	return server.Close, nil
}

// loopback gives an address without a host this machine's own.
func loopback(address string) string {
	if host, port, err := net.SplitHostPort(address); err == nil && host == "" {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}
