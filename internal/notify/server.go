package notify

import (
	stdlog "log"
	"net/http"
	"time"

	"github.com/rs/zerolog"
)

// Limits on one client's use of the server's time and memory. An event is a few hundred bytes; a job's node may be far
// away and busy.
const (
	headerTime = 5 * time.Second
	readTime   = 15 * time.Second // header and body
	writeTime  = 45 * time.Second // from the end of the header, the Recorder's time included
	idleTime   = 30 * time.Second
	headerSize = 8 << 10
)

// NewServer returns a server for handler that bounds what one client may take.
func NewServer(handler http.Handler, log zerolog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       readTime,
		WriteTimeout:      writeTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    headerSize,
		ErrorLog:          stdlog.New(log.With().Str("component", "notify").Logger(), "", 0), // of a handler that panicked, a TLS handshake that failed
	}
}
