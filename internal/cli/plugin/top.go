package plugin

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/schedd/usage"
)

func topCommand() *cobra.Command {
	var at Connection
	var format string
	var attempt int
	c := &cobra.Command{
		Use:   "top NAME",
		Short: "Show what the jobs of an HTCJob use of what they asked for",
		Long: `Show the cpu, the memory and the disk that the jobs of an HTCJob use or have used, against what they asked for: the median, the job that
used most, and what to ask for next time. cpu is how many cores a job kept busy on average. Jobs that have not started do not count. HTCondor measures every
few minutes and rounds up; a job of some seconds may not have been measured at all.

Needs the right to get htcjobs/log of output.htc.cern.ch, which the ClusterRole htcjob-user has. When all jobs have ended the same is in
status.usage.

Exit codes: 0 done, 1 it cannot be read or nothing has been sent yet, 2 a mistake in the command line, 130 interrupted.`,
		Args:              arguments(1, "the name of an HTCJob"),
		ValidArgsFunction: at.complete(kinds...),
	}
	at.Flags(c.Flags())
	setting.Int(c.Flags(), &attempt, "attempt", 0, 0, maxNumber, "an earlier attempt's `number`; 0: the newest")
	setting.Text(c.Flags(), &format, "output,o", "table", tableJSON, "`format`: table or json")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		ref, err := named(args[0], kinds...)
		if err != nil {
			return err
		}
		where, err := at.open(cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		if ref, err = where.resolve(cmd.Context(), ref); err != nil {
			return err
		}
		if ref.kind == workflowKind {
			return setting.Usage{
				Err: fmt.Errorf(
					"%s is an HTCWorkflow: what its nodes use is not summed up, as that of an HTCJob's jobs is",
					ref.name,
				),
			}
		}
		response, err := where.output(cmd.Context(), ref.name, "log/usage", url.Values{"attempt": {strconv.Itoa(attempt)}})
		if err != nil {
			return ended(cmd.Context(), err)
		}
		defer response.Body.Close()
		var report usage.Report
		if err := json.NewDecoder(response.Body).Decode(&report); err != nil {
			return ended(cmd.Context(), fmt.Errorf("the answer was interrupted: %w", err))
		}
		if format == "json" {
			err = jsonLines(cmd.OutOrStdout()).Encode(report)
		} else {
			err = writeUsage(cmd.OutOrStdout(), report)
		}
		if err == nil && report.Unknown != "" {
			fmt.Fprintf(
				cmd.ErrOrStderr(),
				"HTCondor does not answer about the jobs that have not ended: %s\n",
				Plain(report.Unknown),
			)
		}
		return err
	}
	return c
}

// writeUsage prints a report for people.
func writeUsage(w io.Writer, report usage.Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "jobs: %d, running: %d, ended: %d\n", report.Jobs, report.Running, report.Ended)
	if report.Usage == nil {
		b.WriteString("no job has started yet\n")
	} else {
		const row = "%-8s  %10s %10s %10s  %s\n"
		fmt.Fprintf(&b, row, "RESOURCE", "REQUESTED", "MEDIAN", "WORST", "JOB")
		for _, line := range []struct {
			resource string
			used     *v1alpha1.Used
		}{{"cpu", report.CPU}, {"memory", report.Memory}, {"disk", report.Disk}} {
			if line.used == nil {
				continue
			}
			requested := "-"
			if line.used.Requested != nil {
				requested = line.used.Requested.String()
			}
			fmt.Fprintf(&b, row, line.resource, requested, line.used.Median.String(), line.used.Worst.String(), strconv.Itoa(int(line.used.WorstProc)))
		}
		fmt.Fprintln(&b, Plain(report.Advice))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
