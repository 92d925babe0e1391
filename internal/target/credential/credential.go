// Package credential turns the content of a Secret into an identity that HTCondor's commands can run as: a user name
// with a password or a keytab through Kerberos, a token by itself.
package credential

import (
	"context"
	"errors"
	"strings"
	"time"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/krb"
	"htc.cern.ch/htcd/internal/schedd/token"
)

// Keys describes what a Secret must contain.
const Keys = "username, and password or keytab; or token alone"

// Credential is the content of a Secret: one or the other.
type Credential struct {
	kerberos krb.Credential
	token    string
	isToken  bool
}

// Read extracts it from a Secret's data. Its errors are *Error.
func Read(data map[string][]byte) (Credential, error) {
	has := func(key string) bool { return len(data[key]) > 0 }
	_, isToken := data["token"]
	switch {
	case isToken && (has("username") || has("password") || has("keytab")):
		return Credential{}, incomplete(
			"it has token beside username, password or keytab, and it is unclear which is meant: it must have " + Keys,
		)
	case !isToken && !(has("username") && (has("password") || has("keytab"))):
		return Credential{}, incomplete("it must have " + Keys)
	}
	return Credential{
		kerberos: krb.Credential{
			Username: string(data["username"]),
			Password: string(data["password"]),
			Keytab:   data["keytab"],
		},
		token: string(data["token"]), isToken: isToken,
	}, nil
}

func incomplete(message string) error { return &Error{krb.Invalid.String(), message} }

// IsToken reports whether it is a token.
func (c Credential) IsToken() bool { return c.isToken }

// String names its account, as far as it is known without examining it. It never shows a secret.
func (c Credential) String() string {
	if c.isToken {
		return "a token"
	}
	return "account " + strings.TrimSpace(c.kerberos.Username)
}

// Error is the reason why there is no identity. It never contains a secret.
type Error struct {
	Reason  string // CamelCase, fit for a condition
	Message string
}

func (e *Error) Error() string { return e.Message }

// Proof is an identity and its basis.
type Proof struct {
	Identity schedd.Identity
	By       string    // for people: the kind of proof and the account
	Expires  time.Time // zero: never
}

// Keeper keeps tickets and tokens. All methods may be called concurrently.
type Keeper struct {
	Tickets *krb.Keeper
	Tokens  *token.Keeper
}

// Proof returns an identity that remains valid for a while. Errors are *Error, or the context's.
func (k *Keeper) Proof(ctx context.Context, c Credential) (Proof, error) {
	k.Tokens.Forget() // even if from now on only tickets are requested
	if c.isToken {
		t, err := k.Tokens.Token(c.token)
		if err != nil {
			return Proof{}, explain("", err)
		}
		id := schedd.Identity{Tokens: t.Dir}
		if t.Claims != "" {
			id = schedd.Identity{SciToken: t.File, Claims: t.Claims}
		}
		return Proof{id, "token of " + t.Whose, t.Expires}, nil
	}
	t, err := k.Tickets.Ticket(ctx, c.kerberos)
	if err != nil {
		return Proof{}, explain("no Kerberos ticket: ", err)
	}
	return Proof{
		schedd.Identity{CCache: t.CCache},
		"kinit as " + strings.TrimSpace(c.kerberos.Username),
		t.Expires,
	}, nil
}

func explain(what string, err error) error {
	if e, ok := errors.AsType[*krb.Error](err); ok {
		return &Error{e.Kind.String(), what + e.Message}
	}
	if e, ok := errors.AsType[*token.Error](err); ok {
		return &Error{e.Kind.String(), what + e.Message}
	}
	return err
}

// Close removes every ticket and token. None may be in use.
func (k *Keeper) Close() error { return errors.Join(k.Tickets.Close(), k.Tokens.Close()) }
