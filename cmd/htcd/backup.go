package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"htc.cern.ch/htcd/internal/cli/operator"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/daemon"
)

// backupCommand copies the ledger.
func backupCommand(environ []string) *cobra.Command {
	var o daemon.Options
	var keep int
	c := &cobra.Command{
		Use:   "backup FILE|DIRECTORY [--keep N]",
		Short: "Copy the ledger while htcd works",
		Long: `Copy the ledger to a file, check the copy, and print its name. htcd may work meanwhile: its commits wait while the file is read.
A FILE that exists is replaced once the copy is complete. In a DIRECTORY, which must exist, the copy is called htcjobs-TIME.db, of the
time in UTC; with --keep N, the N latest of them stay.

In htcd's pod: kubectl -n htcd exec deploy/htcd -- htcd backup /data/htcjobs.bak. htcd restore puts a copy back.

Exit codes:
  0  the copy is on disk
  1  the ledger could not be read, or is damaged, or the copy not be written; earlier copies are untouched
  2  a mistake in the command line or the environment`,
	}
	settings := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	flags(&o, settings)
	c.Flags().AddFlag(settings.Lookup("data"))
	c.Flags().AddFlag(settings.Lookup("ledger"))
	setting.Int(
		c.Flags(),
		&keep,
		"keep",
		0,
		0,
		100_000,
		"how many copies stay in the DIRECTORY, this one included; 0: all",
	)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		wrong := func(err error) error { return setting.Usage{Err: fmt.Errorf("backup: %w", err)} }
		switch err := complete(settings, environ); {
		case err != nil:
			return wrong(err)
		case len(args) != 1 || args[0] == "":
			return wrong(errors.New("name one file, or the directory for it"))
		}
		to, err := filepath.Abs(args[0])
		if err != nil {
			return wrong(err)
		}
		if err := operator.Backup(cmd.Context(), cmd.OutOrStdout(), o.LedgerFile(), to, keep); err != nil {
			return fmt.Errorf("backup: %w", err)
		}
		return nil
	}
	return c
}
