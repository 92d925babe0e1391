package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/internal/cli/setting"
)

// selection narrows a list of HTCJobs and HTCWorkflows.
type selection struct {
	failed, finished, suspended, active bool
	since                               time.Duration
	labels                              string
}

func (s *selection) flags(f *pflag.FlagSet) {
	setting.Bool(f, &s.failed, "failed", false, "only those that have failed")
	setting.Bool(f, &s.finished, "finished", false, "only those that have ended, however")
	setting.Bool(
		f,
		&s.suspended,
		"suspended",
		false,
		"only those that are suspended, as after htcd cancel; with --finished or --failed, these, too",
	)
	setting.Duration(f, &s.since, "since", 0, 0, mostTime, "only those created within this `time`, such as 24h; 0: all")
	s.label(f)
}

func (s *selection) label(f *pflag.FlagSet) {
	setting.Text(f, &s.labels, "selector,l", "", selector, "only those with these `labels`, as in kubectl")
}

// byState reports whether states are named that objects must have.
func (s selection) byState() bool { return s.failed || s.finished || s.suspended }

// orNames refuses names beside labels, and neither.
func (s selection) orNames(cmd *cobra.Command, args []string) error {
	switch {
	case s.labels == "":
		return someNames(cmd, args)
	case len(args) > 0:
		return setting.Usage{Err: fmt.Errorf("%s: want names or --selector, not both", cmd.Name())}
	}
	return nil
}

func (s selection) check() error {
	if s.active && s.byState() {
		return setting.Usage{Err: fmt.Errorf("--active and --failed, --finished or --suspended exclude each other")}
	}
	return nil
}

func (s selection) has(o *object, now time.Time) bool {
	is := stateOf(o)
	ended := is == isSucceeded || is == isFailed
	has := s.failed && is == isFailed || s.finished && !s.failed && ended || s.suspended && is == isSuspended
	return (has || !s.byState()) && (!s.active || !ended) &&
		(s.since == 0 || now.Sub(o.CreationTimestamp.Time) <= s.since)
}

// page is how many of them the apiserver is asked for at once.
const page = 500

// selected returns the objects of a selection of these kinds, the oldest first. A kind that the user may not list, or
// that the cluster does not have, is left out, with a warning.
func (c *cluster) selected(ctx context.Context, s selection, among ...*kind) (all []*object, err error) {
	now := time.Now()
	var refusals []error
	for _, k := range among {
		options := metav1.ListOptions{LabelSelector: s.labels, Limit: page}
		for more := true; more; more = options.Continue != "" {
			some, next, err := c.of(k).list(ctx, options)
			if absent(err) {
				refusals = append(refusals, err)
				break
			}
			if err != nil {
				return nil, err
			}
			options.Continue = next
			all = append(all, slices.DeleteFunc(some, func(o *object) bool { return !s.has(o, now) })...)
		}
	}
	if len(refusals) == len(among) {
		return nil, errors.Join(refusals...)
	}
	for _, err := range refusals {
		fmt.Fprintln(c.coming.warnings, Plain(err.Error()))
	}
	slices.SortStableFunc(all, func(a, b *object) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return all, nil
}

// labelled returns the objects with the labels of a selection, at least one.
func (c *cluster) labelled(ctx context.Context, s selection) ([]*object, error) {
	all, err := c.selected(ctx, s, kinds...)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("no HTCJob or HTCWorkflow of namespace %s has the labels %s", c.namespace, s.labels)
	}
	return all, err
}
