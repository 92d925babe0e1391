package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/ledger"
)

// backupCommand copies the ledger.
func backupCommand(environ []string) *cobra.Command {
	var o Options
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
	o.flags(settings)
	c.Flags().AddFlag(settings.Lookup("data"))
	c.Flags().AddFlag(settings.Lookup("ledger"))
	setting.Int(c.Flags(), &keep, "keep", 0, 0, 100_000, "how many copies stay in the DIRECTORY, this one included; 0: all")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		wrong := func(err error) error { return setting.Usage{Err: fmt.Errorf("backup: %w", err)} }
		switch err := o.complete(settings, environ); {
		case err != nil:
			return wrong(err)
		case len(args) != 1 || args[0] == "":
			return wrong(errors.New("name one file, or the directory for it"))
		}
		to, err := filepath.Abs(args[0])
		if err != nil {
			return wrong(err)
		}
		if err := backup(cmd.Context(), cmd.OutOrStdout(), o.ledgerFile(), to, keep); err != nil {
			return fmt.Errorf("backup: %w", err)
		}
		return nil
	}
	return c
}

const (
	backupName = "htcjobs-20060102T150405Z.db"
	backups    = "htcjobs-*T*Z.db"
)

func backup(ctx context.Context, out io.Writer, from, to string, keep int) error {
	dir := ""
	if at, err := os.Stat(to); err == nil && at.IsDir() {
		dir, to = to, filepath.Join(to, time.Now().UTC().Format(backupName))
	} else if keep > 0 {
		return setting.Usage{Err: fmt.Errorf("--keep: %s is not a directory", to)}
	}
	if err := ledger.Backup(ctx, from, to); err != nil {
		return err
	}
	is, err := os.Stat(to)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s (%d bytes)\n", to, is.Size())
	if keep == 0 {
		return nil
	}
	return prune(dir, keep)
}

// prune removes all but the latest copies of a directory, and parts of copies that were begun a day ago or earlier.
func prune(dir string, keep int) error {
	entries, err := os.ReadDir(dir) // sorted by name, and so by time
	if err != nil {
		return err
	}
	var copies, gone []string
	for _, e := range entries {
		if ok, _ := filepath.Match(backups, e.Name()); ok {
			copies = append(copies, e.Name())
		}
		if ok, _ := filepath.Match(backups+".*"+ledger.PartSuffix, e.Name()); !ok {
			continue
		}
		if is, err := e.Info(); err == nil && time.Since(is.ModTime()) > 24*time.Hour {
			gone = append(gone, e.Name())
		}
	}
	var errs []error
	for _, name := range append(gone, copies[:max(0, len(copies)-keep)]...) {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
