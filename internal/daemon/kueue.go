package daemon

import (
	"fmt"
	"time"

	"k8s.io/client-go/dynamic"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/apiserver"
	"htc.cern.ch/htcd/internal/kube/kueue"
	"htc.cern.ch/htcd/internal/kube/reconciler"
)

// newKueue returns the quota of Kueue; nil without --kueue.
func (d *daemon) newKueue(l *loop) (*kueue.Kueue, error) {
	if !d.o.Kueue {
		return nil, nil
	}
	client, err := dynamic.NewForConfig(d.config)
	if err != nil {
		return nil, fmt.Errorf("kubernetes client: %w", err)
	}
	return &kueue.Kueue{
		Discovery: d.core.Discovery(), Client: client, Namespace: d.o.Namespace,
		Changed: func(kind, key string) {
			if kind != v1alpha1.WorkflowKind {
				l.controller.QuotaChanged(key)
			}
			if kind != v1alpha1.Kind {
				l.workflows.QuotaChanged(key)
			}
		},
		Elsewhere: d.jobs.NewLabelledInformer(d.o.Namespace, kueue.QueueLabel, d.o.Resync, kueue.SentElsewhere),
		Warn:      apiserver.Events[*v1alpha1.HTCJob]{Recorder: l.recorder}.Warning,
		Log:       d.log.With().Str("component", "kueue").Logger(), Now: time.Now,
	}, nil
}

// quota returns what gates both kinds; nil: nothing outside of htcd.
func (l *loop) quota() reconciler.Quota {
	if l.kueue == nil {
		return nil
	}
	return l.kueue
}
