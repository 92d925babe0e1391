package schedd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// notLocated is what condor_ping says of a schedd whose address it did not get: because the collector has no record of it, or
// because the collector did not answer.
const notLocated = "couldn't locate"

// notFound makes of that error one which says whom the collector was asked for, and whether it answers. A schedd that was stopped
// in good order, or is away for longer than the collector remembers (15 minutes), and one that never was look alike to the
// collector, so both are named.
func (c *Client) notFound(ctx context.Context, id Identity, args []string, err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Kind != Unreachable || !strings.Contains(e.Stderr, notLocated) || ctx.Err() != nil {
		return err
	}
	ask := []string{"-type", "COLLECTOR", "-long", "READ"}
	collector := c.pool(id)
	if collector != "" {
		ask = append(ask, "-pool", collector)
	} else {
		collector, _ = c.config(ctx, id, "COLLECTOR_HOST") // without it the error says less
	}
	_, silent := c.ping(ctx, id, min(pingTimeout, c.o.Timeout), ask...)
	told := *e
	if kind := KindOf(silent); kind == Unreachable || kind == Timeout {
		told.Stderr = fmt.Sprintf("the collector %s, which knows where schedd %s is, does not answer: %s", collector, named(args), silent)
	} else {
		told.Stderr = fmt.Sprintf("the collector %s has no record of schedd %s: it is stopped, or it has another name", collector, named(args))
	}
	return &told
}

// withName adds the schedd that a command was about to words which leave it out.
func withName(e *Error, args []string) {
	if name := named(args); e.Kind == Unreachable && !strings.Contains(e.Error(), name) {
		e.Stderr = fmt.Sprintf("schedd %s: %s", name, cmp.Or(e.Stderr, strings.TrimPrefix(e.Error(), e.Command+": ")))
	}
}

// named is the schedd that a command line names.
func named(args []string) string {
	if i := slices.Index(args, "-name"); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}
