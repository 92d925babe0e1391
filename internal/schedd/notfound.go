package schedd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// notLocated is condor_ping's message about a schedd whose address it did not get, because the collector has no record
// of it or did not answer.
const notLocated = "couldn't locate"

// notFound replaces that error with one that names the schedd and reports whether the collector answers. The collector
// cannot distinguish a schedd that was stopped properly, or has been away for longer than it remembers (15 minutes),
// from one that never existed, so both are named.
func (c *Client) notFound(ctx context.Context, id Identity, args []string, err error) error {
	e, ok := errors.AsType[*condor.Error](err)
	if !ok || e.Kind != condor.Unreachable || !strings.Contains(e.Stderr, notLocated) || ctx.Err() != nil {
		return err
	}
	ask := []string{"-type", "COLLECTOR", "-long", "READ"}
	collector := c.pool(id)
	if collector != "" {
		ask = append(ask, "-pool", collector)
	} else {
		collector, _ = c.config(ctx, id, "COLLECTOR_HOST") // without it the error merely says less
	}
	_, silent := c.ping(ctx, id, min(answerTime, c.o.Timeout), ask...)
	explained := *e
	if kind := condor.KindOf(silent); kind == condor.Unreachable || kind == condor.Timeout {
		explained.Stderr = fmt.Sprintf(
			"the collector %s, which knows where schedd %s is, does not answer: %s",
			collector,
			named(args),
			silent,
		)
	} else {
		explained.Stderr = fmt.Sprintf(
			"the collector %s has no record of schedd %s: it is stopped, or it has another name",
			collector,
			named(args),
		)
	}
	return &explained
}

// withName adds the schedd of a command to a message that omits it.
func withName(e *condor.Error, args []string) {
	if name := named(args); e.Kind == condor.Unreachable && !strings.Contains(e.Error(), name) {
		e.Stderr = fmt.Sprintf("schedd %s: %s", name, cmp.Or(e.Stderr, strings.TrimPrefix(e.Error(), e.Command+": ")))
	}
}

// named returns the schedd that a command line names.
func named(args []string) string {
	if i := slices.Index(args, "-name"); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}
