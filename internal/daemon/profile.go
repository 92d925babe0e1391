package daemon

import (
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// profiles serves go tool pprof if --pprof-listen is set. Profiles reveal much about htcd, so an address without a host
// is loopback.
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
	d.log.Info().Str("profiles", "http://"+listener.Addr().String()+"/debug/pprof/").Msg("serving profiles")
	return server.Close, nil
}

// loopback adds this machine's own host to an address without one.
func loopback(address string) string {
	if host, port, err := net.SplitHostPort(address); err == nil && host == "" {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}
