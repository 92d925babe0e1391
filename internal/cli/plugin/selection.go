package plugin

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/cli/setting"
)

// selection narrows a list of HTCJobs.
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

func (s selection) has(job *v1alpha1.HTCJob, now time.Time) bool {
	is := stateOf(job)
	ended := is == isSucceeded || is == isFailed
	return (!s.failed || is == isFailed) && (!s.finished || ended) && (!s.active || !ended) &&
		(s.since == 0 || now.Sub(job.CreationTimestamp.Time) <= s.since)
}

// page is how many HTCJobs the apiserver is asked for at once.
const page = 500

// selected returns the HTCJobs of a selection, the oldest first.
func (c *cluster) selected(ctx context.Context, s selection) (jobs []v1alpha1.HTCJob, err error) {
	options := metav1.ListOptions{LabelSelector: s.labels, Limit: page}
	for now := time.Now(); ; {
		list, err := c.jobs.List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			if s.has(&list.Items[i], now) {
				jobs = append(jobs, list.Items[i])
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
	}
	slices.SortStableFunc(jobs, func(a, b v1alpha1.HTCJob) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return jobs, nil
}
