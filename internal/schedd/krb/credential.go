package krb

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Credential is the content of a Secret: a user name and a password or a keytab. If it has both, the keytab is used.
type Credential struct {
	Username string // a principal; without @REALM the default realm of krb5.conf
	Password string // trailing line ends are not part of it
	Keytab   []byte
}

// normalize returns the credential in the form used; its errors are of kind Invalid.
func (c Credential) normalize() (Credential, error) {
	c.Username = strings.TrimSpace(c.Username)
	// kubectl create secret --from-file keeps the line end that an editor added.
	c.Password = strings.TrimRight(c.Password, "\r\n")
	bad := func(m string) (Credential, error) { return c, &Error{Kind: Invalid, Message: m} }
	switch {
	case c.Username == "":
		return bad("there is no username")
	case strings.HasPrefix(c.Username, "-"):
		return bad("the username begins with a -, which no principal does")
	case strings.ContainsFunc(c.Username, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return bad("the username holds a blank or a control character")
	case strings.Contains(c.Username, `\`):
		return bad("the username holds a backslash, which no account here needs")
	case strings.Count(c.Username, "@") > 1 || strings.HasSuffix(c.Username, "@"):
		return bad("the username is neither a name nor name@REALM")
	case c.Password == "" && len(c.Keytab) == 0:
		return bad("there is neither a password nor a keytab")
	case strings.ContainsAny(c.Password, "\n\r\x00"):
		return bad("the password has more than one line, or a NUL")
	case len(c.Keytab) > 0 && (len(c.Keytab) < 2 || c.Keytab[0] != 5):
		return bad("the keytab is no keytab file; was it encoded twice?")
	}
	return c, nil
}

// id names the credential without revealing anything about it: key is random.
func (c Credential) id(key []byte) string {
	h := hmac.New(sha256.New, key)
	for _, s := range []string{c.Username, c.Password, string(c.Keytab)} {
		sum := sha256.Sum256([]byte(s))
		h.Write(sum[:])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
