package reconciler

import (
	"time"

	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output/push"
)

// How long the next try of a push waits at most, and how many artifacts are pushed in parallel to each registry.
const (
	lastPush = 5 * time.Minute
	pushers  = 2
)

// Pusher returns what pushes artifacts of objects. The options need only what its kind has.
func (r *Reconciler[O, S, K]) Pusher(o push.Options, metrics PushMetrics) *push.Pusher {
	o.Queue, o.Workers, o.Ledger, o.Log = queue(FirstRetry, lastPush), pushers, r.o.Ledger, r.o.Log
	o.Observer = pushed[O, S, K]{r, metrics}
	return push.New(o)
}

// PushMetrics counts pushes.
type PushMetrics interface {
	// Pushed: an artifact has been pushed.
	Pushed(bytes int64)
	// PushFailed: the artifacts of an object cannot be pushed now, which will be tried again.
	PushFailed(reason string)
}

// pushed passes the results of pushes on to the queue, the user and the metrics. It implements push.Observer.
type pushed[O Object, S, K any] struct {
	*Reconciler[O, S, K]
	metrics PushMetrics
}

// Passed tells the user once what prevents a push.
func (p pushed[O, S, K]) Passed(key string, err error) {
	if err == nil {
		if p.Memory.Unblock(key, Pushing) {
			p.Changed.Add(key)
		}
		return
	}
	b := Explain(err)
	b.Blocker = sending.ExplainPush(err, b.Blocker)
	p.metrics.PushFailed(b.Reason)
	p.Report(key, Pushing, b, err, "not pushed yet")
}

// Pushed has the status count an artifact.
func (p pushed[O, S, K]) Pushed(run ledger.Run, bytes int64) {
	p.metrics.Pushed(bytes)
	p.Counted(run.Namespace + "/" + run.Name)
}

// NotPushed tells the user what will never be pushed.
func (p pushed[O, S, K]) NotPushed(run ledger.Run, why string) {
	p.Warn(run.Namespace+"/"+run.Name, lifecycle.ReasonNotPushed, why)
	p.Changed.Add(run.Namespace + "/" + run.Name)
}
