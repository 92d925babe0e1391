package metrics

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// waits knows which HTCJobs, or HTCWorkflows, wait to be sent, since when, and why. A rerun or a resumed one waits
// since then, not since its creation; one that waited at a limit, or for its turn to fetch artifacts, waits for htcd
// only since there is room, and one that waited for another HTCJob since that has ended.
type waits struct {
	count, since *prometheus.Desc
	now          func() time.Time

	mu sync.Mutex
	m  map[string]wait // by namespace/name
}

func newWaits(count, since *prometheus.Desc) *waits {
	return &waits{count: count, since: since, now: time.Now, m: map[string]wait{}}
}

type wait struct {
	reason string
	since  time.Time
}

// waitReasons are the values of the label: the reasons of the conditions that explain a wait. Any other reason is
// otherReason.
var waitReasons = []string{
	"Waiting",
	"AskingSchedd",
	"Retrying",
	"NoSpace",
	"LedgerUnavailable",
	"OrphansKept",
	"NamespaceLimit",
	"PoolLimit",
	"PoolDraining",
	"PoolSuspended",
	"LimitReached",
	"HTCJobNotEnded",
	"HTCJobFailed",
	"HTCJobNotFound",
	"ConfigMapNotFound",
	"ConfigMapForbidden",
	"ConfigMapKeyNotFound",
	"UploadNotFound",
	"Fetching",
	"ArtifactWaits",
	"ArtifactLate",
	"ArtifactNotFound",
	"ArtifactForbidden",
	"ArtifactUnsuitable",
	"RegistryUnreachable",
	"OutputAwaited",
	"SecretNotFound",
	"SecretNotMarked",
	"SecretKeyNotFound",
	"SecretTooLarge",
	"SecretForbidden",
	"SecretOfAccount",
	"CredentialUnusable",
	"CredentialEnded",
	"PoolMissing",
	"PoolNotAllowed",
	"PoolInvalid",
	"Launching",
	"LauncherHeld",
	"LauncherNotStarted",
	"NotAuthorised",
	"Unreachable",
	"Timeout",
	"Credentials",
	"SecretMissing",
	"SecretUnreadable",
	"SecretBeingDeleted",
	"InvalidCredential",
	"TokenExpired",
	"BadPassword",
	"UnknownPrincipal",
	"AccountExpired",
	"KDCUnreachable",
	"RealmNotAllowed",
	"OtherAccount",
	"Unknown",
}

const (
	noStatus    = "NoStatus" // nothing was ever written
	otherReason = "Other"
)

// limited are the reasons of HTCJobs that a limit, an administrator or another HTCJob keeps back: no fault. The alert
// HTCdHTCJobsNotSent leaves out the same.
var limited = []string{
	"NamespaceLimit", "PoolLimit", "PoolDraining", "PoolSuspended", "LimitReached", "HTCJobNotEnded", "HTCJobFailed",
	"ArtifactWaits",
}

// waiter is what says whether, and why, an object waits to be sent.
type waiter struct {
	waits      bool
	created    time.Time
	conditions []metav1.Condition
}

func waiterOf(job *v1alpha1.HTCJob) waiter {
	phase := job.Status.Phase
	waits := phase == "" || phase == v1alpha1.PhasePending || phase == v1alpha1.PhaseSubmitting
	return waiter{waits && job.DeletionTimestamp == nil, job.CreationTimestamp.Time, job.Status.Conditions}
}

// waiterOfWorkflow waits with its first DAG or with a further one, whatever its phase says of the earlier ones.
func waiterOfWorkflow(w *v1alpha1.HTCWorkflow) waiter {
	phase := w.Status.Phase
	waits := !phase.Terminal() && phase != v1alpha1.PhaseSuspended &&
		!meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionSubmitted)
	return waiter{waits && w.DeletionTimestamp == nil, w.CreationTimestamp.Time, w.Status.Conditions}
}

// why is the reason of the wait; empty: there is none.
func (w waiter) why() (reason string) {
	if !w.waits {
		return ""
	}
	for _, kind := range []string{v1alpha1.ConditionCredentials, v1alpha1.ConditionBackendReachable,
		v1alpha1.ConditionSubmitted} {
		switch c := meta.FindStatusCondition(w.conditions, kind); {
		case c == nil || c.Status == metav1.ConditionTrue:
		case slices.Contains(waitReasons, c.Reason):
			return c.Reason
		default:
			return otherReason
		}
	}
	return noStatus
}

// seen records the present state of an object.
func (w *waits) seen(key string, now waiter) {
	reason := now.why()
	w.mu.Lock()
	defer w.mu.Unlock()
	before, waited := w.m[key]
	switch {
	case reason == "":
		delete(w.m, key)
		return
	case !waited:
		before.since = now.since()
	case slices.Contains(limited, before.reason) && !slices.Contains(limited, reason):
		before.since = w.now()
	}
	w.m[key] = wait{reason, before.since}
}

// since is when an object that was not known began to wait, judged by its own status.
func (w waiter) since() time.Time {
	since := w.created
	for _, kind := range []string{v1alpha1.ConditionSubmitted, v1alpha1.ConditionSuspended} {
		if c := meta.FindStatusCondition(w.conditions, kind); c != nil && c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
	}
	return since
}

func (w *waits) gone(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.m, key)
}

// Describe implements prometheus.Collector.
func (w *waits) Describe(descs chan<- *prometheus.Desc) { descs <- w.count; descs <- w.since }

// Collect implements prometheus.Collector.
func (w *waits) Collect(metrics chan<- prometheus.Metric) {
	count, oldest := map[string]int{"Waiting": 0}, map[string]time.Time{}
	w.mu.Lock()
	for _, wait := range w.m {
		count[wait.reason]++
		if o, is := oldest[wait.reason]; !is || wait.since.Before(o) {
			oldest[wait.reason] = wait.since
		}
	}
	w.mu.Unlock()
	for reason, n := range count {
		metrics <- prometheus.MustNewConstMetric(w.count, prometheus.GaugeValue, float64(n), reason)
	}
	for reason, since := range oldest {
		metrics <- prometheus.MustNewConstMetric(w.since, prometheus.GaugeValue, unix(since), reason)
	}
}
