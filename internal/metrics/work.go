package metrics

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/inputs/jobcredentials"
	"htc.cern.ch/htcd/internal/kube/poolcontrol"
	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
)

// Controller is what Work asks of the control loop.
type Controller interface {
	Waiting() map[string]int
	WorkflowsWaiting() map[string]int
	JobCredentials() map[string]int
	Backends() map[schedd.Endpoint]backend.Reachability
}

// Work holds the parts of the active htcd; a standby has none.
type Work struct {
	Ledger     reconciler.Ledger
	Controller Controller
	Pools      func() []poolcontrol.Load
	Informer   cache.SharedIndexInformer // of HTCJobs
	Workflows  cache.SharedIndexInformer // of HTCWorkflows
	LedgerFile string
	Data       string // a directory of the volume where output is kept
	KeepFree   int64  // bytes; 0: see output.Reserve
	Now        func() time.Time
}

// patience is how long reading the ledger may take.
const patience = 3 * time.Second

// workDescs are the metrics that are looked up.
type workDescs struct {
	procs, openRuns, openChecked, reachable, missing  *prometheus.Desc
	commands, unfetched, queues, orphans, credentials *prometheus.Desc
	namespaces, ledgerSize, ledgerFree, free, size    *prometheus.Desc
	keepFree, freeFiles, keepFreeFiles                *prometheus.Desc
	errors                                            *prometheus.CounterVec
}

// Working shows the state of w from now on. The informer must not run yet.
func (m *Metrics) Working(w Work) error {
	// Resyncs of tens of thousands of objects are of no interest here.
	if _, err := w.Informer.AddEventHandlerWithResyncPeriod(m.phases(), 0); err != nil {
		return fmt.Errorf("count HTCJobs: %w", err)
	}
	if _, err := w.Workflows.AddEventHandlerWithResyncPeriod(m.workflows.count(), 0); err != nil {
		return fmt.Errorf("count HTCWorkflows: %w", err)
	}
	for _, waits := range []*waits{m.waits, m.workflows.waits} {
		if err := m.registry.Register(waits); err != nil {
			return err
		}
	}
	if err := m.registry.Register(pools{m.pools, w.Pools}); err != nil {
		return err
	}
	return m.registry.Register(&work{workDescs: m.work, workflows: m.workflows, Work: w})
}

// phases are those that HTCJobs and HTCWorkflows can be in.
var phases = []v1alpha1.Phase{
	v1alpha1.PhasePending, v1alpha1.PhaseSubmitting, v1alpha1.PhaseIdle, v1alpha1.PhaseRunning, v1alpha1.PhaseHeld,
	v1alpha1.PhaseSuspended, v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed, v1alpha1.PhaseRemoved,
}

// phases counts HTCJobs as they come, change and go, and records those that wait to be sent.
func (m *Metrics) phases() cache.ResourceEventHandler {
	for _, phase := range phases {
		m.htcjobs.WithLabelValues(string(phase))
	}
	return counted(m.htcjobs, m.waits, func(job *v1alpha1.HTCJob) (v1alpha1.Phase, waiter) {
		return job.Status.Phase, waiterOf(job)
	})
}

// counted counts objects by phase as they come, change and go, and records those that wait to be sent.
func counted[O metav1.Object](
	phases *prometheus.GaugeVec, waits *waits, of func(O) (v1alpha1.Phase, waiter),
) cache.ResourceEventHandler {
	count := func(object any, n float64) {
		if gone, is := object.(cache.DeletedFinalStateUnknown); is {
			object = gone.Obj
		}
		o, is := object.(O)
		if !is {
			return
		}
		phase, wait := of(o)
		phases.WithLabelValues(phaseOf(phase)).Add(n)
		if n > 0 {
			waits.seen(o.GetNamespace()+"/"+o.GetName(), wait)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { count(object, 1) },
		UpdateFunc: func(before, now any) {
			count(before, -1)
			count(now, 1)
		},
		DeleteFunc: func(object any) {
			count(object, -1)
			if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
				waits.gone(key)
			}
		},
	}
}

// phaseOf is a phase as a label; Pending if there is no status.
func phaseOf(phase v1alpha1.Phase) string { return string(cmp.Or(phase, v1alpha1.PhasePending)) }

// work looks up what is not counted as it happens.
type work struct {
	workDescs
	workflows workflows
	Work

	mu   sync.Mutex
	last sums
}

// Describe implements prometheus.Collector.
func (w *work) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		w.procs, w.openRuns, w.openChecked, w.reachable, w.missing, w.commands, w.unfetched, w.queues, w.orphans,
		w.credentials, w.namespaces, w.ledgerSize, w.ledgerFree, w.free, w.size, w.keepFree,
		w.freeFiles, w.keepFreeFiles, w.workflows.nodes, w.workflows.queues,
	} {
		descs <- d
	}
}

// Collect implements prometheus.Collector. It omits what cannot be looked up.
func (w *work) Collect(metrics chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	credentials := w.Controller.JobCredentials()
	for _, state := range jobcredentials.States {
		gauge(w.credentials, float64(credentials[state]), state)
	}
	for queue, n := range w.Controller.Waiting() {
		gauge(w.queues, float64(n), queue)
	}
	for queue, n := range w.Controller.WorkflowsWaiting() {
		gauge(w.workflows.queues, float64(n), queue)
	}
	open, err := w.fromLedger(gauge)
	if err != nil {
		w.errors.WithLabelValues().Inc()
	}
	backends := w.Controller.Backends()
	for endpoint, up := range w.reached(backends, open) {
		gauge(w.reachable, up, endpointName(endpoint))
		gauge(w.missing, float64(backends[endpoint].Missing), endpointName(endpoint))
		if n := backends[endpoint].Pace.Commands; n > 0 {
			gauge(w.commands, float64(n), endpointName(endpoint))
		}
	}
	if info, err := os.Stat(w.LedgerFile); err == nil {
		gauge(w.ledgerSize, float64(info.Size()))
	} else {
		w.errors.WithLabelValues().Inc()
	}
	if free, size, err := output.Volume(w.Data); err == nil {
		gauge(w.free, float64(free.Bytes))
		gauge(w.size, float64(size.Bytes))
		reserve := output.Reserve(w.KeepFree, size)
		gauge(w.keepFree, float64(reserve.Bytes))
		if size.BoundsFiles() {
			gauge(w.freeFiles, float64(free.Files))
			gauge(w.keepFreeFiles, float64(reserve.Files))
		}
	} else {
		w.errors.WithLabelValues().Inc()
	}
}

// fromLedger shows the ledger's sums.
func (w *work) fromLedger(gauge func(*prometheus.Desc, float64, ...string)) ([]ledger.OpenAt, error) {
	sums, err := w.sums()
	if err != nil {
		return nil, err
	}
	c := sums.counts
	for state, n := range map[string]int{
		"unknown": c.Active - c.Idle - c.Running - c.Held, "idle": c.Idle, "running": c.Running, "held": c.Held,
		"succeeded": c.Succeeded, "failed": c.Failed,
	} {
		gauge(w.procs, float64(n), state)
	}
	w.workflows.collect(gauge, sums.nodes)
	gauge(w.unfetched, float64(sums.unfetched))
	gauge(w.orphans, float64(sums.orphans))
	gauge(w.ledgerFree, float64(sums.free))
	for _, u := range busiest(sums.used) {
		for state, n := range map[string]int{"idle": u.Idle, "running": u.Running, "held": u.Held} {
			gauge(w.namespaces, float64(n), u.Namespace, cmp.Or(u.Pool, "_none"), state)
		}
	}
	for _, o := range sums.open {
		name := endpointName(schedd.Endpoint{Collector: o.Collector, Schedd: o.Schedd})
		gauge(w.openRuns, float64(o.Runs), name)
		gauge(w.openChecked, unix(o.Checked), name)
	}
	return sums.open, nil
}

// sums are the figures from the ledger.
type sums struct {
	at        time.Time
	counts    ledger.Counts
	nodes     ledger.NodeCounts
	open      []ledger.OpenAt
	unfetched int
	orphans   int
	used      []ledger.NamespaceUse
	free      int64 // bytes of the ledger's file
}

// fresh is how long the figures are reused: with 100,000 HTCJobs, 10,000 of them open, reading takes some 45 ms
// (measured), during which no callback becomes durable.
const fresh = 5 * time.Second

// sums reads the ledger, in several short reads.
func (w *work) sums() (sums, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.Now()
	if now.Sub(w.last.at) < fresh {
		return w.last, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	next := sums{at: now}
	for _, read := range []func(tx *ledger.Tx) error{
		func(tx *ledger.Tx) (err error) { next.counts, err = tx.Totals(); return err },
		func(tx *ledger.Tx) (err error) { next.nodes, err = tx.NodeTotals(); return err },
		func(tx *ledger.Tx) (err error) { next.open, err = tx.OpenRuns(); return err },
		func(tx *ledger.Tx) (err error) { next.unfetched, err = tx.UnfetchedProcs(); return err },
		func(tx *ledger.Tx) (err error) { next.orphans, err = tx.KeptOrphans(); return err },
		func(tx *ledger.Tx) (err error) { next.used, err = tx.NamespaceUse(); return err },
		func(tx *ledger.Tx) (err error) { next.free, err = tx.Free(); return err },
	} {
		if err := w.Ledger.Read(ctx, read); err != nil {
			return sums{}, err
		}
	}
	w.last = next
	return next, nil
}

// reached shows for every relevant schedd whether it answers: those with open runs, and those asked lately that have
// ever answered or that the site named. Other names that users wrote into HTCJobs do not count. A schedd without a name
// counts while its name cannot be determined.
func (w *work) reached(
	backends map[schedd.Endpoint]backend.Reachability,
	open []ledger.OpenAt,
) map[schedd.Endpoint]float64 {
	up := map[schedd.Endpoint]float64{}
	for endpoint, b := range backends {
		matters := !b.Answered.IsZero() || b.Usual
		if endpoint == (schedd.Endpoint{}) {
			matters = b.Down
		}
		matters = matters && w.Now().Sub(b.At) <= needed
		for _, o := range open {
			matters = matters || endpoint == schedd.Endpoint{Collector: o.Collector, Schedd: o.Schedd}
		}
		switch {
		case matters && b.Down:
			up[endpoint] = 0
		case matters:
			up[endpoint] = 1
		}
	}
	return up
}
