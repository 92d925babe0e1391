package reconciler

import (
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/kube/sending"
	"htc.cern.ch/htcd/internal/ledger"
)

// Pushed passes the results of pushes on to the queue, the user and the metrics. It implements push.Observer.
type Pushed[O Object, S, K any] struct {
	*Reconciler[O, S, K]
	Metrics interface {
		// Pushed: an artifact has been pushed.
		Pushed(bytes int64)
		// PushFailed: the artifacts of an object cannot be pushed now, which will be tried again.
		PushFailed(reason string)
	}
}

// Passed tells the user once what prevents a push.
func (p Pushed[O, S, K]) Passed(key string, err error) {
	if err == nil {
		if p.Memory.Unblock(key, Pushing) {
			p.Changed.Add(key)
		}
		return
	}
	b := Explain(err)
	b.Blocker = sending.ExplainPush(err, b.Blocker)
	p.Metrics.PushFailed(b.Reason)
	p.Report(key, Pushing, b, err, "not pushed yet")
}

// Pushed has the status count an artifact.
func (p Pushed[O, S, K]) Pushed(run ledger.Run, bytes int64) {
	p.Metrics.Pushed(bytes)
	key := run.Namespace + "/" + run.Name
	p.Changed.AddAfter(key, p.Memory.UntilWrite(key, p.o.Now(), BetweenWrites))
}

// NotPushed tells the user what will never be pushed.
func (p Pushed[O, S, K]) NotPushed(run ledger.Run, why string) {
	p.Warn(run.Namespace+"/"+run.Name, lifecycle.ReasonNotPushed, why)
	p.Changed.Add(run.Namespace + "/" + run.Name)
}
