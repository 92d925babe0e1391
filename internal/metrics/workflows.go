package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

// workflows are the metrics of HTCWorkflows.
type workflows struct {
	phases, watched                       *prometheus.GaugeVec
	dags, sent, rules, fetched, fetchErrs *prometheus.CounterVec
	passes                                *prometheus.CounterVec
	nodes, queues                         *prometheus.Desc
	waits                                 *waits
}

func (m *Metrics) newWorkflows() workflows {
	w := workflows{
		phases: m.gauges(
			"htcworkflows",
			"HTCWorkflows, by `phase` of their status; only the active htcd counts",
			"phase",
		),
		watched: m.gauges(
			"htcworkflows_watched",
			"1 when the apiserver last let htcd list or watch the HTCWorkflows, else 0",
		),
		nodes: m.lookedUp(
			"nodes",
			"nodes of all HTCWorkflows, of the DAGs that were sent, by `state`: `waiting` (for nodes before it, or the schedd has not shown it yet), `idle`, `running`, `held`, `done`, `failed`, `futile`",
			"state",
		),
		dags: m.counters(
			"submitted_dags_total",
			"DAGs that were submitted; each is also one of the submitted procs",
		),
		sent:    m.counters("submitted_nodes_total", "nodes of these DAGs, which DAGMan sends"),
		rules:   m.counters("rules_acted_total", "actions of HTCWorkflows' rules, by `action`", "action"),
		fetched: m.counters("fetched_nodes_total", "nodes whose output was fetched"),
		fetchErrs: m.counters(
			"node_fetch_errors_total",
			"failed fetches of nodes' output, which are repeated, by `reason` as in the condition OutputFetched",
			"reason",
		),
		passes: m.counters(
			"node_passes_total",
			"passes over the open nodes of one `schedd`, by `pass` (`cross-check`, `refresh` or `lost`) and `result`: `OK`, or `Error` if not all could be compared",
			"pass",
			"schedd",
			"result",
		),
		queues: m.lookedUp(
			"workflow_queue_depth",
			"HTCWorkflows that wait for a worker, by `queue`: `changed`, `ended` and `routine` (to be synced), `submit`, `ask`, `remove`, `delete`, `check` (for a command of HTCondor), `fetch`, `push` (to a registry), `measure` (results and rules)",
			"queue",
		),
		waits: newWaits(m.lookedUp(
			"waiting_htcworkflows",
			"HTCWorkflows that wait for their first DAG, or a further one, to be sent, by `reason` as for HTCJobs; `spec.suspend` does not count",
			"reason",
		), m.lookedUp(
			"htcworkflows_waiting_since_timestamp_seconds",
			"when the longest wait among them began, as for HTCJobs",
			"reason",
		)),
	}
	for _, v := range []*prometheus.CounterVec{w.dags, w.sent, w.fetched} {
		v.WithLabelValues()
	}
	for _, action := range []v1alpha1.RuleAction{v1alpha1.ActionFinish, v1alpha1.ActionGrow, v1alpha1.ActionShrink,
		v1alpha1.ActionRepeat} {
		w.rules.WithLabelValues(string(action))
	}
	w.fetchErrs.WithLabelValues("NoSpace")
	for _, phase := range phases {
		w.phases.WithLabelValues(string(phase))
	}
	return w
}

// count counts HTCWorkflows as they come, change and go.
func (w workflows) count() cache.ResourceEventHandler {
	return counted(w.phases, w.waits, func(flow *v1alpha1.HTCWorkflow) (v1alpha1.Phase, waiter) {
		return flow.Status.Phase, waiterOfWorkflow(flow)
	})
}

// collect shows what is looked up.
func (w workflows) collect(gauge func(*prometheus.Desc, float64, ...string), c ledger.NodeCounts) {
	for state, n := range map[string]int{
		"waiting": c.Active - c.Idle - c.Running - c.Held, "idle": c.Idle, "running": c.Running, "held": c.Held,
		"done": c.Succeeded, "failed": c.Failed, "futile": c.Futile,
	} {
		gauge(w.nodes, float64(n), state)
	}
}

// WorkflowsWatched records the apiserver's answers to the informer of the HTCWorkflows.
func (m *Metrics) WorkflowsWatched(err error) {
	m.workflows.watched.WithLabelValues().Set(number(err == nil))
}

// NodesPassed implements workflow.Observer.
func (m *Metrics) NodesPassed(pass string, endpoint schedd.Endpoint, err error) {
	result := ok
	if err != nil {
		result = failed
	}
	m.workflows.passes.WithLabelValues(pass, endpointName(endpoint), result).Inc()
}

// DAGSubmitted implements workflow.Observer.
func (m *Metrics) DAGSubmitted(nodes int) {
	m.workflows.dags.WithLabelValues().Inc()
	m.workflows.sent.WithLabelValues().Add(float64(nodes))
}

// RuleActed implements workflow.Observer.
func (m *Metrics) RuleActed(action v1alpha1.RuleAction) {
	m.workflows.rules.WithLabelValues(string(action)).Inc()
}

// NodesFetched implements workflow.Observer.
func (m *Metrics) NodesFetched(nodes int) { m.workflows.fetched.WithLabelValues().Add(float64(nodes)) }

// NodeFetchFailed implements workflow.Observer.
func (m *Metrics) NodeFetchFailed(reason string) { m.workflows.fetchErrs.WithLabelValues(reason).Inc() }
