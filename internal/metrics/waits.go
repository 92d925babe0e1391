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

// waits knows which HTCJobs wait to be sent, since when, and why. A rerun or a resumed HTCJob waits since then, not
// since its creation; one that waited at a limit, or for its turn to fetch artifacts, waits for htcd only since there
// is room, and one that waited for another HTCJob since that has ended.
type waits struct {
	count, since *prometheus.Desc
	now          func() time.Time

	mu sync.Mutex
	m  map[string]wait // by namespace/name
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

// waitOf is why an HTCJob waits to be sent; empty: it does not.
func waitOf(job *v1alpha1.HTCJob) (reason string) {
	phase := job.Status.Phase
	if job.DeletionTimestamp != nil ||
		phase != "" && phase != v1alpha1.PhasePending && phase != v1alpha1.PhaseSubmitting {
		return ""
	}
	for _, kind := range []string{v1alpha1.ConditionCredentials, v1alpha1.ConditionBackendReachable,
		v1alpha1.ConditionSubmitted} {
		switch c := meta.FindStatusCondition(job.Status.Conditions, kind); {
		case c == nil || c.Status == metav1.ConditionTrue:
		case slices.Contains(waitReasons, c.Reason):
			return c.Reason
		default:
			return otherReason
		}
	}
	return noStatus
}

// seen records the present state of an HTCJob.
func (w *waits) seen(key string, job *v1alpha1.HTCJob) {
	reason := waitOf(job)
	w.mu.Lock()
	defer w.mu.Unlock()
	before, waited := w.m[key]
	switch {
	case reason == "":
		delete(w.m, key)
		return
	case !waited:
		before.since = waitsSince(job)
	case slices.Contains(limited, before.reason) && !slices.Contains(limited, reason):
		before.since = w.now()
	}
	w.m[key] = wait{reason, before.since}
}

// waitsSince is when a previously unknown HTCJob began to wait, judged by its own status.
func waitsSince(job *v1alpha1.HTCJob) time.Time {
	since := job.CreationTimestamp.Time
	for _, kind := range []string{v1alpha1.ConditionSubmitted, v1alpha1.ConditionSuspended} {
		if c := meta.FindStatusCondition(job.Status.Conditions, kind); c != nil && c.LastTransitionTime.After(since) {
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
