package program

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/output"
)

// sendCommand is run by a job when it has ended, if --ship-sender sent htcd with it.
func sendCommand() *cobra.Command {
	var o notify.SendOptions
	node, stderr, results := notify.Node{Number: -1, Exit: -1}, "", ""
	c := &cobra.Command{
		Use:   "send --name NAME --namespace NAMESPACE --jobid CLUSTER.PROC --retcode CODE --url URL --token-file FILE",
		Short: "Tell the operator that a job ended (run by the job itself)",
		Long: `Tell the operator that a job ended. Jobs run this themselves, after their script.

The event is posted again, with growing pauses, while the operator is unreachable or asks to wait, until the deadline.

Exit codes:
  0  the operator has recorded it
  1  it could not be delivered in time, or was refused (the reason is on standard error)
  2  an argument is wrong or the token file cannot be used; nothing was sent`,
		Args: setting.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := trustWithoutStore(); err != nil {
				return fmt.Errorf("send: %w", err)
			}
			if o.Callback.Node = &node; node.Number < 0 {
				o.Callback.Node = nil
			}
			if node.Exit < 0 {
				node.Exit = o.Callback.Retcode
			}
			o.Callback.Stderr, node.Results = endOf(stderr), beginningOf(results)
			err := notify.Send(cmd.Context(), o)
			if errors.Is(err, notify.ErrInvalid) {
				return setting.Usage{Err: fmt.Errorf("send: %w", err)}
			}
			if err != nil {
				return fmt.Errorf("send: %w", err)
			}
			return nil
		},
	}
	f := c.Flags()
	setting.Text(f, &o.Callback.Name, "name", "", setting.Object, "`NAME` of the HTCJob (required)")
	setting.Text(f, &o.Callback.Namespace, "namespace", "", setting.Namespace, "`NAMESPACE` of the HTCJob (required)")
	setting.Text(f, &o.Callback.JobID, "jobid", "", jobID, "the job's `CLUSTER.PROC` (required)")
	setting.Int(f, &o.Callback.Retcode, "retcode", -1, 0, 255, "the script's return `CODE`, 0 to 255 (required)")
	setting.Bool(f, &o.Callback.Started, "started", false, "the job has started: --retcode says nothing")
	setting.Bool(
		f,
		&o.Callback.Held,
		"held",
		false,
		"the script has ended, and HTCondor is about to hold the job: --retcode says nothing",
	)
	setting.Int(
		f,
		&node.Number,
		"node",
		-1,
		-1,
		maxNodes,
		"`NUMBER` of the job in its workflow's DAG; --name is the workflow's then",
	)
	setting.Int(
		f,
		&node.Exit,
		"exit",
		-1,
		-1,
		255,
		"with --node, the `CODE` that the job ends with; the same as --retcode unless given",
	)
	setting.Text(f, &stderr, "stderr-file", "", setting.Path, "`FILE` whose end is sent along")
	setting.Text(
		f,
		&results,
		"results-file",
		"",
		setting.Path,
		"with --node, `FILE` of lines name=number that is sent along",
	)
	setting.Text(
		f,
		&o.URL,
		"url",
		"",
		setting.URL(""),
		"`URL` of the operator's receiver, such as http://host:port/cloudevents (required)",
	)
	setting.Text(f, &o.TokenFile, "token-file", "", setting.Path, "`FILE` that holds the run's token (required)")
	setting.Text(
		f,
		&o.CAFile,
		"ca-file",
		"",
		setting.Path,
		"PEM `FILE` of the only authorities to trust; empty: the system's",
	)
	setting.Duration(f, &o.Deadline, "deadline", time.Minute, time.Second, 24*time.Hour, "give up after this `TIME`")
	return c
}

// endOf returns what is sent of a job's standard error. The event matters more: if it cannot be read, nothing is.
func endOf(file string) string {
	f, err := os.Open(file) // #nosec G304 -- the file that the caller of htcd send names
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := output.Tail(f, 0, notify.MaxStderr)
	if err != nil {
		return ""
	}
	return text
}

// beginningOf returns what is sent of a job's results.
func beginningOf(file string) string {
	f, err := os.Open(file) // #nosec G304 -- as above
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, notify.MaxResults+1))
	if err != nil {
		return ""
	}
	return string(text)
}
