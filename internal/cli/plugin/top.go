package plugin

import (
	"cmp"
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
		Short: "Show what the jobs of an HTCJob or HTCWorkflow use of what they asked for",
		Long: `Show the cpu, the memory and the disk that the jobs of an HTCJob, or of each step of an HTCWorkflow, use or have used, against what they asked for: the median, the job that
used most, and what to ask for next time. cpu is how many cores a job kept busy on average. Jobs that have not started do not count. HTCondor measures every
few minutes and rounds up; a job of some seconds may not have been measured at all.

Of an HTCWorkflow, JOB is the job's place in its step: SEQUENCE/INDEX, or its name in spec.graph. With -o json each step is an object on a line
of its own.

Needs the right to get htcjobs/log or htcworkflows/log of output.htc.cern.ch, which the ClusterRole htcjob-user has. When all jobs of an
HTCJob have ended the same is in status.usage.

Exit codes: 0 done, 1 it cannot be read or nothing has been sent yet, 2 a mistake in the command line, 130 interrupted.`,
		Args:              arguments(1, "the name of an HTCJob or HTCWorkflow"),
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
			return ended(cmd.Context(), where.topSteps(cmd, ref.name, attempt, format))
		}
		response, err := where.output(
			cmd.Context(),
			ref.name,
			"log/usage",
			url.Values{"attempt": {strconv.Itoa(attempt)}},
		)
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
			err = writeUsage(cmd.OutOrStdout(), "", report, func(proc int32) string { return strconv.Itoa(int(proc)) })
		}
		if err == nil {
			sayUnknown(cmd.ErrOrStderr(), report.Unknown)
		}
		return err
	}
	return c
}

// topSteps shows what the nodes of a workflow use, step by step.
func (c *cluster) topSteps(cmd *cobra.Command, name string, attempt int, format string) error {
	c.resource = v1alpha1.WorkflowResource
	response, err := c.output(cmd.Context(), name, "log/usage", url.Values{"attempt": {strconv.Itoa(attempt)}})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	unknown := ""
	for step, err := range jsonValues[usage.Step](response.Body) {
		if err != nil {
			return fmt.Errorf("the answer was interrupted: %w", err)
		}
		unknown = cmp.Or(step.Unknown, unknown)
		if format == "json" {
			err = jsonLines(cmd.OutOrStdout()).Encode(step)
		} else {
			place := func(node int32) string { return step.Nodes[node] }
			err = writeUsage(cmd.OutOrStdout(), "step "+step.Step+": ", step.Report, place)
		}
		if err != nil {
			return err
		}
	}
	sayUnknown(cmd.ErrOrStderr(), unknown)
	return nil
}

// sayUnknown says why only the jobs that have ended are known; empty: the others are, too.
func sayUnknown(w io.Writer, why string) {
	if why != "" {
		fmt.Fprintf(w, "HTCondor does not answer about the jobs that have not ended: %s\n", Plain(why))
	}
}

// writeUsage prints a report for people; name is what a job is called.
func writeUsage(w io.Writer, title string, report usage.Report, name func(int32) string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%sjobs: %d, running: %d, ended: %d\n", Plain(title), report.Jobs, report.Running, report.Ended)
	if report.Usage == nil {
		b.WriteString("no job has started yet\n")
	} else {
		const row = "%-8s  %10s %10s %10s  %s\n"
		fmt.Fprintf(&b, row, "RESOURCE", "REQUESTED", "MEDIAN", "WORST", "JOB")
		for _, of := range report.Each() {
			requested := "-"
			if of.Requested != nil {
				requested = of.Requested.String()
			}
			fmt.Fprintf(&b, row, of.Name, requested, of.Median.String(), of.Worst.String(), Plain(name(of.WorstProc)))
		}
		fmt.Fprintln(&b, Plain(report.Advice))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
