package plugin

import (
	"context"
	"io"
	"net/url"
	"strconv"
	"time"

	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// How long, and how often, to retry a broken connection.
const (
	patience    = 2 * time.Minute
	firstPause  = 500 * time.Millisecond
	longestRest = 5 * time.Second
)

// again calls try until it succeeds, fails with an error that does not pass, or nothing has succeeded for as long as
// patience allows. try reports whether it made progress, which renews the patience.
func again(ctx context.Context, try func() (progress bool, err error)) error {
	pause, since := firstPause, time.Now()
	for {
		progress, err := try()
		if err == nil || ctx.Err() != nil || !passing(err) {
			return err
		}
		if progress {
			pause, since = firstPause, time.Now()
		}
		if time.Since(since) > patience {
			return err
		}
		if err := pauseFor(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, longestRest)
	}
}

// log copies one stream of a job to w. It reconnects when the connection breaks, and resumes there. Before the output
// it calls item, if there is one, when the job has variables that only it has.
func (c *cluster) log(ctx context.Context, name string, parameters url.Values, w io.Writer, item func(string)) error {
	var offset int64
	begun := false
	try := func() (bool, error) {
		response, err := c.output(ctx, name, "log", parameters)
		if err != nil {
			return false, err
		}
		defer response.Body.Close()
		if !begun {
			begun = true
			offset, _ = strconv.ParseInt(response.Header.Get(aggregate.HeaderOffset), 10, 64) // else it is 0
			if attempt := response.Header.Get(aggregate.HeaderAttempt); attempt != "" {
				parameters.Set("attempt", attempt)
			}
			parameters.Del("tailLines")
			if label, err := url.PathUnescape(response.Header.Get(aggregate.HeaderItem)); err == nil && label != "" &&
				item != nil {
				item(Plain(label))
			}
		}
		n, err := copyTo(w, response.Body)
		offset += n
		parameters.Set("offset", strconv.FormatInt(offset, 10))
		return n > 0, err
	}
	if _, err := try(); err == nil || !begun || !passing(err) {
		return err
	}
	return again(ctx, try)
}

// errHere marks an error on this side, which trying again does not fix.
type errHere struct{ error }

func (e errHere) Unwrap() error { return e.error }

func copyTo(w io.Writer, r io.Reader) (int64, error) {
	var failed error
	n, err := io.Copy(writerFunc(func(p []byte) (int, error) {
		n, err := w.Write(p)
		failed = err
		return n, err
	}), r)
	if failed != nil {
		return n, errHere{failed}
	}
	return n, err
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
