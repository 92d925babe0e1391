package daemon

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"htc.cern.ch/htcd/internal/cli/doctor"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/credential"
	"htc.cern.ch/htcd/internal/target/pool"
)

// Examine prints what each check of htcd doctor finds in the installation that these options configure, and reports
// whether there was no problem.
func Examine(ctx context.Context, o Options, workflows bool, w io.Writer, format string) (well bool, err error) {
	proofs := o.proofs()
	defer func() { err = errors.Join(err, proofs.Close()) }()
	patient := o.patient(proofs)
	patient.Workflows = workflows
	if patient.Feeds, err = o.feedClients(); err != nil {
		return false, err
	}
	return doctor.Print(ctx, patient, w, format)
}

// written are the directories in which htcd writes, beside the ledger's.
func (o Options) written() []string {
	return []string{
		o.stagingDir(), o.store().Root, o.nodeStore().Root, o.uploadDir(), o.followDir(), o.shellDir(),
		filepath.Dir(o.ownFile()),
	}
}

// patient describes the installation that these options configure.
func (o Options) patient(proofs *credential.Keeper) doctor.Patient {
	p := doctor.Patient{
		Volume: doctor.Volume{
			Data:     o.Data,
			Ledger:   o.LedgerFile(),
			Further:  o.written(),
			KeepFree: o.KeepFree.Value(),
		},
		Condor: schedd.New(o.condor()),
		BinDir: o.CondorBinDir,
		Proofs: proofs,
		Pools: pool.Rules{
			AllowOptions: o.AllowHTCOpts,
			Attributes:   o.Attributes,
			PoolSecrets:  o.accounts().Named(),
		},
		Health:      o.HealthListen,
		CallbackURL: o.CallbackURL,
		Now:         time.Now,
	}
	_, p.Roots, _ = o.callbackCA() // checked when the options were
	if o.ownAuthority() {
		p.Roots = o.alsoOwn()
	}
	d, err := newDaemon(o, zerolog.Nop())
	if err != nil {
		p.ConfigError = err
		return p
	}
	p.Config, p.Core = d.config, d.core
	p.Place = doctor.Place{
		Watched:          o.Namespace,
		Own:              d.o.OwnSpace,
		Lease:            o.LeaseName,
		Elect:            o.LeaderElect,
		Output:           o.OutputListen != "",
		Secret:           o.KinitSecret,
		CredentialDir:    o.CredentialDir,
		SecretNamespace:  d.o.KinitSecretNamespace,
		NamespaceSecrets: o.accounts().Named(),
		LogsPods:         o.LogsPodImage != "",
		Kueue:            o.Kueue,
		StandsBy:         o.PodName != "",
	}
	return p
}
