package schedd

import (
	"context"
	"errors"
	"time"
)

// pingTimeout is how long the collector is asked what it has against a token.
const pingTimeout = 10 * time.Second

// unaccepted is put before what a tool says of a token.
const unaccepted = "the pool does not take this token: its iss has to be the pool's TRUST_DOMAIN, its kid the name of a key that the pool has, " +
	"and IDTOKENS one of the ways in which the pool lets itself be shown who comes: "

// ofToken makes an error of kind Credentials of one that comes of the token. A ticket comes from a KDC, which has looked
// at the account; whether a token is one of this pool's nobody knows until the pool is shown it. Where the collector wants to
// know who asks, the tools say of a token that it does not take what they say of a collector that is away: then the schedd
// would seem out of everybody's reach because of one namespace's Secret.
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
