package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/internal/cli/setting"
)

// selection narrows a list of HTCJobs and HTCWorkflows.
type selection struct {
	failed, finished, active bool
	since                    time.Duration
	labels                   string
}

func (s *selection) flags(f *pflag.FlagSet) {
	setting.Bool(f, &s.failed, "failed", false, "only those that have failed")
	setting.Bool(f, &s.finished, "finished", false, "only those that have ended, however")
	setting.Duration(f, &s.since, "since", 0, 0, mostTime, "only those created within this `time`, such as 24h; 0: all")
	setting.Text(f, &s.labels, "selector,l", "", selector, "only those with these `labels`, as in kubectl")
}

func (s selection) check() error {
	if s.active && (s.failed || s.finished) {
		return setting.Usage{Err: fmt.Errorf("--active and --failed or --finished exclude each other")}
	}
	return nil
}

func (s selection) has(o *object, now time.Time) bool {
	is := stateOf(o)
	ended := is == isSucceeded || is == isFailed
	return (!s.failed || is == isFailed) && (!s.finished || ended) && (!s.active || !ended) &&
		(s.since == 0 || now.Sub(o.CreationTimestamp.Time) <= s.since)
}

// page is how many of them the apiserver is asked for at once.
const page = 500

// selected returns the objects of a selection of these kinds, the oldest first. A kind that the user may not list, or that the cluster
// does not have, is left out, with a warning.
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
