package main

import (
	"fmt"
	"io"
	"time"

	"github.com/go-logr/zerologr"
	"github.com/rs/zerolog"
	"k8s.io/klog/v2"
)

// newLogger writes to w; format is "json" or "text". client-go logs through klog, which is redirected to it.
func newLogger(w io.Writer, level, format string) (zerolog.Logger, error) {
	l, err := zerolog.ParseLevel(level)
	if err != nil || level == "" {
		return zerolog.Nop(), fmt.Errorf("--log-level %q: want debug, info, warn or error", level)
	}
	switch format {
	case "json":
	case "text":
		w = zerolog.ConsoleWriter{Out: w, NoColor: true, TimeFormat: time.RFC3339}
	default:
		return zerolog.Nop(), fmt.Errorf("--log-format %q: want json or text", format)
	}
	log := zerolog.New(w).Level(l).With().Timestamp().Logger()
	client := log.With().Str("component", "client-go").Logger()
	klog.SetLogger(zerologr.New(&client))
	return log, nil
}
