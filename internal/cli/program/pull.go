package program

import (
	"bufio"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/inputs/jobcredentials"
	"htc.cern.ch/htcd/internal/notify"
)

// pullCommand is run by jobs that run, if --ship-sender sent htcd with them.
func pullCommand() *cobra.Command {
	var url, authorities string
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "pull --url URL",
		Short: "Ask the operator for a job's credentials (run by the job itself)",
		Long: `Ask the operator once for a job's credentials, with the token on standard input, and print the answer. Jobs run this
themselves while their scripts run.

Exit codes:
  0  the answer was printed
  1  there was none (the reason is on standard error)
  2  an argument is wrong; nothing was sent`,
		Args: setting.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := trustWithoutStore(); err != nil {
				return fmt.Errorf("pull: %w", err)
			}
			var roots *x509.CertPool
			if authorities != "" {
				var err error
				if roots, err = notify.Roots(authorities); err != nil {
					return setting.Usage{Err: fmt.Errorf("pull: --ca-file: %w", err)}
				}
			}
			token, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
			if err != nil {
				return setting.Usage{Err: errors.New("pull: there is no token on standard input")}
			}
			if err := jobcredentials.Pull(
				cmd.Context(),
				url,
				strings.TrimSpace(token),
				roots,
				timeout,
				cmd.OutOrStdout(),
			); err != nil {
				return fmt.Errorf("pull: %w", err)
			}
			return nil
		},
	}
	f := c.Flags()
	setting.Text(f, &url, "url", "", setting.URL(""), "`URL` of the run's credentials (required)")
	setting.Text(
		f,
		&authorities,
		"ca-file",
		"",
		setting.Path,
		"PEM `FILE` of the only authorities to trust; empty: the system's",
	)
	setting.Duration(f, &timeout, "timeout", 20*time.Second, time.Second, time.Hour, "give up after this `TIME`")
	return c
}
