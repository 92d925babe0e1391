package workflow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/artifact"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/kube/graph"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output/push"
)

// Registries are where steps push to.
type Registries interface {
	push.Registries
	Delete(ctx context.Context, target artifact.Target, digest string, dockerConfigs ...[]byte) error
}

// What a workflow has pushed to registries that are ephemeral is deleted with it. Each artifact carries the workflow's
// UID, so that no other has the same digest; the digest was recorded before the artifact was pushed.

const (
	artifactsAtOnce = 100
	deletesAtOnce   = 4
	longestTurn     = 10 * time.Second // of one workflow; then others take turns
	registryPause   = 10 * time.Second
	// A deletion waits no longer than this for a registry that does not answer, and for all of them together.
	patienceWithRegistry = 2 * time.Minute
	patienceWithAll      = time.Hour
)

// dropping is how far the deletion of artifacts has got. After a restart it begins again, and what is gone already is
// no error.
type dropping struct {
	began, went time.Time // went: when one was deleted last
	dag, node   int       // to go on with
	left        int
	why         string // the first of them is
	refused     map[pushPlace]error
	told        bool
}

// pushPlace is where nodes of a step push to.
type pushPlace struct{ step, registry string }

// patient reports whether a registry that does not answer is asked once more.
func (d dropping) patient(now time.Time) bool {
	last := d.began
	if d.went.After(last) {
		last = d.went
	}
	return now.Sub(last) < patienceWithRegistry
}

// dropArtifacts deletes what a workflow has pushed to ephemeral registries. While that takes time it returns a
// *sending.Waiting or a *sending.Paused; what cannot be deleted is left, with an Event.
func (c *Controller) dropArtifacts(ctx context.Context, w *v1alpha1.HTCWorkflow, runs []ledger.Run) error {
	key := w.Namespace + "/" + w.Name
	if w.Spec.KeepArtifacts || len(c.Ephemeral) == 0 {
		return nil
	}
	if c.pusher.Naming(key) {
		return &sending.Waiting{After: time.Second, Message: "an artifact is just being pushed"}
	}
	d := c.Memory.Of(key).Kind.dropping
	if d.began.IsZero() {
		d = dropping{began: c.Now(), refused: map[pushPlace]error{}}
	}
	err := c.dropAll(ctx, w, runs, &d)
	if err == nil && d.left > 0 && !d.told {
		message := fmt.Sprintf("%s left in ephemeral registries; %s", lifecycle.IsOrAre(d.left, "artifact"), d.why)
		c.Log.Warn().Str("workflow", key).Msg(message)
		c.Events.Warning(w, "ArtifactsLeft", message)
		d.told = true
	}
	c.Memory.Change(key, func(r *record) { r.Kind.dropping = d })
	return err
}

// dropAll goes on until everything has been tried, or its turn is over.
func (c *Controller) dropAll(ctx context.Context, w *v1alpha1.HTCWorkflow, runs []ledger.Run, d *dropping) error {
	for turn := c.Now(); len(runs) > 0; {
		if run := runs[0]; run.Attempt != d.dag {
			if run.Attempt < d.dag {
				runs = runs[1:]
				continue
			}
			d.dag, d.node = run.Attempt, 0
		}
		if c.Now().Sub(turn) > longestTurn {
			return &sending.Waiting{Message: "what it has pushed is being deleted"}
		}
		page, err := ledger.Get(ctx, c.Ledger, func(tx *ledger.Tx) ([]ledger.PushedNode, error) {
			return tx.NodesPushed(runs[0].UID, d.dag, d.node, artifactsAtOnce)
		})
		if err != nil {
			return err
		}
		if len(page) == 0 {
			runs = runs[1:]
		} else if err := c.dropPage(ctx, w, page, d); err != nil {
			return err
		}
	}
	return nil
}

// The errors of artifacts that are not deleted.
var (
	errStays = errors.New("the registry is not ephemeral")
	errLate  = errors.New("deleting the others took too long")
)

// dropPage deletes some artifacts, several at a time.
func (c *Controller) dropPage(
	ctx context.Context,
	w *v1alpha1.HTCWorkflow,
	page []ledger.PushedNode,
	d *dropping,
) error {
	logins := map[string]login{}
	results := make([]error, len(page))
	var group errgroup.Group
	group.SetLimit(deletesAtOnce)
	for i, p := range page {
		as, known := logins[p.StepName]
		if !known {
			as = c.loginNow(ctx, w, p.StepName)
			logins[p.StepName] = as
		}
		refused := d.refused[pushPlaceOf(p)]
		switch {
		case !c.Ephemeral.Allow(pushPlaceOf(p).registry):
			results[i] = errStays
		case c.Now().Sub(d.began) > patienceWithAll:
			results[i] = errLate
		case refused != nil || as.err != nil:
			results[i] = cmp.Or(refused, as.err)
		default:
			group.Go(func() error {
				target := artifact.Target{Reference: fill(p.Artifact, p.Place), Namespace: w.Namespace}
				results[i] = c.Registries.Delete(ctx, target, p.Digest, as.configs...)
				return nil
			})
		}
	}
	_ = group.Wait() // nobody returns an error
	for i, p := range page {
		if err := d.done(p, results[i], c.Now()); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func pushPlaceOf(p ledger.PushedNode) pushPlace {
	return pushPlace{p.StepName, artifact.Host(fill(p.Artifact, p.Place))}
}

// done takes the result for one artifact. It returns a *sending.Paused if that is to be tried again.
func (d *dropping) done(p ledger.PushedNode, err error, now time.Time) error {
	reference := fill(p.Artifact, p.Place)
	switch {
	case err == nil:
		d.went = now
	case errors.Is(err, errStays):
	case passes(err) && d.patient(now):
		return &sending.Paused{After: registryPause, Err: fmt.Errorf("delete %s: %w", reference, err)}
	default:
		d.refused[pushPlaceOf(p)] = err
		if d.left++; d.why == "" {
			d.why = reference + ": " + err.Error()
		}
	}
	d.node = p.Proc + 1
	return nil
}

// passes reports whether trying again can help, without anybody doing anything.
func passes(err error) bool {
	if e, is := errors.AsType[*artifact.Unusable](err); is {
		return e.Reason == artifact.ReasonUnreachable
	}
	_, missing := errors.AsType[*inputs.Waiting](err)
	return !missing && !errors.Is(err, errLate)
}

// login is the credentials of a step for registries.
type login struct {
	configs [][]byte
	err     error
}

// loginNow returns the credentials of the step of that name as they are now. One that is no longer there has none.
func (c *Controller) loginNow(ctx context.Context, w *v1alpha1.HTCWorkflow, step string) (l login) {
	g, err := graph.New(w.Spec)
	if err != nil {
		return login{err: &inputs.Waiting{Message: err.Error()}}
	}
	for i := range g.Steps {
		if string(g.Steps[i].Name) == step {
			l.configs, l.err = inputs.DockerConfigs(ctx, c.JobSecrets, stepJob(w, g, i))
		}
	}
	return l
}
