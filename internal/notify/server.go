package notify

import (
	"context"
	"errors"
	stdlog "log"
	"net"
	"net/http"
	"time"

	"github.com/rs/zerolog"
)

// What one client may take of the server's time and memory. An event is a
// few hundred bytes; a job's node may be far and busy.
const (
	headerTime = 5 * time.Second
	readTime   = 15 * time.Second // header and body
	writeTime  = 45 * time.Second // from the end of the header, the Recorder's time included
	idleTime   = 30 * time.Second
	headerSize = 8 << 10
)

// Serve answers on listener with handler until ctx ends. Then it takes no
// more connections and gives the events in hand as long as grace to be
// answered. It returns nil after an end that left none behind.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, grace time.Duration, log zerolog.Logger) error {
	component := log.With().Str("component", "notify").Logger()
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       readTime,
		WriteTimeout:      writeTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    headerSize,
		ErrorLog:          stdlog.New(component, "", 0), // of a handler that panicked, a TLS handshake that failed
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := server.Shutdown(bound)
	if err != nil {
		err = errors.Join(errors.New("callbacks were still in hand when the time to stop was over"), server.Close())
	}
	<-served // http.ErrServerClosed, by Shutdown
	return err
}
