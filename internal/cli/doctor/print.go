package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// checkTime is how long one check may take: a schedd that is away costs HTCondor's tools 20 s, and the longest check
// has a job run.
const checkTime = triedWithin + 30*time.Second

// Print prints what each check finds; in a table, as soon as it does. It reports whether there was no problem.
func Print(ctx context.Context, p Patient, w io.Writer, format string) (well bool, err error) {
	findings := []Finding{}
	well = run(ctx, Checks(p), checkTime, func(f Finding) {
		findings = append(findings, f)
		if format == "table" {
			_, printed := io.WriteString(w, row(f))
			err = errors.Join(err, printed)
		}
	})
	if format == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		err = errors.Join(err, e.Encode(map[string]any{"ok": well, "findings": findings}))
	}
	return well, err
}

// row is a finding for people: one line, and what to do below it.
func row(f Finding) string {
	line := fmt.Sprintf("%-8s %-14s %s\n", f.Verdict, f.Check, strings.ReplaceAll(f.Message, "\n", " "))
	if f.Do != "" {
		line += fmt.Sprintf("%-23s do: %s\n", "", f.Do)
	}
	return line
}
