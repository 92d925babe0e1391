package schedd

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"htc.cern.ch/htcd/internal/schedd/tool"
)

// ScheddName is the name by which the schedd that the commands talk to is known, for a
// person who wants to ask it: Options.Schedd, else the configuration's SCHEDD_HOST, else
// the name of the schedd on this machine.
func (c *Client) ScheddName(ctx context.Context, id Identity) (string, error) {
	host, err := c.scheddHost(ctx, id)
	if host != "" || err != nil {
		return host, err
	}
	for _, setting := range []string{"SCHEDD_NAME", "FULL_HOSTNAME"} {
		if host, err = c.config(ctx, id, setting); host != "" || err != nil {
			return host, err
		}
	}
	return "", &Error{Command: "condor_config_val", Stderr: "neither SCHEDD_HOST nor FULL_HOSTNAME is set"}
}

// scheddHost is the name the commands use, empty for the schedd on this machine.
func (c *Client) scheddHost(ctx context.Context, id Identity) (string, error) {
	if c.o.Schedd != "" {
		return c.o.Schedd, nil
	}
	c.hostMu.Lock()
	defer c.hostMu.Unlock()
	if c.host == nil {
		host, err := c.config(ctx, id, "SCHEDD_HOST")
		if err != nil {
			return "", err
		}
		c.host = &host
	}
	return *c.host, nil
}

// config reads a setting of HTCondor's configuration; empty when it is not set.
func (c *Client) config(ctx context.Context, id Identity, setting string) (string, error) {
	var out bytes.Buffer
	err := c.run(ctx, command{name: "condor_config_val", args: []string{setting}, id: id, timeout: c.o.Timeout, read: tool.Output(&out)})
	var e *Error
	if errors.As(err, &e) && e.ExitCode == 1 && strings.HasPrefix(e.Stderr, "Not defined: ") {
		return "", nil
	}
	return strings.TrimSpace(out.String()), err
}
