package plugin

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

func historyCommand() *cobra.Command {
	var at Connection
	var all, failed bool
	var since, user, format string
	var most int
	c := &cobra.Command{
		Use:   "history",
		Short: "List who ran what, also of HTCJobs and HTCWorkflows that are deleted",
		Long: `List the attempts of the HTCJobs and HTCWorkflows of a namespace, the newest first, also of those that are deleted: who ran what, where, how
long, how it ended and what it used. USER is HTCondor's account. An HTCWorkflow has a line for each of its DAGs, numbered through all of
its attempts. FAILED counts jobs that htcd has removed, too. htcd keeps them for the time that its administrator set (--history-kept,
90 days unless told otherwise), and 100,000 of deleted ones at most. With -o json each is an object on a line of its own, with -o csv a
line under a line of names, with times in UTC, cores, and bytes.

Needs the right to list history of output.htc.cern.ch, which the ClusterRole htcjob-user has; for -A in the whole cluster.

Exit codes: 0 done, 1 it cannot be read, 2 a mistake in the command line, 130 interrupted.`,
		Args: arguments(0, "no argument"),
	}
	at.Flags(c.Flags())
	setting.Bool(c.Flags(), &all, "all-namespaces,A", false, "of all namespaces")
	setting.Text(
		c.Flags(),
		&since,
		"since",
		"",
		sinceKind,
		"only attempts begun within this `time`, such as 12h or 30d, or since this day or moment, such as 2026-11-20; empty: all that are kept",
	)
	setting.Text(c.Flags(), &user, "user", "", setting.Word, "only those of this HTCondor `account`; empty: any")
	setting.Bool(c.Flags(), &failed, "failed", false, "only those of which a job has failed, or that were refused")
	setting.Int(c.Flags(), &most, "limit", 0, 0, maxNumber, "the newest `number` of them; 0: all")
	setting.Text(
		c.Flags(),
		&format,
		"output,o",
		"table",
		setting.OneOf("table", "csv", "json"),
		"`format`: table, csv or json",
	)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		where, err := at.open(cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		if all {
			where.namespace = ""
		}
		begun, err := sinceWhen(since, time.Now())
		if err != nil {
			return err
		}
		parameters := url.Values{"failed": {strconv.FormatBool(failed)}}
		for name, value := range map[string]string{"since": begun, "user": user} {
			if value != "" {
				parameters.Set(name, value)
			}
		}
		show, flush := pastTable(cmd.OutOrStdout(), all), func() error { return nil }
		switch format {
		case "json":
			lines := jsonLines(cmd.OutOrStdout())
			show = func(p aggregate.Past) error { return lines.Encode(p) }
		case "csv":
			show, flush = pastCSV(cmd.OutOrStdout())
		}
		found := 0
		err = where.history(cmd.Context(), parameters, most, func(p aggregate.Past) error { found++; return show(p) })
		if err == nil && found == 0 && format == "table" {
			fmt.Fprintln(cmd.ErrOrStderr(), "There are no such attempts.")
		}
		return ended(cmd.Context(), errors.Join(err, flush()))
	}
	return c
}

var sinceKind = setting.Is(
	"a time such as 12h or 30d, a day such as 2026-11-20, or a moment such as 2026-11-20T15:04:05Z",
	func(text string) bool {
		_, err := sinceWhen(text, time.Now())
		return err == nil
	},
)

// sinceWhen returns the moment that a user means, as the server takes it; empty: none.
func sinceWhen(text string, now time.Time) (string, error) {
	if text == "" {
		return "", nil
	}
	var at time.Time
	if days, is := strings.CutSuffix(text, "d"); is {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return "", err
		}
		at = now.AddDate(0, 0, -int(n)) // #nosec G115 -- 16 bits
	} else if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		at = now.Add(-d)
	} else if at, err = time.ParseInLocation(time.DateOnly, text, time.Local); err != nil {
		if at, err = time.Parse(time.RFC3339, text); err != nil {
			return "", err
		}
	}
	return at.UTC().Format(time.RFC3339Nano), nil
}

// historyPage is how many are asked for at once: the apiserver cuts an answer off after a minute.
const historyPage = 5000

// history calls fn for each attempt that is wanted, at most so many (0: all). When the connection breaks it goes on
// with the next one.
func (c *cluster) history(ctx context.Context, parameters url.Values, most int, fn func(aggregate.Past) error) error {
	for told := 0; ; {
		page := historyPage
		if most > 0 {
			page = min(page, most-told)
		}
		if page == 0 {
			return nil
		}
		got := 0
		err := again(ctx, func() (progress bool, err error) {
			parameters.Set("limit", strconv.Itoa(page-got))
			response, err := c.askAt(ctx, c.namespace, parameters, "history")
			if err != nil {
				return false, err
			}
			defer response.Body.Close()
			for p, err := range jsonValues[aggregate.Past](response.Body) {
				if err != nil {
					return progress, err
				}
				if err := fn(p); err != nil {
					return progress, errHere{err}
				}
				parameters.Set("before", p.PastKey.String())
				progress = true
				if got++; got == page {
					break // however the answer ends
				}
			}
			return progress, nil
		})
		if told += got; err != nil || got < page {
			return err
		}
	}
}

// pastTable prints attempts as lines of a table, and before the first one what the columns are.
func pastTable(w io.Writer, namespaces bool) func(aggregate.Past) error {
	begun := false
	line := func(namespace string, fields ...any) error {
		text := fmt.Sprintf("%-28s %7s %-12s %-24s %8s %8s  %-16s %9s %9s %6s  %s", fields...)
		if namespaces {
			text = fmt.Sprintf("%-20s %s", namespace, text)
		}
		_, err := fmt.Fprintln(w, strings.TrimRight(text, " "))
		return err
	}
	return func(p aggregate.Past) error {
		if !begun {
			begun = true
			if err := line(
				"NAMESPACE",
				"NAME",
				"ATTEMPT",
				"USER",
				"POOL",
				"JOBS",
				"FAILED",
				"BEGUN",
				"TOOK",
				"MEMORY",
				"CPU",
				"STATE",
			); err != nil {
				return err
			}
		}
		name, took, memory, cpu := p.Name, "", "", ""
		if p.Kind == v1alpha1.WorkflowKind {
			name = "wf/" + name
		}
		if p.Finished.After(p.Started) && !p.Started.IsZero() {
			took = p.Finished.Sub(p.Started).String()
		}
		if p.Usage != nil && p.Usage.Memory != nil {
			memory = p.Usage.Memory.Worst.String()
		}
		if p.Usage != nil && p.Usage.CPU != nil {
			cpu = p.Usage.CPU.Median.String()
		}
		state := p.State
		if p.Reason != p.State {
			state = strings.TrimSpace(state + " " + Plain(p.Reason))
		}
		return line(
			p.Namespace,
			name,
			strconv.Itoa(p.Attempt),
			printed(p.User),
			p.Pool,
			strconv.Itoa(p.Jobs),
			strconv.Itoa(p.Failed),
			p.Created.Local().Format("2006-01-02 15:04"),
			took,
			memory,
			cpu,
			state,
		)
	}
}

// pastCSV prints attempts as lines of CSV, after one of names. The last of them is on its way until flush is called.
func pastCSV(w io.Writer) (show func(aggregate.Past) error, flush func() error) {
	out := csv.NewWriter(w)
	_ = out.Write(
		[]string{
			"kind",
			"namespace",
			"name",
			"uid",
			"attempt",
			"user",
			"pool",
			"schedd",
			"cluster",
			"state",
			"reason",
			"jobs",
			"succeeded",
			"failed",
			"created",
			"submitted",
			"started",
			"finished",
			"ended",
			"deleted",
			"cpuMedian",
			"memoryMedian",
			"memoryWorst",
			"diskWorst",
		},
	) // Error reports it
	show = func(p aggregate.Past) error {
		fields := []string{
			p.Kind,
			p.Namespace,
			p.Name,
			p.UID,
			strconv.Itoa(p.Attempt),
			p.User,
			p.Pool,
			p.Schedd,
			strconv.Itoa(p.Cluster),
			p.State,
			p.Reason,
			strconv.Itoa(p.Jobs),
			strconv.Itoa(p.Succeeded),
			strconv.Itoa(p.Failed),
		}
		for _, at := range []time.Time{p.Created, p.Submitted, p.Started, p.Finished, p.Ended, p.Deleted} {
			text := ""
			if !at.IsZero() {
				text = at.UTC().Format(time.RFC3339)
			}
			fields = append(fields, text)
		}
		var none v1alpha1.Used
		used := []*v1alpha1.Used{&none, &none, &none}
		if p.Usage != nil {
			used = []*v1alpha1.Used{p.Usage.CPU, p.Usage.Memory, p.Usage.Disk}
		}
		amount := func(of *v1alpha1.Used, which func(*v1alpha1.Used) *resource.Quantity) string {
			if of == nil || of == &none {
				return ""
			}
			return strconv.FormatFloat(which(of).AsApproximateFloat64(), 'f', -1, 64)
		}
		median := func(u *v1alpha1.Used) *resource.Quantity { return &u.Median }
		worst := func(u *v1alpha1.Used) *resource.Quantity { return &u.Worst }
		return out.Write(
			append(
				fields,
				amount(used[0], median),
				amount(used[1], median),
				amount(used[1], worst),
				amount(used[2], worst),
			),
		)
	}
	return show, func() error { out.Flush(); return out.Error() }
}
