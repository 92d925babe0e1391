package command

import (
	"errors"

	"github.com/spf13/cobra"

	"htc.cern.ch/htcd/internal/cli/operator"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/daemon"
	"htc.cern.ch/htcd/internal/ledger"
)

// restore puts a copy of the ledger back.
func (s settings) restore() *cobra.Command {
	var o daemon.Options
	c := &cobra.Command{
		Use:   "restore FILE|DIRECTORY",
		Short: "Put a copy of the ledger in its place, while htcd is stopped",
		Long: `Put a copy that htcd backup has made in the place of the ledger, or the latest one in a DIRECTORY. Stop htcd first. The copy is checked, and
stays. Where a copy's name has a time to come, the clock was wrong, and which is the latest is not known: name one then. The ledger that was there is kept beside it, as htcjobs.db` + ledger.Replaced + `.

Exit codes:
  0  the copy is the ledger
  1  it could not be read, is damaged or no ledger, or could not be written; the ledger is as it was
  2  a mistake in the command line or the environment`,
	}
	return s.with(&o, c, []string{"data", "ledger"}, func(args []string) error {
		if len(args) != 1 || args[0] == "" {
			return setting.Usage{Err: errors.New("name one copy, or the directory of copies")}
		}
		return operator.Restore(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), args[0], o.LedgerFile())
	})
}
