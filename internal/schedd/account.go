package schedd

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/tool"
)

// Permission is what a schedd is asked to be allowed.
type Permission string

// The permissions.
const (
	Reading Permission = "READ"
	Writing Permission = "WRITE"
)

// Ping asks the schedd the smallest possible question, a handshake; a nil error means that it answers. For Writing it
// returns the Owner that the schedd assigns to jobs of this identity. Only the schedd knows it: its map files derive it
// from the name in the ticket or the token. The handshake is the one that begins a submission.
func (c *Client) Ping(ctx context.Context, id Identity, p Permission) (account string, err error) {
	if p == Writing {
		return c.account(ctx, id)
	}
	args, err := c.target(ctx, id)
	if err != nil {
		return "", err
	}
	_, err = c.ping(ctx, id, min(answerTime, c.o.Timeout), append(args, "-type", "SCHEDD", "-long", "READ")...)
	return "", c.notFound(ctx, id, args, c.ofToken(ctx, id, err))
}

// answers reports whether the schedd answers.
func (c *Client) answers(ctx context.Context, id Identity) bool {
	_, err := c.Ping(ctx, id, Reading)
	return err == nil
}

func (c *Client) account(ctx context.Context, id Identity) (string, error) {
	args, err := c.target(ctx, id)
	if err != nil {
		return "", err
	}
	out, err := c.ping(ctx, id, c.o.Timeout, append(args, "-type", "SCHEDD", "-long", "WRITE")...)
	if err = c.ofToken(ctx, id, err); err != nil {
		return "", err
	}
	var user string
	for line := range strings.Lines(out) { // a sentence precedes the ad
		if err == nil && strings.HasPrefix(line, "MyRemoteUserName ") {
			var ad classad.Ad
			ad, err = classad.ParseAd(line)
			user = interned(ad.Get("MyRemoteUserName"))
		}
	}
	account, _, _ := strings.Cut(user, "@")
	if err != nil || account == "" {
		return "", &condor.Error{Command: "condor_ping", Stderr: "expected MyRemoteUserName, found " + condor.Clip(out)}
	}
	return account, nil
}

// answerTime is how long a working schedd or collector may take to answer: another client that stalls during a
// submission blocks a schedd for 20 s (measured).
const answerTime = 25 * time.Second

// ping runs condor_ping, which reports errors on standard output.
func (c *Client) ping(ctx context.Context, id Identity, timeout time.Duration, args ...string) (string, error) {
	var out bytes.Buffer
	err := c.once(ctx, command{name: "condor_ping", args: args, id: id, timeout: timeout, read: tool.Output(&out)})
	var e *condor.Error
	if errors.As(err, &e) && e.Kind == condor.Unknown && e.Stderr == "" {
		words, _, _ := strings.Cut(strings.TrimPrefix(out.String(), "#"), "\n")
		e.Stderr, e.Kind = condor.Clip(words), classify([]string{words}, false)
		withName(e, args)
	}
	return out.String(), err
}
