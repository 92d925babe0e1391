// Package logger makes the logs of htcd's commands.
package logger

import (
	"io"
	"time"

	"github.com/go-logr/zerologr"
	"github.com/rs/zerolog"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"htc.cern.ch/htcd/internal/cli/setting"
)

// Flags defines those of a log's level, and of its form, which is usually that.
func Flags(f *pflag.FlagSet, level, format *string, usual string) {
	setting.Text(f, level, "log-level", "info", setting.OneOf("debug", "info", "warn", "error"), "debug, info, warn or error")
	setting.Text(f, format, "log-format", usual, setting.OneOf("json", "text"), "json or text")
}

// New writes to w; level and format are as Flags sets them. client-go logs through klog, which is redirected
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
	client := log.Output(&rarely{to: w, now: time.Now}).With().Str("component", "client-go").Logger()
	klog.SetLogger(zerologr.New(&client))
	return log, nil
}
