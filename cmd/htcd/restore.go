package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/ledger"
)

// restoreCommand puts a copy of the ledger back.
func restoreCommand(environ []string) *cobra.Command {
	var o Options
	c := &cobra.Command{
		Use:   "restore FILE|DIRECTORY",
		Short: "Put a copy of the ledger in its place, while htcd is stopped",
		Long: `Put a copy that htcd backup has made in the place of the ledger, or the latest one in a DIRECTORY. Stop htcd first. The copy is checked, and
stays. The ledger that was there is kept beside it, as htcjobs.db` + ledger.Replaced + `.

Exit codes:
  0  the copy is the ledger
  1  it could not be read, is damaged or no ledger, or could not be written; the ledger is as it was
  2  a mistake in the command line or the environment`,
	}
	settings := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	o.flags(settings)
	c.Flags().AddFlag(settings.Lookup("data"))
	c.Flags().AddFlag(settings.Lookup("ledger"))
	c.RunE = func(cmd *cobra.Command, args []string) error {
		switch err := o.complete(settings, environ); {
		case err != nil:
			return setting.Usage{Err: fmt.Errorf("restore: %w", err)}
		case len(args) != 1 || args[0] == "":
			return setting.Usage{Err: errors.New("restore: name one copy, or the directory of copies")}
		}
		from, err := latest(args[0])
		if err != nil {
			return fmt.Errorf("restore: %w", err)
		}
		if err := ledger.Restore(cmd.Context(), from, o.ledgerFile()); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s is now %s\n", from, o.ledgerFile())
		return nil
	}
	return c
}

// latest returns a file, or of a directory the latest copy in it.
func latest(path string) (string, error) {
	is, err := os.Stat(path)
	if err != nil || !is.IsDir() {
		return path, err
	}
	entries, err := os.ReadDir(path) // sorted by name, and so by time
	if err != nil {
		return "", err
	}
	found := ""
	for _, e := range entries {
		if ok, _ := filepath.Match(backups, e.Name()); ok {
			found = e.Name()
		}
	}
	if found == "" {
		return "", fmt.Errorf("%s has no copies called %s", path, backups)
	}
	return filepath.Join(path, found), nil
}
