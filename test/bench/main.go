package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"htc.cern.ch/htcd/test/lab"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	only := f.String("row", "", "the one row to measure: "+strings.Join(rowNames(), ", "))
	growth := f.Bool("growth", false, "measure each row at a quarter, half and all of its size, too")
	size := f.Int("size", 0, "measure at this size instead")
	results := f.String("results", "", "directory of the results and profiles; empty: bench/ in the lab")
	minutes := f.Float64("soak", 0, "run a steady mix for so many minutes instead")
	daily := f.Int("day", 0, "run a day of so many HTCJobs instead")
	if err := f.Parse(args); err != nil {
		return err
	}
	running, err := lab.Open(os.Getenv("HTCD_LAB")) // whether it runs is visible only from outside
	if err != nil {
		return err
	}
	if *results == "" {
		*results = running.Path("bench", "results")
	}
	if err := os.MkdirAll(*results, 0o755); err != nil {
		return err
	}
	p, err := newPlace(ctx, running, *results)
	if err != nil {
		return err
	}
	defer func() { p.close() }()
	if *minutes > 0 {
		return soak(ctx, p, time.Duration(*minutes*float64(time.Minute)))
	}
	if *daily > 0 {
		return day(ctx, p, *daily)
	}
	return table(ctx, p, *only, *growth, *size)
}

// table measures rows and prints each as soon as it is known.
func table(ctx context.Context, p *place, only string, growth bool, size int) error {
	file, err := os.OpenFile(filepath.Join(p.results, "table.md"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	say := func(line string) {
		fmt.Println(line)
		fmt.Fprintln(file, line)
	}
	say(fmt.Sprintf("\n%s, load %s\n", time.Now().UTC().Format(time.RFC3339), load()))
	say("| row | n | ours | floor | ratio | aim |")
	say("|---|---|---|---|---|---|")
	var errs []error
	found := false
	for _, r := range rows {
		if only != "" && r.name != only {
			continue
		}
		found = true
		sizes := []int{r.n}
		switch {
		case size > 0:
			sizes = []int{size}
		case growth && r.grows:
			sizes = []int{r.n / 4, r.n / 2, r.n}
		}
		for _, n := range sizes {
			figures, err := r.measure(ctx, p, n)
			for _, f := range figures {
				say(f.line(r.name, n))
			}
			if err != nil {
				say(
					fmt.Sprintf(
						"| %s | %d | not measured: %s | | | |",
						r.name,
						n,
						strings.ReplaceAll(err.Error(), "\n", " "),
					),
				)
				errs = append(errs, fmt.Errorf("%s: %w", r.name, err))
			}
			p.tidy(ctx)
			if ctx.Err() != nil {
				return errors.Join(errs...)
			}
		}
	}
	if !found {
		return fmt.Errorf("-row %q: there are %s", only, strings.Join(rowNames(), ", "))
	}
	return errors.Join(errs...)
}

// row is one line of the table, or a few that are measured together.
type row struct {
	name    string
	n       int  // full size
	grows   bool // whether smaller sizes are informative
	measure func(ctx context.Context, p *place, n int) ([]figure, error)
}

var rows = []row{
	{"callback", 200, true, callbackToStatus},
	{"submits", 300, true, submits},
	{"pinned", 300, true, pinned},
	{"large", 10_000, true, largeQueue},
	{"whole", 100_000, true, whole},
	{"items", 10_000, true, manyItems},
	{"crosscheck", 100_000, true, crosscheck},
	{"paged", 300_000, false, paged},
	{"history", 10_000, true, history},
	{"callbacks", 40_000, true, callbacks},
	{"ads", 40_000, true, readingAds},
	{"idle", 0, false, idle},
	{"memory", 10_000, true, memory},
	{"start", 100_000, true, start},
	{"fair", 5000, false, fair},
	{"states", 8, false, states},
	{"burst", 2000, true, burst},
	{"requests", 200, true, requests},
	{"output", 1000, true, outputs},
	{"workflow", 1000, true, workflow},
	{"graph", 1000, true, listedGraph},
	{"nodes", 100_000, true, manyNodes},
	{"factory", 100_000, true, factory},
	{"made", 500, true, made},
}

func rowNames() []string {
	var names []string
	for _, r := range rows {
		names = append(names, r.name)
	}
	return names
}

// figure is a measurement beside its floor. The unit is printed once, after ours.
type figure struct {
	what        string
	ours, floor float64 // floor 0: none
	unit        string
	aim         string
	note        string
}

func (f figure) line(row string, n int) string {
	floor, ratio := "", ""
	if f.floor != 0 {
		floor, ratio = fmt.Sprintf("%.4g", f.floor), fmt.Sprintf("%.2f", f.ours/f.floor)
	}
	name := row
	if f.what != "" {
		name += ": " + f.what
	}
	note := f.aim
	if f.note != "" {
		note += " (" + f.note + ")"
	}
	return fmt.Sprintf("| %s | %d | %.4g %s | %s | %s | %s |", name, n, f.ours, f.unit, floor, ratio, note)
}

// load returns the machine's load from /proc/loadavg.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	fields := strings.Fields(string(text))
	return strings.Join(fields[:3], " ")
}
