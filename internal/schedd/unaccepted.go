package schedd

import (
	"context"
	"errors"
	"strings"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// unaccepted precedes what a tool says about an IDTOKEN.
const unaccepted = "the pool does not take this token: its iss has to be the pool's TRUST_DOMAIN, its kid the name of a key that the pool has, " +
	"and IDTOKENS one of the ways in which the pool lets itself be shown who comes: "

// ofToken converts an error caused by the token to kind Credentials or NotAuthorised. A ticket comes from a KDC, which
// has checked the account; whether a token belongs to this pool is unknown until the pool sees it. If the collector
// requires authentication, the tools report a rejected token like an unreachable collector: then the schedd would seem
// unreachable for everybody because of one namespace's Secret.
func (c *Client) ofToken(ctx context.Context, id Identity, err error) error {
	if err == nil || id.Tokens == "" && id.SciToken == "" {
		return err
	}
	if condor.KindOf(err) == condor.Unreachable {
		if objects := c.pingCollector(
			ctx,
			id,
		); condor.KindOf(objects) == condor.Credentials ||
			condor.KindOf(objects) == condor.NotAuthorised {
			err = objects
		}
	}
	var e *condor.Error
	switch {
	case !errors.As(err, &e):
	case e.Kind == condor.Credentials && id.SciToken != "":
		e.Stderr = c.ofSciToken(ctx, id) + e.Stderr
	case e.Kind == condor.Credentials:
		e.Stderr = unaccepted + e.Stderr
	case e.Kind == condor.NotAuthorised && id.SciToken != "":
		e.Stderr = "the token, with " + id.Claims + ", must grant reading and writing (" + scopes + "), and its account be allowed to: " + e.Stderr
	}
	return err
}

// scopes are what a SciToken needs, in either profile.
const scopes = "scope condor:/READ and condor:/WRITE; or compute.read, compute.create, compute.modify and compute.cancel"

func (c *Client) pingCollector(ctx context.Context, id Identity, options ...string) error {
	args := append(options, "-type", "COLLECTOR")
	if pool := c.pool(id); pool != "" {
		args = append(args, "-pool", pool)
	}
	_, err := c.ping(ctx, id, min(answerTime, c.o.Timeout), append(args, "-long", "READ")...)
	return err
}

// ofSciToken returns why a SciToken did not help, to precede what a tool says. The tools show only in their debugging
// output whether it was the server that refused the token, or this side that did not trust the server; the server gives
// no reason.
func (c *Client) ofSciToken(ctx context.Context, id Identity) string {
	const debug = "-debug:D_SECURITY"
	server, err := "collector", c.pingCollector(ctx, id, debug)
	if err == nil {
		server = "schedd"
		args, unknown := c.target(ctx, id)
		if unknown != nil {
			return ""
		}
		_, err = c.ping(
			ctx,
			id,
			min(answerTime, c.o.Timeout),
			append(args, debug, "-type", "SCHEDD", "-long", "WRITE")...)
	}
	return sciTokenTrouble(server, id.Claims, err)
}

// sciTokenTrouble explains the error of condor_ping with debugging output, from the end of a handshake.
func sciTokenTrouble(server, claims string, err error) string {
	e, ok := errors.AsType[*condor.Error](err)
	if !ok {
		return ""
	}
	says := func(words string) bool { return strings.Contains(e.Stderr, words) }
	switch {
	case says("Server has rejected our token"):
		return "the " + server + " does not accept this token, with " + claims + ": it must know the issuer, its map file (CERTIFICATE_MAPFILE) an account for " +
			"SCITOKENS iss,sub; aud must be one of its SCITOKENS_SERVER_AUDIENCE; and the token must have a scope (its log gives the reason): "
	case says("certificate verify failed"):
		return "the authority of the " + server + "'s host certificate is not trusted here, and a SciToken is shown only to a server that is: " +
			"set AUTH_SSL_CLIENT_CAFILE or AUTH_SSL_CLIENT_CADIR in condor_config: "
	case says("No SSL host name specified"):
		return "the " + server + " is named by an address, but with a SciToken its host certificate is checked, which needs its host name: " +
			"write that in --collector or COLLECTOR_HOST, and --schedd: "
	case says("Error on check of peer certificate"):
		return "the " + server + "'s host certificate is for another host name than the one by which it was asked: "
	case says("Failed to open SciTokens library"):
		return "HTCondor's tools here cannot use SciTokens, as the library libSciTokens.so.0 is missing: "
	}
	return "the " + server + " does not accept this token, with " + claims + ", or took too long to: " +
		"it must accept SCITOKENS for reading and writing, have a host certificate, and be able to ask the issuer for its keys: "
}
