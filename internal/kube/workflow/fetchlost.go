package workflow

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/graph"
	"htc.cern.ch/htcd/internal/ledger"
)

// foundHere records of a DAG that the ledger had lost which of its nodes' output was fetched before: their directories
// in the store are complete.
func (c *Controller) foundHere(ctx context.Context, w *v1alpha1.HTCWorkflow, run ledger.Run) error {
	g, err := graph.New(w.Spec)
	if err != nil || run.SpecHash != w.SpecHash() {
		return nil // it is not known where they are
	}
	for next := 0; ; {
		var page, here []ledger.Node
		err := c.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
			page, err = tx.Nodes(run.UID, run.Attempt, ledger.NodeFilter{From: next, Limit: nodesAtOnce})
			return err
		})
		if err != nil || len(page) == 0 {
			return err
		}
		for _, n := range page {
			name := g.Name(graph.Node{Step: n.Step, Sequence: n.Sequence, Index: n.Item, Name: n.Label})
			switch _, err := os.Lstat(filepath.Join(run.OutputDir, name)); {
			case err == nil:
				here = append(here, n)
			case !errors.Is(err, fs.ErrNotExist):
				return err
			}
		}
		if err := c.Ledger.Write(
			ctx,
			func(tx *ledger.Tx) error { return tx.NodesFetched(run.UID, run.Attempt, here) },
		); err != nil {
			return err
		}
		next = page[len(page)-1].Number + 1
	}
}
