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
	Key      string          `json:"-"` // kid, of the header
	Issuer   string          `json:"iss"`
	Subject  string          `json:"sub"`
	Expires  *float64        `json:"exp"`
	Audience json.RawMessage `json:"aud"`
	Scope    json.RawMessage `json:"scope"`
}

const (
	// maxName bounds the parts of a token that are shown: an identity is user@domain.
	maxName = 256
	// maxSciToken is a little less than HTCondor reads of one.
	maxSciToken = 16_000
)

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
	for i, into := range []any{&header, &c, nil} {
		name := [...]string{"header", "payload", "signature"}[i]
		decoded, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil || len(decoded) == 0 {
			return c, invalid("its %s is not base64url", name)
		}
		if into != nil && json.Unmarshal(decoded, into) != nil {
			return c, invalid("its %s is not the JSON of a token", name)
		}
	}
	c.Key = header.Key
	if e := c.Expires; e != nil && (*e < 0 || *e > 1<<40) { // 36812 AD
		return c, invalid("its exp is not a time in seconds")
	}
	if c.isSciToken() {
		return c, c.checkSciToken(len(text))
	}
	return c, c.checkIDToken()
}

// isSciToken reports whether the token is of another issuer than a pool: those are URLs, a pool's TRUST_DOMAIN is not.
func (c claims) isSciToken() bool { return strings.HasPrefix(c.Issuer, "https://") }

func (c claims) checkIDToken() error {
	switch {
	case c.Key == "":
		return invalid("its header has no kid, the name of the key that it was signed with")
	case c.Issuer == "":
		return invalid("it has no iss: the pool's TRUST_DOMAIN, or the https URL of another issuer")
	case c.Subject == "":
		return invalid("it has no sub, whose it is")
	case !isWord(c.Subject):
		return invalid("its sub is not a user, @ and a domain")
	}
	return nil
}

// checkSciToken refuses what HTCondor would refuse without giving a reason.
func (c claims) checkSciToken(size int) error {
	switch {
	case !isWord(c.Issuer):
		return unusable("its iss is not a URL of at most %d characters", maxName)
	case c.Subject == "":
		return unusable("it has no sub, by which the pool finds the account")
	case !isWord(c.Subject):
		return unusable("its sub is not a word of at most %d characters", maxName)
	case c.Expires == nil:
		return unusable("it has no exp, and HTCondor accepts none without an expiry")
	case size > maxSciToken:
		return unusable("it has %d bytes, and HTCondor reads at most %d", size, maxSciToken)
	}
	return nil
}

func isWord(s string) bool {
	return len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// expires returns the zero time for a token that never does.
func (c claims) expires() time.Time {
	if c.Expires == nil {
		return time.Time{}
	}
	return time.Unix(int64(*c.Expires), 0)
}

// whose returns the identity that the token claims, for people.
func (c claims) whose() string {
	if c.isSciToken() {
		return c.Subject + " by " + c.Issuer
	}
	return c.Subject
}

// String lists what decides whether a pool accepts a SciToken.
func (c claims) String() string {
	claim := func(name string, text json.RawMessage) string {
		switch {
		case len(text) == 0:
			return "no " + name
		case len(text) > maxName || strings.ContainsFunc(string(text), func(r rune) bool { return r < ' ' || r > '~' }):
			return "a long " + name
		}
		return name + " " + string(text)
	}
	return fmt.Sprintf("iss %q, sub %q, %s, %s", c.Issuer, c.Subject, claim("aud", c.Audience), claim("scope", c.Scope))
}

func invalid(format string, args ...any) error {
	return &Error{
		Invalid,
		"the token is not one of HTCondor's: " + fmt.Sprintf(format, args...) + "; make one with condor_token_create",
	}
}

func unusable(format string, args ...any) error {
	return &Error{
		Invalid,
		"the SciToken cannot be used: " + fmt.Sprintf(format, args...) + "; get another from its issuer",
	}
}
