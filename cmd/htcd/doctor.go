package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"htc.cern.ch/htcd/internal/cli/doctor"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/credential"
	"htc.cern.ch/htcd/internal/target/pool"
)

// doctorCommand checks everything that htcd run depends on.
func doctorCommand(environ []string) *cobra.Command {
	var o Options
	var format string
	var workflows bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check everything that htcd needs, and explain what to do",
		Long: `Check, one after the other, what htcd run needs: Kubernetes and the rights in it, the CRD, the volume, HTCondor's
tools, the account and its ticket or token, the schedd, the route for callbacks, and the route to users' output. A check with a problem
says what to do; checks that depend on it are skipped. Whether HTCWorkflows can run is found out by a job, which runs on the schedd's host for some
seconds and is removed; --workflows=false sends none.

It takes the flags and HTCD_ variables of htcd run. In htcd's pod: kubectl -n htcd exec deploy/htcd -- htcd doctor.
It may run beside a working htcd: it takes no Lease and deletes the files it writes.

Exit codes:
  0  no problem
  1  at least one
  2  a mistake in the command line or the environment; nothing was tried`,
		Args: setting.NoArguments,
	}
	settings := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	o.flags(settings)
	c.Flags().AddFlagSet(settings)
	setting.Text(c.Flags(), &format, "output,o", "table", tableJSON, "table or json")
	setting.Bool(c.Flags(), &workflows, "workflows", true, "try, by a job, whether the schedd can run HTCWorkflows")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		wrong := func(err error) error { return setting.Usage{Err: fmt.Errorf("doctor: %w", err)} }
		if err := o.complete(settings, environ); err != nil {
			return wrong(err)
		}
		if err := o.check(); err != nil {
			return wrong(err)
		}
		well, err := examine(cmd.Context(), o, workflows, cmd.OutOrStdout(), format)
		if err == nil && !well {
			err = errors.New("there are problems")
		}
		if err != nil {
			return fmt.Errorf("doctor: %w", err)
		}
		return nil
	}
	return c
}

// checkTime is how long one check may take: a schedd that is away costs HTCondor's tools 20 s.
const checkTime = 45 * time.Second

// examine prints what each check finds; in a table, as soon as it does.
func examine(ctx context.Context, o Options, workflows bool, w io.Writer, format string) (well bool, err error) {
	proofs := o.proofs()
	defer func() { err = errors.Join(err, proofs.Close()) }()
	patient := o.patient(proofs)
	patient.Workflows = workflows
	checks := doctor.Checks(patient)
	findings := []doctor.Finding{}
	well = doctor.Run(ctx, checks, checkTime, func(f doctor.Finding) {
		findings = append(findings, f)
		if format == "table" {
			_, printed := io.WriteString(w, row(f))
			err = errors.Join(err, printed)
		}
	})
	if format == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		err = errors.Join(err, e.Encode(map[string]any{"ok": well, "findings": findings}))
	}
	return well, err
}

// row is a finding for people: one line, and what to do below it.
func row(f doctor.Finding) string {
	line := fmt.Sprintf("%-8s %-14s %s\n", f.Verdict, f.Check, strings.ReplaceAll(f.Message, "\n", " "))
	if f.Do != "" {
		line += fmt.Sprintf("%-23s do: %s\n", "", f.Do)
	}
	return line
}

// patient describes the installation that these options configure.
func (o Options) patient(proofs *credential.Keeper) doctor.Patient {
	p := doctor.Patient{
		Volume: doctor.Volume{
			Data: o.Data, Ledger: o.ledgerFile(), Further: []string{o.stagingDir(), o.store().Root}, KeepFree: o.KeepFree.Value(),
		},
		Condor: schedd.New(o.condor()),
		BinDir: o.CondorBinDir, Proofs: proofs, Pools: pool.Rules{AllowOptions: o.AllowHTCOpts, PoolSecrets: o.accounts().Named()}, CallbackURL: o.CallbackURL, Now: time.Now,
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
		Watched: o.Namespace, Own: d.o.OwnSpace, Lease: o.LeaseName, Elect: o.LeaderElect, Output: o.OutputListen != "",
		Secret: o.KinitSecret, CredentialDir: o.CredentialDir, SecretNamespace: d.o.KinitSecretNamespace, NamespaceSecrets: o.accounts().Named(),
		LogsPods: o.LogsPodImage != "", Kueue: o.Kueue, StandsBy: o.PodName != "",
	}
	return p
}
