package command

import (
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"htc.cern.ch/htcd/internal/cli/operator"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/daemon"
)

// backup copies the ledger.
func (s settings) backup() *cobra.Command {
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
	setting.Int(c.Flags(), &keep, "keep", 0, 0, 100_000,
		"how many copies stay in the DIRECTORY, this one included; 0: all")
	return s.with(&o, c, []string{"data", "ledger"}, func(args []string) error {
		if len(args) != 1 || args[0] == "" {
			return setting.Usage{Err: errors.New("name one file, or the directory for it")}
		}
		to, err := filepath.Abs(args[0])
		if err != nil {
			return setting.Usage{Err: err}
		}
		return operator.Backup(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), o.LedgerFile(), to, keep)
	})
}
