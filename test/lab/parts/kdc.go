package parts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// The realm of a lab and the domain of its HTCondor users.
const (
	Realm  = "LAB.HTCD"
	Domain = "lab.htcd"
)

// Passwords by principal. That of robot, htcd's account, contains everything that shells, env files and JSON stumble
// over.
var Passwords = map[string]string{
	"robot":  `p w:$x#1"'\`,
	"alice":  "alicepw",
	"condor": "condorpw",
}

// person is an account of the root that has a ticket.
type person struct{ account, principal string }

// people: admin shows HTCondor a ticket of condor, the daemons' principal, because the schedd treats anybody else who
// has never submitted as anonymous, superuser or not.
var people = []person{{"robot", "robot"}, {"alice", "alice"}, {"admin", "condor"}}

// KDC is the key distribution centre of the lab's own realm. Clients use krb5.conf beside its database.
func KDC(ctx context.Context, w World) (*Process, error) {
	dir := w.Lab.Path("krb")
	if err := os.MkdirAll(filepath.Join(dir, "db"), 0o755); err != nil {
		return nil, err
	}
	for name, text := range map[string]string{
		"krb5.conf": fmt.Sprintf(`[libdefaults]
    default_realm = %[1]s
    dns_lookup_kdc = false
    dns_lookup_realm = false
    dns_canonicalize_hostname = false
    rdns = false
    ticket_lifetime = 24h
    renew_lifetime = 7d
[realms]
    %[1]s = {
        kdc = %[4]s:%[3]d
    }
[domain_realm]
    .%[2]s = %[1]s
    %[2]s = %[1]s
    localhost = %[1]s
`, Realm, Domain, w.Ports.KDC, w.Address),
		"kdc.conf": fmt.Sprintf(`[kdcdefaults]
    kdc_listen = %[4]s:%[2]d
    kdc_tcp_listen = %[4]s:%[2]d
[realms]
    %[1]s = {
        database_name = %[3]s/db/principal
        key_stash_file = %[3]s/db/stash
        acl_file = %[3]s/db/kadm5.acl
        max_life = 365d
        max_renewable_life = 365d
        supported_enctypes = aes256-cts:normal aes128-cts:normal
    }
[logging]
    kdc = STDERR
`, Realm, w.Ports.KDC, dir, w.Address),
		"kerberos.map": Realm + " = " + Domain + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	env := []string{"KRB5_CONFIG=" + dir + "/krb5.conf", "KRB5_KDC_PROFILE=" + dir + "/kdc.conf"}
	if _, err := command(ctx, env, "", "kdb5_util", "create", "-s", "-r", Realm, "-P", "master"); err != nil {
		return nil, err
	}

	host := "host/" + w.Host()
	script := fmt.Sprintf("addprinc -randkey %s\nktadd -k %s/schedd.keytab %s\n", host, dir, host)
	// A principal's maximum is the smallest of its own, krbtgt's and the realm's; the latter two default to a day.
	script += fmt.Sprintf("modprinc -maxlife 365d -maxrenewlife 365d krbtgt/%s\n", Realm)
	script += fmt.Sprintf("modprinc -maxlife 365d %s\n", host)
	for _, p := range people {
		script += fmt.Sprintf(
			"addprinc -maxlife 365d -maxrenewlife 365d -pw %s %s\n",
			kadminQuote(Passwords[p.principal]),
			p.principal,
		)
		script += fmt.Sprintf("ktadd -norandkey -k %s/%s.keytab %s\n", dir, p.account, p.principal)
	}
	if out, err := command(ctx, env, script, "kadmin.local", "-r", Realm); err != nil {
		return nil, fmt.Errorf("make the realm: %w: %s", err, out)
	}
	return &Process{
		Name: "kdc", Log: w.Lab.Log("kdc"), Port: w.Ports.KDC,
		Args: []string{"/usr/sbin/krb5kdc", "-n", "-r", Realm}, Env: env,
		Ready: tcpReady(w.Address, w.Ports.KDC),
	}, nil
}

// kadminQuote quotes for kadmin's own parser, in which a doubled quote stands for one and nothing else is special.
func kadminQuote(s string) string {
	out := []byte{'"'}
	for _, c := range []byte(s) {
		if c == '"' {
			out = append(out, '"')
		}
		out = append(out, c)
	}
	return string(append(out, '"'))
}

// Tickets gives each person a ticket in their own file, valid for as long as any lab: the lab's commands must work
// while the KDC is down.
func Tickets(ctx context.Context, w World) error {
	for _, p := range people {
		uid, gid, err := Account(p.account)
		if err != nil {
			return err
		}
		cache := TicketFile(w, p.account)
		keytab := w.Lab.Path("krb", p.account+".keytab")
		env := []string{"KRB5_CONFIG=" + w.Lab.Path("krb", "krb5.conf")}
		kinit := []string{"kinit", "-k", "-t", keytab, "-l", "365d", "-c", "FILE:" + cache, p.principal}
		if _, err := command(ctx, env, "", kinit...); err != nil {
			return err
		}
		if err := errors.Join(os.Chown(cache, int(uid), int(gid)), os.Chown(keytab, int(uid), int(gid))); err != nil {
			return err
		}
	}
	return nil
}

// TicketFile returns an account's credential cache.
func TicketFile(w World, account string) string { return w.Lab.Path("krb", account+".cc") }
