package syncsecret

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"htc.cern.ch/htcd/internal/cli/logger"
	"htc.cern.ch/htcd/internal/cli/plugin"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/inputs/jobsecrets"
)

// Command runs where proxies and tokens are made.
func Command() *cobra.Command {
	var at plugin.Connection
	var name, level, format string
	var every time.Duration
	var forJobs bool
	c := &cobra.Command{
		Use:   "sync-secret --namespace NAMESPACE --name NAME FILE... [--every 30m]",
		Short: "Keep a Secret equal to files, such as proxies that somebody renews",
		Long: `Create or update a Secret from files, whenever one of them has changed. Run it where the files are made: on a machine with
a kubeconfig, or in a CronJob, whose service account it uses. It needs the right to get, create and update Secrets in that namespace.

Each FILE becomes the key of its name; KEY=FILE chooses another. All keys are written in one request, and other keys of the Secret
are left alone. A proxy or token is never replaced by one that ends earlier, nor by a file whose end cannot be read.
A Secret that does not exist is created with the label ` + jobsecrets.Label + `=true, so that HTCJobs of the namespace may name it.

Without --every it looks once. With it, it looks again at that interval, sooner after a failure, until it is interrupted.

Exit codes:
  0  the Secret agrees with the files, or has younger credentials; with --every: interrupted
  1  a file could not be read or the Secret not be written
  2  a mistake in the command line`,
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := Files(args)
			if err != nil {
				return setting.Usage{Err: fmt.Errorf("sync-secret: %w", err)}
			}
			if name == "" {
				return setting.Usage{Err: errors.New("sync-secret: want --name")}
			}
			log, err := logger.New(cmd.ErrOrStderr(), level, format)
			if err != nil {
				return setting.Usage{Err: fmt.Errorf("sync-secret: %w", err)}
			}
			config, where, err := at.Config()
			if err != nil {
				return fmt.Errorf("sync-secret: %w", err)
			}
			config.Timeout = time.Minute
			client, err := typedcorev1.NewForConfig(config)
			if err != nil {
				return fmt.Errorf("sync-secret: %w", err)
			}
			s := &Sync{Secrets: client.Secrets(where), Name: name, Files: files, Log: log, Now: time.Now}
			if forJobs {
				s.Labels = map[string]string{jobsecrets.Label: "true"}
			}
			if every == 0 {
				return s.Once(cmd.Context())
			}
			s.Every(cmd.Context(), every)
			return nil
		},
	}
	f := c.Flags()
	at.Flags(f)
	setting.Text(f, &name, "name", "", setting.Object, "`NAME` of the Secret (required)")
	setting.Duration(
		f,
		&every,
		"every",
		0,
		time.Second,
		30*24*time.Hour,
		"look at the files at this `INTERVAL`; 0: once",
	)
	setting.Bool(f, &forJobs, "for-jobs", true, "mark a Secret that is created for jobs")
	logger.Flags(f, &level, &format, "text")
	return c
}
