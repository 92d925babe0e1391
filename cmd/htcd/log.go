package main

import (
	"io"
	"time"

	"github.com/go-logr/zerologr"
	"github.com/rs/zerolog"
	"k8s.io/klog/v2"
)

// newLogger writes to w; level and format are of the kinds logLevel and logFormat. client-go logs through klog, which is redirected to it.
func newLogger(w io.Writer, level, format string) (zerolog.Logger, error) {
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
