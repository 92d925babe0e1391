package doctor

import (
	"context"
	"crypto/x509"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/feed"
	"htc.cern.ch/htcd/internal/target/credential"
	"htc.cern.ch/htcd/internal/target/pool"
)

// Patient is the installation under examination.
type Patient struct {
	// Config leads to Kubernetes; nil if ConfigError explains why it is unknown.
	Config      *rest.Config
	Core        kubernetes.Interface
	ConfigError error

	Place       Place
	Volume      Volume
	Condor      *schedd.Client
	BinDir      string
	Proofs      *credential.Keeper
	Pools       pool.Rules
	Workflows   bool // whether they are wanted
	Feeds       map[schedd.Endpoint]*feed.Client
	Health      string // where htcd says whether it is ready
	CallbackURL string
	Roots       *x509.CertPool // authorities of the receiver's certificate; nil: the system's
	Now         func() time.Time
}

// Checks are all checks, in the order in which a starting htcd would run into their problems.
func Checks(p Patient) []Check {
	var cred credential.Credential
	var id schedd.Identity
	config := Check{Name: "kubeconfig", Try: func(context.Context) (string, error) {
		if p.ConfigError != nil {
			return "", &Trouble{p.ConfigError.Error(), "give --kubeconfig, or run this in htcd's pod"}
		}
		return "account for " + p.Config.Host, nil
	}}
	all := []Check{config}
	if p.Config == nil { // checks that need it are skipped, by name
		for _, name := range []string{"kubernetes", "clock", "rights", "crd"} {
			all = append(all, Check{Name: name, Needs: []string{"kubeconfig"}})
		}
	} else {
		client := p.Core.Discovery().RESTClient()
		all = append(all, reached(client, p.Config.Host), clock(p.Config, p.Now), rights(p.Core, p.Place), crd(client))
	}
	all = append(all, volume(p.Volume), tools(p.Condor, p.BinDir))
	if p.Place.CredentialDir != "" {
		all = append(all, files(p.Place.CredentialDir, &cred))
	} else if p.Config == nil {
		all = append(all, Check{Name: "secret", Needs: []string{"kubeconfig"}})
	} else {
		all = append(all, secret(p.Core, p.Place, &cred))
	}
	all = append(
		all,
		ticket(p.Proofs, &cred, &id, p.Now),
		reachable(p.Condor, &id),
		writes(p.Condor, &id),
		workflows(p.Condor, &id, p.Workflows),
	)
	if p.Config == nil {
		all = append(all, Check{Name: "pools", Needs: []string{"kubeconfig"}})
	} else {
		all = append(all, pools(p.Core.Discovery().RESTClient(), p.Condor, p.Pools, &id))
	}
	for endpoint, client := range p.Feeds {
		all = append(all, feeds(endpoint, client, p.Condor, &id))
	}
	all = append(all, ready(p.Health), receiver(p.CallbackURL, p.Roots))
	if p.Config == nil {
		return append(all, Check{Name: "output", Needs: []string{"kubeconfig"}})
	}
	return append(all, output(p.Core.Discovery().RESTClient(), p.Place.Output))
}
