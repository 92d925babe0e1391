package krb

import (
	"fmt"
	"slices"
	"strings"
)

// refuse returns why no ticket is asked for with a credential: whoever writes a Secret chooses the realm, and kinit
// would look up the KDC of any realm in the DNS and talk to it.
func (k *Keeper) refuse(cred Credential) *Error {
	_, realm, named := strings.Cut(cred.Username, "@")
	allowed, from := k.o.Realms, "--realms"
	if !named || len(allowed) == 0 {
		p, err := readProfile(k.o.Krb5Config)
		switch {
		case err != nil:
			return &Error{Unknown, "krb5.conf, which names the realms that accounts may be of: " + err.Error()}
		case !named && p.defaultRealm == "":
			return &Error{
				Invalid,
				fmt.Sprintf(
					"the username %.100q has no realm, and krb5.conf no default_realm: write user@REALM",
					cred.Username,
				),
			}
		case !named:
			realm = p.defaultRealm
		}
		if len(allowed) == 0 {
			allowed, from = p.named(), "krb5.conf"
		}
	}
	if slices.Contains(allowed, realm) {
		return nil
	}
	return &Error{
		RealmNotAllowed,
		fmt.Sprintf(
			"the account %.100q is of the realm %.100q, and htcd asks only KDCs of the realms in %s: %s; an administrator can list others with --realms",
			cred.Username,
			realm,
			from,
			list(allowed),
		),
	}
}

// list names realms, as far as a message has room for them.
func list(realms []string) string {
	const most = 8
	switch {
	case len(realms) == 0:
		return "none"
	case len(realms) > most:
		return strings.Join(realms[:most], ", ") + fmt.Sprintf(" and %d more", len(realms)-most)
	}
	return strings.Join(realms, ", ")
}
