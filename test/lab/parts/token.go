package parts

import (
	"context"
	"strconv"
	"strings"
	"time"

	"htc.cern.ch/htcd/test/lab"
)

// TokenAsk is what condor_token_create is asked for.
type TokenAsk struct {
	Account string        // of the lab's domain
	Life    time.Duration // whole seconds; 0: no end
	Issuer  string        // another TRUST_DOMAIN than the pool's; empty: that
	Only    []string      // the authorisations that it is for, such as READ; none: whatever the account may
}

// Token makes an IDTOKEN as the pool's administrator would, signed with the pool's key. It is on the standard output
// of the command and nowhere else.
func Token(ctx context.Context, l *lab.Lab, ask TokenAsk) (string, error) {
	args := []string{"CONDOR_CONFIG=" + l.Path("condor", "server.conf")}
	if ask.Issuer != "" {
		args = append(args, "_CONDOR_TRUST_DOMAIN="+ask.Issuer)
	}
	args = append(args, "condor_token_create", "-identity", ask.Account+"@"+Domain)
	if ask.Life > 0 {
		args = append(args, "-lifetime", strconv.Itoa(int(ask.Life/time.Second)))
	}
	for _, authz := range ask.Only {
		args = append(args, "-authz", authz)
	}
	out, err := l.RunAs(ctx, "root", "env", args...)
	return strings.TrimSpace(out), err
}
