package metrics

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/job"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Metrics are all metrics of an htcd. Its methods may be called concurrently.
type Metrics struct {
	registry *prometheus.Registry
	families []family

	leader       *prometheus.GaugeVec
	htcjobs      *prometheus.GaugeVec
	watched      *prometheus.GaugeVec
	submissions  *prometheus.CounterVec
	submitTime   *prometheus.HistogramVec
	submitted    *prometheus.CounterVec
	callbacks    *prometheus.CounterVec
	callbackTime *prometheus.HistogramVec
	unanswered   *prometheus.CounterVec
	passes       *prometheus.CounterVec
	passTime     *prometheus.HistogramVec
	passSuccess  *prometheus.GaugeVec
	feedUsed     *prometheus.GaugeVec
	feedDiffers  *prometheus.CounterVec
	repairs      *prometheus.CounterVec
	unread       *prometheus.CounterVec
	used         *prometheus.CounterVec
	traces       *prometheus.CounterVec
	users        firstNames
	fetched      *prometheus.CounterVec
	fetchedBytes *prometheus.CounterVec
	fetchErrors  *prometheus.CounterVec
	pushed       *prometheus.CounterVec
	pushedBytes  *prometheus.CounterVec
	pushErrors   *prometheus.CounterVec
	commands     *prometheus.CounterVec
	commandTime  *prometheus.HistogramVec
	ticketAsks   *prometheus.CounterVec
	writes       *prometheus.CounterVec
	writeTime    *prometheus.HistogramVec

	statusWrites *prometheus.CounterVec

	tickets *tickets
	waits   *waits
	work    workDescs

	workflows workflows
	pools     poolDescs
}

// Buckets in seconds: for waits for HTCondor, and for waits for the disk.
var (
	slow = []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
	fast = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 20}
)

// Build identifies this htcd.
type Build struct{ Version, Go string }

// New returns the metrics of one htcd in their initial state: what has not happened yet is shown as 0, so that the
// first time appears as an increase.
func New(build Build) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)

	m.gauges("build_info", "1; the version of this htcd", "version", "goversion").
		WithLabelValues(build.Version, build.Go).Set(1)
	m.leader = m.gauges("leader", "1 while this htcd is the active one, else 0")
	m.leader.WithLabelValues().Set(0)

	m.htcjobs = m.gauges("htcjobs", "HTCJobs, by `phase` of their status; only the active htcd counts", "phase")
	m.watched = m.gauges(
		"htcjobs_watched",
		"1 when the apiserver last let htcd list or watch the HTCJobs, 0 when it refused or did not answer: changes made meanwhile are not seen",
	)
	m.work.procs = m.lookedUp(
		"procs",
		"jobs of all HTCJobs, by `state`: `unknown` (sent, the schedd has not been asked yet), `idle`, `running`, `held`, `succeeded`, `failed`",
		"state",
	)
	m.work.namespaces = m.lookedUp(
		"namespace_jobs",
		"jobs that have not ended of the HTCJobs of a `namespace`, by the `pool` that they were sent by (`_none`: by none) and by `state`: `idle` (also not seen yet), `running`, `held`; the 100 such places with most of them, the rest together as `_other`",
		"namespace",
		"pool",
		"state",
	)
	m.work.openRuns = m.lookedUp(
		"open_runs",
		"submitted HTCJobs, and DAGs of HTCWorkflows, whose end HTCondor has not confirmed, by `schedd`",
		"schedd",
	)
	m.work.openChecked = m.lookedUp(
		"open_runs_checked_timestamp_seconds",
		"when a cross-check last had an answer about the open run that has waited longest for an answer (else its submission), as Unix time",
		"schedd",
	)
	m.work.missing = m.lookedUp(
		"missing_jobs",
		"jobs that neither queue nor history of the `schedd` shows any more, and that are not called lost yet because there is reason to doubt it",
		"schedd",
	)
	m.work.reachable = m.lookedUp(
		"schedd_reachable",
		"1 when the schedd answered when last asked, 0 when it did not, or for the schedd `usual` while its name cannot be determined",
		"schedd",
	)

	m.work.commands = m.lookedUp(
		"schedd_commands_at_once",
		"commands of HTCondor that may run at once at the `schedd` now: fewer than --schedd-commands while it is busy",
		"schedd",
	)

	m.pools = poolDescs{
		jobs: m.lookedUp(
			"pool_jobs",
			"jobs of an HTCPool that have not ended, by `state`: `idle` (also not seen yet), `running`, `held`",
			"pool",
			"state",
		),
		open: m.lookedUp(
			"pool_open_jobs",
			"the same by `namespace`: the first 20 of each `pool`, the rest together as `_other`",
			"pool",
			"namespace",
		),
		waiting: m.lookedUp(
			"pool_waiting_htcjobs",
			"HTCJobs that wait to be sent by the `pool`, by `namespace` as before",
			"pool",
			"namespace",
		),
		most:      m.lookedUp("pool_max_open_jobs", "`limits.maxOpen` of the `pool`, if it has one", "pool"),
		accepting: m.lookedUp("pool_accepting", "1 while HTCJobs are sent by the `pool`, else 0", "pool"),
		blocked: m.lookedUp(
			"pool_not_accepting",
			"1 while nothing is sent by the `pool`, by `reason` of its condition Accepting",
			"pool",
			"reason",
		),
	}
	m.waits = newWaits(m.lookedUp(
		"waiting_htcjobs",
		"HTCJobs in phase Pending or Submitting, by `reason` of the first of the conditions Credentials, BackendReachable and Submitted that is not True; `NoStatus`: no status yet; `Other`: another reason",
		"reason",
	), m.lookedUp(
		"waiting_since_timestamp_seconds",
		"when the longest wait among them began, as Unix time; after a limit, a wait for another HTCJob (`HTCJobNotEnded`, `HTCJobFailed`) or for others' artifacts (`ArtifactWaits`), it counts from when that is over",
		"reason",
	))
	m.statusWrites = m.counters(
		"status_writes_total",
		"writes of the statuses of HTCJobs, HTCWorkflows and HTCPools, by `result`: `OK`, the apiserver's reason for a refusal (`Forbidden`, `Invalid`, `TooLarge`, `Conflict`, and `NotFound`, which is no fault), else `Error`; failed writes are repeated",
		"result",
	)
	for _, result := range []string{ok, failed, "Forbidden", "Invalid", "TooLarge", "Conflict", "NotFound"} {
		m.statusWrites.WithLabelValues(result)
	}

	m.workflows = m.newWorkflows()

	m.submissions = m.counters(
		"submissions_total",
		"calls of condor_submit, by `result`: `OK`, or the kind of error as in the HTCJob's conditions",
		"result",
	)
	for kind := condor.Unknown; kind <= condor.Limit; kind++ {
		m.submissions.WithLabelValues(kind.String())
	}
	m.submissions.WithLabelValues(ok)
	m.submitTime = m.histograms("submission_duration_seconds", "how long condor_submit took, whatever its result", slow)
	m.submitTime.WithLabelValues()
	m.submitted = m.counters("submitted_procs_total", "jobs that were submitted")
	m.submitted.WithLabelValues()

	m.callbacks = m.counters(
		"callbacks_total",
		"answers to jobs' callbacks, by HTTP status `code`: 204 recorded, 401 without what could be a token, 403 another run's token, 404 no such job, 503 not recorded (the job tries again), other 4xx malformed",
		"code",
	)
	for _, code := range []int{204, 400, 401, 403, 404, 503} {
		m.callbacks.WithLabelValues(strconv.Itoa(code))
	}
	m.callbackTime = m.histograms(
		"callback_duration_seconds",
		"from a callback's arrival to its answer, durable in the ledger by then",
		fast,
	)
	m.callbackTime.WithLabelValues()
	m.unanswered = m.counters(
		"receiver_unanswered_connections_total",
		"connections to the receiver that ended without an answer, by `reason`: `no_request` (the TLS handshake failed, the header took too long, or it was a probe of the port), `displaced` (there were too many, and of the client with most it had waited longest), `refused` (there were too many, and its client had as many as any, just as new)",
		"reason",
	)
	for _, reason := range notify.Reasons {
		m.unanswered.WithLabelValues(string(reason))
	}

	m.passes = m.counters(
		"passes_total",
		"passes over the open runs of one schedd, by `pass` (`cross-check`, `refresh`, `hint`: of a feed, or `lost`: a look for what was called lost) and `result`: `OK` or `Error`",
		"pass",
		"result",
	)
	m.passTime = m.histograms("pass_duration_seconds", "how long such a pass took", slow, "pass")
	m.passSuccess = m.gauges(
		"pass_last_success_timestamp_seconds",
		"when such a pass last succeeded, as Unix time; there are no passes while no run is open",
		"pass",
		"schedd",
	)
	for _, pass := range crosscheck.Passes {
		m.passTime.WithLabelValues(pass)
		m.passes.WithLabelValues(pass, ok)
		m.passes.WithLabelValues(pass, failed)
	}
	m.feedUsed = m.gauges(
		"feed_used",
		"1 while the cross-check reads this schedd's feed (`--feed`), 0 while it runs condor_q and condor_history",
		"schedd",
	)
	m.feedDiffers = m.counters(
		"feed_differences_total",
		"jobs about which HTCondor and the schedd's feed disagreed, at most 20 at a time; HTCondor's answer is used",
		"schedd",
	)
	m.repairs = m.counters(
		"repairs_total",
		"repairs by the cross-check or after an interruption, by `kind`: see below",
		"kind",
	)
	for _, kind := range crosscheck.Repairs {
		m.repairs.WithLabelValues(string(kind))
	}

	m.unread = m.counters(
		"unread_ads_total",
		"times that a pass could not read the ad of a job and skipped that job; the HTCJob has an Event AdUnreadable",
	)
	m.unread.WithLabelValues()

	m.used = m.counters(
		"core_seconds_total",
		"for how long jobs had the cores that they had asked for, in their last execution, in seconds of one core, by `namespace`; counted when HTCondor has reported their end. The first 200 since the start, the rest together as `_other`",
		"namespace",
	)
	m.used.WithLabelValues(otherNamespaces)

	m.traces = m.counters(
		"traces_total",
		"traces of HTCJobs and HTCWorkflows that have ended (`--traces`), by `result`: `OK`, or `Lost` where the collector did not take one in a minute, or a thousand others waited",
		"result",
	)
	m.Traced(true, 0)
	m.Traced(false, 0)

	m.fetched = m.counters(
		"fetched_procs_total",
		"jobs whose output was fetched, by `result`: `OK`, or `GivenUp` if that is impossible",
		"result",
	)
	m.fetched.WithLabelValues(ok)
	m.fetched.WithLabelValues("GivenUp")
	m.fetchedBytes = m.counters("fetched_bytes_total", "bytes of output fetched")
	m.fetchedBytes.WithLabelValues()
	m.fetchErrors = m.counters(
		"fetch_errors_total",
		"failed fetches, which are repeated, by `reason` as in the condition OutputFetched",
		"reason",
	)
	m.fetchErrors.WithLabelValues("NoSpace")
	m.pushed = m.counters("pushed_artifacts_total", "outputs that were pushed to a registry")
	m.pushed.WithLabelValues()
	m.pushedBytes = m.counters("pushed_bytes_total", "bytes of their files")
	m.pushedBytes.WithLabelValues()
	m.pushErrors = m.counters(
		"push_errors_total",
		"failed pushes, which are repeated, by `reason` as in the condition OutputsPushed",
		"reason",
	)
	m.pushErrors.WithLabelValues("RegistryUnreachable")
	m.work.unfetched = m.lookedUp("unfetched_procs", "completed jobs whose output is still to be fetched")

	m.work.orphans = m.lookedUp(
		"orphans_kept",
		"HTCJobs and HTCWorkflows that vanished many at once without having been deleted, and whose jobs and output are kept until `htcd reconcile --once --remove-orphans`",
	)

	m.work.credentials = m.lookedUp(
		"job_credentials",
		"HTCJobs with active jobs, and HTCWorkflows with active nodes, that have credentials, by `state`: `fresh`, `ending` (a proxy within an hour, a token within 5 minutes), `ended`, or `unusable` (a Secret that is missing or cannot be used)",
		"state",
	)
	m.work.queues = m.lookedUp(
		"queue_depth",
		"HTCJobs that wait for a worker, by `queue`: `changed`, `ended` and `routine` (to be synced), `submit`, `ask`, `remove`, `delete`, `check` (for a command of HTCondor), `fetch`, `push` (to a registry), `logs` (for the Pod of `spec.logsPod`)",
		"queue",
	)

	program := []string{"program"}
	m.registry.MustRegister(
		starts{
			prometheus.NewDesc(
				m.note("counter", "program_starts_total", startsHelp, program),
				startsHelp,
				program,
				nil,
			),
		},
	)
	m.commands = m.counters(
		"condor_commands_total",
		"runs of HTCondor's commands, by `command` and `result`: `OK`, or the kind of error",
		"command",
		"result",
	)
	m.commandTime = m.histograms(
		"condor_command_duration_seconds",
		"how long they took, whatever their result",
		slow,
		"command",
	)
	m.ticketAsks = m.counters(
		"ticket_requests_total",
		"requests for a Kerberos ticket or a token, most of them served from a cache, by `result`: `OK`, or the reason as in the condition Credentials",
		"result",
	)
	m.ticketAsks.WithLabelValues(ok)
	m.tickets = &tickets{now: time.Now, m: map[string]ticket{}, usable: m.lookedUp(
		"secret_usable",
		"1 when a `secret` (namespace/name) currently gives a Kerberos ticket, or holds a token that has not expired; 0 when it does not, or does not exist; only Secrets that were needed in the last 15 minutes",
		"secret",
	), ends: m.lookedUp(
		"ticket_expiry_timestamp_seconds",
		"expiry of the Kerberos ticket or the token of such a `secret`, as Unix time; absent while it is not usable, or if it never expires",
		"secret",
	)}
	m.registry.MustRegister(m.tickets)

	m.writes = m.counters(
		"ledger_writes_total",
		"transactions that write the ledger, by `result`: `OK`, `Rejected` (by the caller: no fault), `TimedOut`, `Unavailable` (full, read-only, locked), `Damaged`",
		"result",
	)
	for _, result := range []string{ok, "Rejected", "TimedOut", "Unavailable", "Damaged"} {
		m.writes.WithLabelValues(result)
	}
	m.writeTime = m.histograms(
		"ledger_write_duration_seconds",
		"from the beginning of a write until it is durable; writes share commits",
		fast,
	)
	m.writeTime.WithLabelValues()
	m.work.ledgerSize = m.lookedUp("ledger_size_bytes", "size of the ledger's file")
	m.work.ledgerFree = m.lookedUp(
		"ledger_free_bytes",
		"what of it is free: used again first, and beyond 4 MiB and a quarter of the file given back to the volume",
	)
	m.work.free = m.lookedUp("volume_free_bytes", "free space for htcd on the volume of --data")
	m.work.size = m.lookedUp("volume_size_bytes", "size of the volume of --data")
	m.work.keepFree = m.lookedUp(
		"volume_keep_free_bytes",
		"space that output leaves free there (--keep-free): with less, nothing is fetched",
	)
	m.work.freeFiles = m.lookedUp(
		"volume_free_files",
		"how many more files the volume of --data has room for; absent where its file system does not bound them",
	)
	m.work.keepFreeFiles = m.lookedUp(
		"volume_keep_free_files",
		"how many of them output leaves: with fewer, nothing is fetched",
	)
	m.work.errors = m.counters(
		"scrape_errors_total",
		"times that the ledger or the volume could not be read for these metrics",
	)
	m.work.errors.WithLabelValues()
	return m
}

// ok and failed are values of the label result.
const (
	ok     = "OK"
	failed = "Error"
)

// maxScrapes is how many are answered at once: scrapes that hang on an absent volume do not pile up.
const maxScrapes = 4

// Handler answers Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(
		m.registry,
		promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, ErrorHandling: promhttp.ContinueOnError},
	)
}

// Leading sets whether this htcd is the active one.
func (m *Metrics) Leading(is bool) {
	m.leader.WithLabelValues().Set(number(is))
}

// Watched records the apiserver's answers to the informer of the HTCJobs.
func (m *Metrics) Watched(err error) { m.watched.WithLabelValues().Set(number(err == nil)) }

// number is a boolean as metrics have it.
func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// Callback is for notify.Options.
func (m *Metrics) Callback(status int, took time.Duration) {
	m.callbacks.WithLabelValues(strconv.Itoa(status)).Inc()
	m.callbackTime.WithLabelValues().Observe(took.Seconds())
}

// Unanswered is for notify.Limit.
func (m *Metrics) Unanswered(why notify.Unanswered) { m.unanswered.WithLabelValues(string(why)).Inc() }

// Command is for schedd.Options.
func (m *Metrics) Command(command string, took time.Duration, err error) {
	m.commands.WithLabelValues(command, kindOf(err)).Inc()
	m.commandTime.WithLabelValues(command).Observe(took.Seconds())
}

// kindOf is the result of a question to HTCondor.
func kindOf(err error) string {
	if err == nil {
		return ok
	}
	return condor.KindOf(err).String()
}

var _ job.Observer = (*Metrics)(nil)

func (m *Metrics) Repaired(kind crosscheck.Repair, times int) {
	m.repairs.WithLabelValues(string(kind)).Add(float64(times))
}

// Feed says whether a schedd's feed is used.
func (m *Metrics) Feed(endpoint schedd.Endpoint, used bool) {
	value := 0.0
	if used {
		value = 1
	}
	m.feedUsed.WithLabelValues(endpointName(endpoint)).Set(value)
	m.feedDiffers.WithLabelValues(endpointName(endpoint)).Add(0)
}

// FeedDiffers counts jobs of which a schedd's feed was wrong.
func (m *Metrics) FeedDiffers(endpoint schedd.Endpoint, jobs int) {
	m.feedDiffers.WithLabelValues(endpointName(endpoint)).Add(float64(jobs))
}

func (m *Metrics) Passed(pass string, endpoint schedd.Endpoint, took time.Duration, err error) {
	m.passTime.WithLabelValues(pass).Observe(took.Seconds())
	if err != nil {
		m.passes.WithLabelValues(pass, failed).Inc()
		return
	}
	m.passes.WithLabelValues(pass, ok).Inc()
	m.passSuccess.WithLabelValues(pass, endpointName(endpoint)).SetToCurrentTime()
}

func (m *Metrics) Used(namespace string, coreSeconds int64) {
	if coreSeconds > 0 {
		m.used.WithLabelValues(m.users.of(namespace)).Add(float64(coreSeconds))
	}
}

func (m *Metrics) Unread(jobs int) { m.unread.WithLabelValues().Add(float64(jobs)) }

func (m *Metrics) Fetched(procs int, bytes int64) {
	m.fetched.WithLabelValues(ok).Add(float64(procs))
	m.fetchedBytes.WithLabelValues().Add(float64(bytes))
}

func (m *Metrics) GaveUp(procs int) { m.fetched.WithLabelValues("GivenUp").Add(float64(procs)) }

func (m *Metrics) FetchFailed(reason string) { m.fetchErrors.WithLabelValues(reason).Inc() }

func (m *Metrics) Pushed(bytes int64) {
	m.pushed.WithLabelValues().Inc()
	m.pushedBytes.WithLabelValues().Add(float64(bytes))
}

func (m *Metrics) PushFailed(reason string) { m.pushErrors.WithLabelValues(reason).Inc() }

// endpointName is a schedd as a label: with the collector if that is not the usual one, "usual" while its name is
// unknown.
func endpointName(e schedd.Endpoint) string {
	name := cmp.Or(e.Schedd, "usual")
	if e.Collector != "" {
		name = e.Collector + "/" + name
	}
	return name
}
