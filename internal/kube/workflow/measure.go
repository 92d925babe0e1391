package workflow

import (
	"cmp"
	"context"
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck/nodes"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/notify/results"
)

// measured is what was summed up of an attempt's results.
type measured struct {
	uid     string // of the workflow
	attempt int    // 0: nothing yet
	metrics []v1alpha1.MetricStatus
}

// toMeasure reports whether results of a workflow are to be summed up, or its rules looked at.
func (s Situation) toMeasure(known record) bool {
	return len(s.DAGs) > 0 && !s.lost() &&
		(known.Kind.unmeasured || s.Measured.attempt != s.Attempt || s.ruled() || s.untold())
}

// measureOne sums up the results of a workflow and lets its rules act.
func (c *Controller) measureOne(ctx context.Context, key string) {
	if err := c.measure(ctx, key); err != nil {
		c.Log.Warn().Err(err).Str("workflow", key).Msg("results not summed up yet")
		c.measures.AddRateLimited(key)
		return
	}
	c.measures.Forget(key)
}

func (c *Controller) measure(ctx context.Context, key string) error {
	w := c.Get(key)
	if w == nil || w.DeletionTimestamp != nil {
		return nil
	}
	s, err := c.gather(ctx, w)
	if err != nil || len(s.DAGs) == 0 {
		return err
	}
	known := c.Memory.Of(key)
	switch due := known.Kind.unmeasured || s.Measured.attempt != s.Attempt; {
	case due && c.Now().Before(known.Kind.rests):
		c.measures.AddAfter(key, known.Kind.rests.Sub(c.Now()))
	case due:
		c.Memory.Change(key, func(r *record) { r.Kind.unmeasured = false })
		began := c.Now()
		metrics, err := c.sumUp(ctx, s)
		if err != nil {
			c.Memory.Change(key, func(r *record) { r.Kind.unmeasured = true })
			return err
		}
		s.Measured = measured{string(w.UID), s.Attempt, metrics}
		c.Memory.Change(key, func(r *record) {
			// At most a tenth of a processor's time goes into one workflow.
			r.Kind.measured, r.Kind.rests = s.Measured, c.Now().Add(max(9*c.Now().Sub(began), reconciler.BetweenWrites))
		})
		c.Changed.Add(key)
	}
	if s.ruled() {
		again, err := c.applyRules(ctx, &s)
		if err != nil {
			return err
		}
		if !again.IsZero() {
			c.measures.AddAfter(key, max(again.Sub(c.Now()), time.Second))
		}
	}
	return c.tell(ctx, s)
}

// sumUp reads all results of an attempt, those of one metric at a time. What is repeated has left the DAG that had it
// before.
func (c *Controller) sumUp(ctx context.Context, s Situation) (all []v1alpha1.MetricStatus, err error) {
	type name struct {
		step   v1alpha1.StepName
		metric string
	}
	var names []name
	of := map[name][]func(tx *ledger.Tx) ([]float64, error){}
	for _, d := range s.DAGs {
		metrics, err := ledger.Get(ctx, c.Ledger, func(tx *ledger.Tx) ([]ledger.Metric, error) {
			return tx.Metrics(d.Run.UID, d.Run.Attempt)
		})
		if err != nil {
			return nil, err
		}
		for _, m := range metrics {
			n := name{v1alpha1.StepName(m.Step.Name), m.Name}
			if of[n] == nil {
				names = append(names, n)
			}
			of[n] = append(
				of[n],
				func(tx *ledger.Tx) ([]float64, error) { return tx.Results(d.Run.UID, d.Run.Attempt, m.Number) },
			)
		}
	}
	for _, n := range names {
		if len(all) == v1alpha1.MaxMetrics {
			break
		}
		var values []float64
		for _, read := range of[n] {
			err := c.Ledger.Read(ctx, func(tx *ledger.Tx) error {
				some, err := read(tx)
				values = append(values, some...)
				return err
			})
			if err != nil {
				return nil, err
			}
		}
		if sum := results.Summarize(values); sum.Count > 0 {
			all = append(all, v1alpha1.MetricStatus{
				Step:     n.step,
				Metric:   n.metric,
				Count:    int32(sum.Count),
				Mean:     sum.Mean,
				Variance: sum.Variance,
				Min:      sum.Min,
				Max:      sum.Max,
				IQR:      sum.IQR,
				MAD:      sum.MAD,
			})
		}
	}
	return all, nil
}

// describeMetrics sets what is known of the results. After a restart that is what the status said before, until they
// are summed up again.
func (s Situation) describeMetrics(status *v1alpha1.HTCWorkflowStatus) {
	if s.newest() == nil {
		return
	}
	switch {
	case s.Measured.attempt == s.Attempt:
		status.Metrics = s.Measured.metrics
	case s.Workflow.Status.Attempt == int32(s.Attempt):
		status.Metrics = s.Workflow.Status.Metrics
	}
	status.MaxConcurrent = int32(s.changedByRule())
}

// keepResults stores results that came with the output of nodes: their callbacks may have been lost.
func (c *Controller) keepResults(ctx context.Context, page []ledger.Node, texts []string) error {
	some, ignored := false, ""
	err := c.Ledger.Write(ctx, func(tx *ledger.Tx) error {
		for i, n := range page {
			if texts[i] == "" {
				continue
			}
			wrong, err := nodes.Keep(tx, n, texts[i])
			if err != nil {
				return err
			}
			some, ignored = true, cmp.Or(ignored, wrong)
		}
		return nil
	})
	if err == nil {
		c.noteResults(page[0].Namespace+"/"+page[0].Name, some, ignored)
	}
	return err
}

// noteResults has new results summed up, and tells the user once what is wrong with some.
func (c *Controller) noteResults(key string, some bool, ignored string) {
	if some {
		c.Memory.Change(key, func(r *record) { r.Kind.unmeasured = true })
		c.measures.AddAfter(key, c.Memory.Of(key).Kind.rests.Sub(c.Now()))
	}
	if ignored != "" && c.Memory.Of(key).Kind.ignored == "" {
		c.Memory.Change(key, func(r *record) { r.Kind.ignored = ignored })
		c.Warn(key, "ResultsIgnored", ignored)
	}
}
