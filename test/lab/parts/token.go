package parts

import (
	"context"
	"strconv"
	"strings"
	"time"

	"htc.cern.ch/htcd/test/lab"
)

// TokenAsk is a request to condor_token_create.
type TokenAsk struct {
	Account string        // of the lab's domain
	Life    time.Duration // whole seconds; 0: no expiry
	Issuer  string        // a TRUST_DOMAIN other than the pool's; empty: the pool's
	Only    []string      // the authorisations it grants, such as READ; empty: all of the account's
}

// Token makes an IDTOKEN as the pool's administrator would, signed with the pool's key. It appears only on the
// command's standard output.
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
