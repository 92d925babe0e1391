package notify

import (
	"bytes"
	stdlog "log"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"htc.cern.ch/htcd/internal/schedd/plaintext"
)

// Limits on one connection's use of the server's time and memory. Most events are a few hundred bytes; a job's node may
// be far away and busy.
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
		Handler:           asking(handler),
		ConnContext:       within,
		ReadHeaderTimeout: headerTime, // of a TLS handshake, too
		ReadTimeout:       readTime,
		WriteTimeout:      writeTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    headerSize,
		ErrorLog:          stdlog.New(errorLog{log.With().Str("component", "notify").Logger()}, "", 0),
	}
}

// errorLog receives what the server has to say. Strangers can cause most of it, such as TLS handshakes that fail, as
// often as they like: Limit counts them.
type errorLog struct{ log zerolog.Logger }

func (l errorLog) Write(line []byte) (int, error) {
	level := zerolog.DebugLevel
	if bytes.HasPrefix(line, []byte("http: panic serving")) || bytes.HasPrefix(line, []byte("http: Accept error")) {
		level = zerolog.ErrorLevel
	}
	l.log.WithLevel(level).Msg(plaintext.Line(string(bytes.TrimSpace(line))))
	return len(line), nil
}
