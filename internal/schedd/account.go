package schedd

import (
	"bytes"
	"context"
	"strings"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/tool"
)

// Account is the Owner that the schedd gives to whatever this identity submits. Only the schedd knows: its map files
// make it of the Kerberos name. condor_ping asks by the same handshake that a submission begins with.
func (c *Client) Account(ctx context.Context, id Identity) (string, error) {
	args, err := c.target(ctx, id)
	if err != nil {
		return "", err
	}
	args = append(args, "-type", "SCHEDD", "-long", "WRITE")
	var out bytes.Buffer
	if err := c.run(ctx, command{name: "condor_ping", args: args, id: id, timeout: c.o.Timeout, read: tool.Output(&out)}); err != nil {
		return "", err
	}
	var user string
	for line := range strings.Lines(out.String()) { // a sentence stands before the ad
		if err == nil && strings.HasPrefix(line, "MyRemoteUserName ") {
			err = classad.ReadLong(strings.NewReader(line), func(ad classad.Ad) error {
				user, _ = ad.Get("MyRemoteUserName").Str()
				return nil
			})
		}
	}
	account, _, _ := strings.Cut(user, "@")
	if err != nil || account == "" {
		return "", &Error{Command: "condor_ping", Stderr: "expected MyRemoteUserName, found " + clip(out.String())}
	}
	return account, nil
}
