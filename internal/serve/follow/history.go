package follow

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// History lists the attempts of a namespace, or of all, that the ledger knows of.
func (r *Reader) History(_ context.Context, q aggregate.Query) (*aggregate.Answer, error) {
	return &aggregate.Answer{Close: func() {}, Write: func(ctx context.Context, out io.Writer) error {
		left := limit(q.Limit)
		return left.reached(r.history(ctx, q, left, json.NewEncoder(out)))
	}}, nil
}

// history writes the wanted attempts, page by page.
func (r *Reader) history(ctx context.Context, q aggregate.Query, left *lines, out *json.Encoder) error {
	f := ledger.PastFilter{Namespace: q.Namespace, Since: q.Past.Since, Limit: procsAtOnce}
	if key := q.Past.Before; key != (aggregate.PastKey{}) {
		f.Before = new(ledger.PastKey(key))
	}
	for {
		page, err := ledger.Get(ctx, r.o.Ledger, func(tx *ledger.Tx) ([]ledger.Past, error) {
			return tx.History(f)
		})
		if err != nil {
			return fmt.Errorf("ask the ledger: %w", err)
		}
		for _, p := range page {
			if !wanted(p, q.Past) {
				continue // few may be: one Read of all that are not would delay what is written
			}
			if err := left.take(out.Encode(pastLine(p))); err != nil {
				return err
			}
		}
		if len(page) < procsAtOnce {
			return nil
		}
		f.Before = new(page[len(page)-1].Key())
	}
}

// wanted reports whether an attempt is one of those that are asked for.
func wanted(p ledger.Past, q aggregate.PastQuery) bool {
	if q.Account != "" && p.Account != q.Account {
		return false
	}
	is := stateOfPast(p)
	return !q.Failed || is == "Failed" || is == "Refused" || is != "Succeeded" && p.Failed > 0
}

func pastLine(p ledger.Past) aggregate.Past {
	line := aggregate.Past{
		Kind:      v1alpha1.Kind,
		Namespace: p.Namespace,
		Name:      p.Name,
		PastKey:   aggregate.PastKey(p.Key()),
		User:      p.Account,
		Pool:      p.Pool,
		Schedd:    p.Schedd,
		Cluster:   p.Cluster,
		State:     stateOfPast(p),
		Reason:    p.Reason,
		Jobs:      p.Jobs,
		Succeeded: p.Succeeded,
		Failed:    p.Failed,
		Submitted: p.Submitted,
		Started:   p.Started,
		Finished:  p.Finished,
		Ended:     p.Ended,
		Deleted:   p.Gone,
	}
	if p.Kind == ledger.Workflows {
		line.Kind = v1alpha1.WorkflowKind
		return line // what DAGMan itself has used says nothing of the nodes
	}
	var used v1alpha1.Usage
	if p.Usage != "" && json.Unmarshal([]byte(p.Usage), &used) == nil {
		line.Usage = &used
	}
	return line
}

// stateOfPast says how an attempt, or a DAG, ended, or that it has not. The Reason of one that htcd has stopped says
// why.
func stateOfPast(p ledger.Past) string {
	removed := p.Kind == ledger.Workflows && p.Succeeded < p.Jobs // nodes, before their turn
	switch {
	case p.State == ledger.Refused:
		return "Refused"
	case p.Ended.IsZero() && p.Gone.IsZero():
		return "Open"
	case p.State == ledger.Removed || p.Ended.IsZero():
		return "Removed"
	case p.Reason == crosscheck.StopSuccess || p.Reason == crosscheck.StopCompleted:
		return "Succeeded"
	case p.Failed > 0, removed && p.Reason == crosscheck.StopDeadline:
		return "Failed"
	case removed && p.Reason != crosscheck.StopFinished:
		return "Removed"
	}
	return "Succeeded"
}
