package operator

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/job"
	"htc.cern.ch/htcd/internal/serve/control"
)

// block is how many rows are aligned with each other. A long table is written in parts.
const block = 1000

// PrintOutcome writes the result of a pass. Its error is left to the caller.
func PrintOutcome(w io.Writer, format string, o control.Outcome, dry bool) error {
	out := bufio.NewWriter(w)
	if format == "json" {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		if err := e.Encode(o); err != nil {
			return err
		}
		return out.Flush()
	}
	if len(o.Differences) > 0 {
		table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
		fmt.Fprintln(table, "NAMESPACE/NAME\tJOB\tWAS\tIS\tEVIDENCE\tREPAIRED")
		for rows := range slices.Chunk(o.Differences, block) {
			for _, d := range rows {
				fmt.Fprintf(
					table,
					"%s/%s\t%s\t%s\t%s\t%s\t%s\n",
					d.Namespace,
					d.Name,
					orDash(d.JobID),
					cell(d.Was),
					cell(d.Is),
					cell(d.Evidence),
					repaired(d, dry),
				)
			}
			if err := table.Flush(); err != nil {
				return err
			}
		}
	}
	if o.Error == "" || len(o.Differences) > 0 {
		fmt.Fprintln(out, count(o.Report, dry))
	}
	return out.Flush()
}

func repaired(d crosscheck.Difference, dry bool) string {
	switch {
	case d.Repaired:
		return "yes"
	case dry:
		return "dry run"
	}
	return "not yet"
}

// count is the table's last line.
func count(r job.Report, dry bool) string {
	checked := fmt.Sprintf("%d jobs checked", r.Checked)
	if r.Checked == 1 {
		checked = "1 job checked"
	}
	n, done := len(r.Differences), 0
	for _, d := range r.Differences {
		if d.Repaired {
			done++
		}
	}
	verb := "differ"
	if n == 1 {
		verb = "differs"
	}
	switch {
	case n == 0:
		return checked + ", nothing differs"
	case dry:
		return fmt.Sprintf("%s, %d %s; nothing was changed", checked, n, verb)
	}
	return fmt.Sprintf("%s, %d %s, %d repaired", checked, n, verb, done)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// cell keeps HTCondor's and users' words from breaking the table or the terminal.
func cell(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}
