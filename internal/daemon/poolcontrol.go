package daemon

import (
	"context"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/admission"
	"htc.cern.ch/htcd/internal/kube/apiserver"
	"htc.cern.ch/htcd/internal/kube/poolcontrol"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/target/pool"
)

// poolJobs are the objects that are sent by pools.
type poolJobs struct{ *loop }

func (l poolJobs) PoolLoad(ctx context.Context, name string) (admission.Load, error) {
	return l.controller.PoolLoad(ctx, name)
}

func (l poolJobs) CheckSoon(run ledger.Run) {
	if run.Kind == ledger.Workflows {
		l.workflows.CheckSoon(run)
		return
	}
	l.controller.CheckSoon(run.UID)
}

// newPoolControl returns what keeps the HTCPools, and has it and the control loop learn of their changes.
func (d *daemon) newPoolControl(l *loop, common reconciler.Common) (*poolcontrol.Controller, error) {
	rules := l.controller.Site.PoolRules()
	control, err := poolcontrol.New(poolcontrol.Options{
		Common:    common,
		Informer:  l.pools.informer,
		Objects:   apiserver.HTCPools(d.jobs, d.counts.StatusWritten),
		Jobs:      poolJobs{l},
		Schedds:   l.asked.Answering,
		Collector: d.o.Collector,
		Check:     func(p *v1alpha1.HTCPool) error { return pool.Check(p.Name, p.Spec, rules) },
		Log:       d.log.With().Str("component", "pools").Logger(),
	})
	l.pools.changed = func(before, now *v1alpha1.HTCPool) {
		l.controller.PoolChanged(before, now)
		l.workflows.PoolChanged(before, now)
		control.PoolsChanged()
	}
	return control, err
}
