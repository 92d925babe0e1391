package schedd

import (
	"context"
	"errors"
	"time"
)

// pingTimeout is how long to wait for the collector's objection to a token.
const pingTimeout = 10 * time.Second

// unaccepted precedes what a tool says about a token.
const unaccepted = "the pool does not take this token: its iss has to be the pool's TRUST_DOMAIN, its kid the name of a key that the pool has, " +
	"and IDTOKENS one of the ways in which the pool lets itself be shown who comes: "

// ofToken converts an error caused by the token to kind Credentials. A ticket comes from a KDC, which has checked the account;
// whether a token belongs to this pool is unknown until the pool sees it. If the collector requires authentication, the tools
// report a rejected token like an unreachable collector: then the schedd would seem unreachable for everybody because of one
// namespace's Secret.
func (c *Client) ofToken(ctx context.Context, id Identity, err error) error {
	if err == nil || id.Tokens == "" {
		return err
	}
	if KindOf(err) == Unreachable {
		args := []string{"-type", "COLLECTOR"}
		if pool := c.pool(id); pool != "" {
			args = append(args, "-pool", pool)
		}
		if _, refused := c.ping(ctx, id, min(pingTimeout, c.o.Timeout), append(args, "-long", "READ")...); KindOf(refused) == Credentials {
			err = refused
		}
	}
	var e *Error
	if !errors.As(err, &e) || e.Kind != Credentials {
		return err
	}
	e.Stderr = unaccepted + e.Stderr
	return err
}
