package program

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"htc.cern.ch/htcd/internal/cli/logger"
	"htc.cern.ch/htcd/internal/cli/plugin"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/kube/argoplugin"
)

// argoPluginCommand is a sidecar in the pod of Argo's agent; see deploy/components/argo-plugin.
func argoPluginCommand() *cobra.Command {
	var at plugin.Connection
	var workflow, listen, tokenFile, level, format string
	c := &cobra.Command{
		Use:   "argo-plugin --workflow NAME",
		Short: "Run steps of an Argo workflow as HTCJobs (run by Argo, beside its agent)",
		Long: `Run the steps of one Argo workflow that have "plugin: {htcjob: ...}" as HTCJobs, as an executor plugin of Argo Workflows 3.6 or later.
Argo starts it in the pod of the workflow's agent, as deploy/components/argo-plugin says; it uses that pod's account.

It ends with the workflow. Stopped before (SIGTERM), it goes on for 20 s, and deletes the HTCJobs of steps that Argo has ended.

Exit codes:
  0  the workflow has ended, or it was stopped
  1  it could not begin
  2  a mistake in the command line`,
		Args: setting.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if workflow == "" {
				return setting.Usage{Err: errors.New("argo-plugin: want --workflow")}
			}
			log, err := logger.New(cmd.ErrOrStderr(), level, format)
			if err != nil {
				return setting.Usage{Err: fmt.Errorf("argo-plugin: %w", err)}
			}
			token, err := os.ReadFile(tokenFile) // #nosec G304 -- whoever starts it names the file
			if err != nil {
				return fmt.Errorf("argo-plugin: %w", err)
			}
			config, namespace, err := at.Config()
			if err != nil {
				return fmt.Errorf("argo-plugin: %w", err)
			}
			log = log.With().Str("component", "argoplugin").Str("workflow", namespace+"/"+workflow).Logger()
			agent, err := argoplugin.New(config, namespace, workflow, log)
			if err != nil {
				return fmt.Errorf("argo-plugin: %w", err)
			}
			listener, err := net.Listen("tcp", listen)
			if err != nil {
				return fmt.Errorf("argo-plugin: %w", err)
			}
			server := &http.Server{
				Handler:     argoplugin.Handler(strings.TrimSpace(string(token))),
				ReadTimeout: 30 * time.Second,
			}
			defer server.Close()
			go func() {
				if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
					log.Error().Err(err).Msg("Argo's agent is not answered")
				}
			}()
			return agent.Run(cmd.Context())
		},
	}
	f := c.Flags()
	at.Flags(f)
	setting.Text(f, &workflow, "workflow", "", setting.Object, "`NAME` of the workflow (required)")
	setting.Text(f, &listen, "listen", "127.0.0.1:7624", setting.Address, "`ADDRESS` at which Argo's agent asks")
	setting.Text(
		f,
		&tokenFile,
		"token-file",
		"/var/run/argo/token",
		setting.Path,
		"`FILE` with the token that the agent shows",
	)
	logger.Flags(f, &level, &format, "json")
	return c
}
