package doctor

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/krb"
	"htc.cern.ch/htcd/internal/schedd/token"
	"htc.cern.ch/htcd/internal/target/credential"
)

// tools looks for all programs that htcd starts, and asks for HTCondor's version.
func tools(htcondor *schedd.Client, binDir string) Check {
	return Check{Name: "tools", Try: func(ctx context.Context) (string, error) {
		const do = "use htcd's image (make image), or install condor and krb5-user, and set --condor-bin-dir where they are not on PATH"
		var missing []string
		for _, name := range append([]string{"kinit"}, schedd.Tools...) {
			path := name
			if binDir != "" {
				path = filepath.Join(binDir, name)
			}
			if _, err := exec.LookPath(path); err != nil {
				missing = append(missing, name)
			}
		}
		if len(missing) > 0 {
			return "", &Trouble{"not found: " + strings.Join(missing, ", "), do}
		}
		version, err := htcondor.Version(ctx)
		if err != nil {
			return "", &Trouble{err.Error(), "fix --condor-config: the tools do not start with it"}
		}
		if !tested(version) {
			return "", &Trouble{"HTCondor " + version + " is older than htcd supports, " + oldest, do}
		}
		return fmt.Sprintf("HTCondor %s, kinit", version), nil
	}}
}

// oldest has condor_q -json, condor_transfer_data and memory retries as htcd uses them.
const oldest = "9.2"

func tested(version string) bool {
	var major, minor, wantMajor, wantMinor int
	_, err := fmt.Sscanf(version, "%d.%d", &major, &minor)
	_, _ = fmt.Sscanf(oldest, "%d.%d", &wantMajor, &wantMinor)
	return err == nil && (major > wantMajor || major == wantMajor && minor >= wantMinor)
}

// ticket gets one for the account, or examines its token; both are discarded when the doctor ends.
func ticket(keeper *credential.Keeper, cred *credential.Credential, id *schedd.Identity, now func() time.Time) Check {
	return Check{Name: "ticket", Needs: []string{"secret"}, Try: func(ctx context.Context) (string, error) {
		proof, err := keeper.Proof(ctx, *cred)
		if err != nil {
			return "", ticketTrouble(err)
		}
		*id = proof.Identity
		left := proof.Expires.Sub(now()).Round(time.Minute)
		switch {
		case proof.Expires.IsZero():
			return proof.By + ", which has no end", nil
		case left >= 30*time.Minute, id.SciToken != "" && left >= 5*time.Minute: // SciTokens are short-lived
			return fmt.Sprintf("%s, good for %s", proof.By, left), nil
		case cred.IsToken():
			return "", &Trouble{fmt.Sprintf("the %s ends in %s", proof.By, left), askAnew}
		}
		return "", &Trouble{
			fmt.Sprintf("a new ticket ends in %s: long submissions outlive it", left),
			"let the KDC give tickets of some hours, or set ticket_lifetime in krb5.conf",
		}
	}}
}

const askAnew = "put a new token into the Secret (condor_token_create, by an administrator of the pool; or a new one of the SciToken's issuer); htcd sees the change by itself"

func ticketTrouble(err error) error {
	do := map[string]string{
		krb.Invalid.String():          "correct the Secret: it must have " + credential.Keys,
		krb.BadPassword.String():      "put the present password into the Secret; htcd notices the change by itself",
		krb.UnknownPrincipal.String(): "correct username in the Secret, or default_realm in krb5.conf",
		krb.Expired.String():          "have the account unlocked, or its password renewed",
		krb.RealmNotAllowed.String():  "add the realm to --realms, or to [realms] of krb5.conf, if htcd may ask its KDCs; else correct username in the Secret",
		krb.KDCUnreachable.String():   "check krb5.conf (--krb5-config) and the network: port 88, TCP and UDP",
		token.Expired.String():        askAnew,
	}
	if e, ok := errors.AsType[*credential.Error](err); ok && do[e.Reason] != "" {
		return &Trouble{e.Message, do[e.Reason]}
	}
	return &Trouble{err.Error(), "make sure that --ticket-dir can be written and krb5.conf can be read"}
}

// reachable asks the schedd for jobs that do not exist.
func reachable(htcondor *schedd.Client, id *schedd.Identity) Check {
	return Check{Name: "schedd", Needs: []string{"tools", "ticket"}, Try: func(ctx context.Context) (string, error) {
		name, err := htcondor.ScheddName(ctx, *id)
		if err != nil {
			return "", &Trouble{
				"the schedd to use cannot be determined: " + err.Error(),
				"set --schedd, or correct --schedd-command or --condor-config",
			}
		}
		if _, err := htcondor.Ping(ctx, *id, schedd.Reading); err != nil {
			return "", scheddTrouble("", err)
		}
		if err := htcondor.Query(
			ctx,
			*id,
			schedd.Query{Where: condor.None},
			func(condor.Job) error { return nil },
		); err != nil {
			return "", scheddTrouble("schedd "+name+": ", err)
		}
		return "condor_q is answered by " + name, nil
	}}
}

// writes asks whether a submission would be accepted, and as which user.
func writes(htcondor *schedd.Client, id *schedd.Identity) Check {
	return Check{Name: "authorisation", Needs: []string{"schedd"}, Try: func(ctx context.Context) (string, error) {
		account, err := htcondor.Ping(ctx, *id, schedd.Writing)
		if err != nil {
			if condor.KindOf(err) == condor.Unknown {
				return "", &Trouble{err.Error(), notLetIn}
			}
			return "", scheddTrouble("", err)
		}
		if account == "unauthenticated" || account == "unmapped" {
			return "", &Trouble{"the schedd does not know this account (" + account + ")", notLetIn}
		}
		return "the schedd accepts submissions of " + account, nil
	}}
}

const notLetIn = "have the schedd's administrator let the account write (ALLOW_WRITE, and the map file)"

func scheddTrouble(about string, err error) error {
	do := "make sure that the schedd is up, that its name is right, and that port 9618 is reachable (--schedd, --collector, condor_config)"
	switch condor.KindOf(err) {
	case condor.NotAuthorised:
		do = notLetIn
	case condor.Credentials:
		do = "check SEC_CLIENT_AUTHENTICATION_METHODS in condor_config, that the pool accepts tickets of this realm, or tokens of this issuer and key, and the clock of the schedd's host: Kerberos allows it to be 5 minutes off"
	}
	return &Trouble{about + err.Error(), do}
}
