// Package logger makes the logs of htcd's commands.
package logger

import (
	"io"
	"time"

	"github.com/go-logr/zerologr"
	"github.com/rs/zerolog"
	"k8s.io/klog/v2"

	"htc.cern.ch/htcd/internal/cli/setting"
)

// What the flags of a log's level and form may be.
var (
	Level  = setting.OneOf("debug", "info", "warn", "error")
	Format = setting.OneOf("json", "text")
)

// New writes to w; level and format are of the kinds Level and Format. client-go logs through klog, which is redirected
// to it.
func New(w io.Writer, level, format string) (zerolog.Logger, error) {
	l, err := zerolog.ParseLevel(level)
	if err != nil {
		return zerolog.Nop(), err
	}
	if format == "text" {
		w = zerolog.ConsoleWriter{Out: w, NoColor: true, TimeFormat: time.RFC3339}
	}
	log := zerolog.New(w).Level(l).With().Timestamp().Logger()
	client := log.With().Str("component", "client-go").Logger()
	klog.SetLogger(zerologr.New(&client))
	return log, nil
}
