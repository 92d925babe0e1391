package token

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// claims are what a token says about itself.
type claims struct {
	subject string
	expires time.Time // zero: never
}

// maxName bounds the part of a token that is shown: an identity is user@domain.
const maxName = 256

// parse reads a token of one line. Its errors are of kind Invalid and contain no part of the token.
func parse(text string) (claims, error) {
	var c claims
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return c, invalid("expected one line without blanks")
	}
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return c, invalid("expected three parts with a dot between them, found %d", len(parts))
	}
	var header struct {
		Key string `json:"kid"`
	}
	var payload struct {
		Issuer  string   `json:"iss"`
		Subject string   `json:"sub"`
		Expires *float64 `json:"exp"`
	}
	for i, into := range []any{&header, &payload, nil} {
		name := [...]string{"header", "payload", "signature"}[i]
		decoded, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil || len(decoded) == 0 {
			return c, invalid("its %s is not base64url", name)
		}
		if into != nil && json.Unmarshal(decoded, into) != nil {
			return c, invalid("its %s is not the JSON of a token", name)
		}
	}
	switch {
	case header.Key == "":
		return c, invalid("its header has no kid, the name of the key that it was signed with")
	case payload.Issuer == "":
		return c, invalid("it has no iss, the pool's TRUST_DOMAIN")
	case payload.Subject == "":
		return c, invalid("it has no sub, whose it is")
	case len(payload.Subject) > maxName, strings.ContainsFunc(payload.Subject, func(r rune) bool { return r <= ' ' || r > '~' }):
		return c, invalid("its sub is not a user, @ and a domain")
	}
	c.subject = payload.Subject
	if e := payload.Expires; e != nil {
		if *e < 0 || *e > 1<<40 { // 36812 AD
			return c, invalid("its exp is not a time in seconds")
		}
		c.expires = time.Unix(int64(*e), 0)
	}
	return c, nil
}

func invalid(format string, args ...any) error {
	return &Error{Invalid, "the token is none of HTCondor's: " + fmt.Sprintf(format, args...) + "; make one with condor_token_create"}
}
