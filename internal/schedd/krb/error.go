package krb

import (
	"strings"

	"htc.cern.ch/htcd/internal/schedd/tool"
)

// Kind says why there is no ticket.
type Kind int

// The kinds of failure.
const (
	Unknown          Kind = iota
	Invalid               // the credential itself is incomplete or malformed
	BadPassword           // the KDC refuses the password or the keytab's key
	UnknownPrincipal      // the KDC does not know the user name
	Expired               // the account or its password has expired, or is locked
	KDCUnreachable        // no KDC answered in time
	RealmNotAllowed       // the account is of a realm whose KDCs htcd does not ask
)

var kindNames = [...]string{
	"Unknown",
	"InvalidCredential",
	"BadPassword",
	"UnknownPrincipal",
	"AccountExpired",
	"KDCUnreachable",
	"RealmNotAllowed",
}

// String returns a CamelCase word, fit for a condition's reason.
func (k Kind) String() string { return kindNames[k] }

// Error says why there is no ticket. It never contains a secret.
type Error struct {
	Kind    Kind
	Message string
}

func (e *Error) Error() string { return e.Message }

// passing reports whether a failure is about the KDC, not about the credential.
func (k Kind) passing() bool { return k == KDCUnreachable || k == Unknown }

// rules are the messages of MIT krb5 1.21, in order.
var rules = []struct {
	kind  Kind
	words []string
}{
	{
		KDCUnreachable,
		[]string{
			"Cannot contact any KDC",
			"Cannot find KDC",
			"Cannot resolve",
			"Connection refused",
			"Connection timed out",
		},
	},
	{UnknownPrincipal, []string{"not found in Kerberos database"}},
	{Expired, []string{"credentials have been revoked", "has expired", "locked", "Password expired"}},
	{
		BadPassword,
		[]string{
			"Password incorrect",
			"Preauthentication failed",
			"Decrypt integrity check failed",
			"no suitable keys",
			"Cryptosystem internal error",
		},
	},
	{
		Invalid,
		[]string{
			"Malformed representation of principal",
			"Configuration file does not specify default realm",
			"Unsupported key table format",
			"Bad format in keytab",
		},
	},
}

// explain returns the error for a failed kinit.
func explain(f *tool.Failure, c Credential) *Error {
	words := f.Words
	if c.Password != "" { // kinit does not print it; this makes sure
		words = strings.ReplaceAll(words, c.Password, "***")
	}
	switch f.Cause {
	case tool.TimedOut:
		return &Error{KDCUnreachable, "kinit: " + words + "; is a KDC silent?"}
	case tool.Exited:
		for _, r := range rules {
			for _, w := range r.words {
				if strings.Contains(f.Words, w) {
					return &Error{r.kind, words}
				}
			}
		}
	}
	return &Error{Unknown, "kinit: " + words}
}
