// Package jobcredentials has the credentials of jobs: it reads them, judges when they end, and serves them to jobs that
// run, so that each job has them as the Secrets are now. It knows neither HTCondor nor the ledger.
//
// # The question
//
// GET /credentials/UID/ATTEMPT?have=DIGEST with the header Authorization: Bearer TOKEN. The token is that of one run,
// derived from the hash of its callbacks' token (Token), so that nothing further is recorded; it is good while the run
// is active. Each step of a workflow's DAG has a token of its own, for GET /credentials/UID/ATTEMPT/STEP.
//
// # The answer
//
//	200  lines of text: "htcd1 SECONDS DIGEST", where SECONDS is when to ask again; "NAME BASE64" for each credential,
//	     none if DIGEST is what the job has; and "end"
//	401  no token
//	403  not the token of that run
//	404  no such run
//	410  the run is over
//	503  not now: too many questions at once, or the Secrets cannot be read
//
// The digest is keyed with the token: it stands in arguments and logs, and says nothing about what is in a Secret. A
// credential that cannot be read is left out; the job keeps the one it has.
//
// # Load
//
// An answer about a run is used again for 10 s, and Secrets are read at most every 15 s, however many jobs ask. Jobs
// ask every 30 s; as there are more of them, less often, so that 1,000 ask per second: 100,000 every 100 s.
package jobcredentials

import (
	"context"
	"encoding/pem"
	"fmt"
	"time"

	"htc.cern.ch/htcd/internal/inputs/expiry"
	"htc.cern.ch/htcd/internal/inputs/jobsecrets"
)

// Kind says what a credential is.
type Kind string

// The kinds.
const (
	X509Proxy   Kind = "X509Proxy"
	BearerToken Kind = "BearerToken"
	PlainFile   Kind = "File"
	Registry    Kind = "Registry" // with which the node fetches the image; no script has it
)

// Variable is the variable of a script's environment that has the path; empty: none.
func (k Kind) Variable() string {
	switch k {
	case X509Proxy:
		return "X509_USER_PROXY"
	case BearerToken:
		return "BEARER_TOKEN_FILE"
	}
	return ""
}

// Credential says where a credential is.
type Credential struct {
	Name, Secret, Key string
	Kind              Kind
	Registry          string // of the image, if that is its kind
}

// maxSize is the largest credential, in bytes.
const maxSize = 64 << 10

// Secrets are read by jobsecrets.Reader.
type Secrets interface {
	Read(ctx context.Context, namespace, name, key string, most int) ([]byte, error)
}

// The reasons for which a credential that was read cannot be used.
const (
	ReasonUnusable = "CredentialUnusable"
	ReasonEnded    = "CredentialEnded"
)

// Read returns the content of a credential. What its owner can change, such as one that has ended, is a
// *jobsecrets.Unusable.
func (c Credential) Read(ctx context.Context, secrets Secrets, namespace string, now time.Time) ([]byte, error) {
	content, err := secrets.Read(ctx, namespace, c.Secret, c.Key, maxSize)
	if err != nil {
		return nil, err
	}
	if block, _ := pem.Decode(content); c.Kind == X509Proxy && block == nil || len(content) == 0 {
		return nil, &jobsecrets.Unusable{
			Reason: ReasonUnusable,
			Message: fmt.Sprintf(
				"the credential %s: the key %s of the Secret %s holds no %s",
				c.Name,
				c.Key,
				c.Secret,
				c.Kind,
			),
		}
	}
	if c.Kind == Registry {
		one, found := login(content, c.Registry)
		if !found {
			return nil, &jobsecrets.Unusable{Reason: ReasonUnusable,
				Message: fmt.Sprintf(
					"the credential %s: the key %s of the Secret %s is no .dockerconfigjson, or has no login for the registry %s of script.image",
					c.Name,
					c.Key,
					c.Secret,
					c.Registry,
				)}
		}
		return one, nil
	}
	if end, known := c.end(content); known && !now.Before(end) {
		return nil, &jobsecrets.Unusable{Reason: ReasonEnded,
			Message: fmt.Sprintf(
				"the credential %s, of the Secret %s, ended at %s: renew it",
				c.Name,
				c.Secret,
				end.UTC().Format(time.RFC3339),
			)}
	}
	return content, nil
}

// end returns when a credential ends, if that can be read from it.
func (c Credential) end(content []byte) (time.Time, bool) {
	if c.Kind == PlainFile || c.Kind == Registry {
		return time.Time{}, false
	}
	return expiry.Of(content)
}
