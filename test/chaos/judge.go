package chaos

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// Fault is a kind of finding: one column of the table.
type Fault string

// The faults.
const (
	Doubled  Fault = "doubled"   // more than one cluster for a run, or more runs than specs
	Lost     Fault = "lost"      // no cluster, no object, or never ended
	Wrong    Fault = "wrong"     // the status is not what HTCondor says
	LeftOver Fault = "left over" // something of it remains that should be gone
)

// Finding is one violation.
type Finding struct {
	Fault Fault
	Trial string
	Shape string
	What  string
}

// Evidence is everything found after all had settled.
type Evidence struct {
	Sent    []Sent
	Objects map[string]v1alpha1.HTCJob // by UID
	Ads     []Ad
	Runs    []Run
	Rows    []Row
	Staged  []string // names of the directories, UID-ATTEMPT
	// Kept has the contents of the files that htcd has fetched, by NAME/ATTEMPT/PROC/FILE. It is nil until all have
	// settled.
	Kept map[string]string
}

// Sent records what was done with a trial.
type Sent struct {
	Trial   Trial
	UID     string
	Edited  bool // the apiserver accepted the edit
	Deleted bool
}

// shapes returns the shape of each trial.
func (e Evidence) shapes() (names []string) {
	for _, s := range e.Sent {
		names = append(names, s.Trial.Shape.Name)
	}
	return names
}

// spec returns what the HTCJob finally runs.
func (s Sent) spec() Spec {
	if s.Edited {
		return *s.Trial.Shape.Edited
	}
	return s.Trial.Shape.Spec
}

// Ad is one job as condor_q or condor_history shows it.
type Ad struct {
	Queued        bool   `json:"-"`
	ClusterID     int    `json:"ClusterId"`
	ProcID        int    `json:"ProcId"`
	JobStatus     int    `json:"JobStatus"`
	LastJobStatus int    `json:"LastJobStatus"`
	ExitBySignal  *bool  `json:"ExitBySignal"`
	ExitCode      *int   `json:"ExitCode"`
	NumJobStarts  int    `json:"NumJobStarts"`
	RemoveReason  string `json:"RemoveReason"`
	HoldReason    string `json:"HoldReason"`
	UID           string `json:"HTCJobUID"`
	Attempt       int    `json:"HTCJobAttempt"`
	Own           *int   `json:"HTCJobProc"`
	Launcher      bool   `json:"HTCJobLauncher"` // it hands over a factory of the others

	// Of a workflow's node.
	Workflow string `json:"HTCWorkflowUID"`
	DAG      int    `json:"HTCWorkflowDAG"`
	Node     int    `json:"HTCNode"`
}

// HTCondor's numbers of JobStatus.
const (
	removed   = 3
	completed = 4
)

// number returns the job's number in its HTCJob.
func (a Ad) number() int {
	if a.Own != nil {
		return *a.Own
	}
	return a.ProcID
}

func (a Ad) done() bool {
	return a.JobStatus == completed || a.JobStatus == removed && a.LastJobStatus == completed
}

func (a Ad) alive() bool { return a.Queued && a.JobStatus != removed && a.JobStatus != completed }

// halfSpooled reports whether the job's files never arrived, so that it does not represent a run, unless it was started
// all the same.
func (a Ad) halfSpooled() bool {
	return a.JobStatus == removed && a.NumJobStarts == 0 &&
		(strings.HasPrefix(a.RemoveReason, "Staging of job files failed") || strings.HasPrefix(a.RemoveReason, "htcd: never completely spooled"))
}

// The ledger's status column.
const (
	rowOpen      = 1
	rowSucceeded = 4
	rowFailed    = 7
)

// status returns what the ledger must say about the job.
func (a Ad) status(success int) int {
	switch {
	case a.done() && a.ExitBySignal != nil && !*a.ExitBySignal && a.ExitCode != nil && *a.ExitCode == success:
		return rowSucceeded
	case a.done(), a.JobStatus == removed:
		return rowFailed
	}
	return rowOpen
}

func (a Ad) String() string {
	code := "none"
	if a.ExitCode != nil {
		code = fmt.Sprint(*a.ExitCode)
	}
	place := "history"
	if a.Queued {
		place = "queue"
	}
	return fmt.Sprintf(
		"%d.%d attempt %d in the %s: status %d, last %d, exit code %s, starts %d, %q %q",
		a.ClusterID,
		a.ProcID,
		a.Attempt,
		place,
		a.JobStatus,
		a.LastJobStatus,
		code,
		a.NumJobStarts,
		a.RemoveReason,
		a.HoldReason,
	)
}

// Run is a row of the ledger's table runs.
type Run struct {
	UID        string `json:"uid"`
	Attempt    int    `json:"attempt"`
	Generation int64  `json:"generation"`
	State      string `json:"state"`
	Cluster    int    `json:"cluster"`
}

// Row is a row of the ledger's table htcjobs.
type Row struct {
	UID     string `json:"uid"`
	Attempt int    `json:"attempt"`
	Proc    int    `json:"proc"`
	Status  int    `json:"status"`
	Reason  string `json:"reason"`
	Source  string `json:"source"`
}

// Judge compares every trial with what HTCondor says about it.
func Judge(e Evidence) []Finding {
	var findings []Finding
	mine := map[string]bool{}
	for _, s := range e.Sent {
		mine[s.UID] = true
		findings = append(findings, (&trialOf{Sent: s, e: e}).judge()...)
	}
	add := func(uid, what string) {
		if !mine[uid] {
			findings = append(findings, Finding{LeftOver, uid, "none of the trials", what})
		}
	}
	for _, r := range e.Runs {
		add(r.UID, fmt.Sprintf("run of attempt %d", r.Attempt))
	}
	for _, ad := range e.Ads {
		add(ad.UID, ad.String())
	}
	return findings
}

// trialOf is one trial as the rules are applied to it.
type trialOf struct {
	Sent
	e        Evidence
	findings []Finding
}

func (t *trialOf) find(f Fault, format string, args ...any) {
	t.findings = append(t.findings, Finding{f, t.Trial.Name, t.Trial.Shape.Name, fmt.Sprintf(format, args...)})
}

// judge applies the rules, in order.
func (t *trialOf) judge() []Finding {
	whole := t.wholeClusters()
	t.launchers()
	t.doubled(whole)
	if t.Deleted {
		t.gone()
		return t.findings
	}
	job, found := t.e.Objects[t.UID]
	switch {
	case !found:
		t.find(Lost, "the object is gone though nobody deleted it")
		return t.findings
	case job.DeletionTimestamp != nil:
		t.find(LeftOver, "the object is being deleted though nobody asked for that")
	case hour(job.Status.Conditions):
		return t.findings
	case !job.Status.Phase.Terminal():
		t.find(
			Lost,
			"never ended: phase %s, attempt %d, %+v",
			job.Status.Phase,
			job.Status.Attempt,
			job.Status.Conditions,
		)
		return t.findings
	case job.Status.ObservedGeneration != job.Generation:
		t.find(
			Lost,
			"generation %d was never run; the status speaks of %d",
			job.Generation,
			job.Status.ObservedGeneration,
		)
		return t.findings
	case job.Status.Rerun != job.Rerun():
		t.find(Lost, "what has failed was to run again, and has not")
		return t.findings
	}
	t.alive()
	if t.spec().refused() {
		t.refused(job)
		return t.findings
	}
	cluster, clusters := int(job.Status.ClusterID), whole[int(job.Status.Attempt)]
	switch {
	case len(clusters) == 0:
		t.find(
			Lost,
			"no cluster of attempt %d, which is said to be %s as %d",
			job.Status.Attempt,
			job.Status.Phase,
			cluster,
		)
		return t.findings
	case !slices.Contains(clusters, cluster):
		t.find(Wrong, "the status says cluster %d, HTCondor has %v", cluster, clusters)
		return t.findings
	}
	t.compare(job, cluster)
	return t.findings
}

// wholeClusters returns the clusters that represent a run, by attempt.
func (t *trialOf) wholeClusters() map[int][]int {
	whole := map[int][]int{}
	for _, ad := range t.e.Ads {
		if ad.UID == t.UID && !ad.Launcher && !ad.halfSpooled() && !slices.Contains(whole[ad.Attempt], ad.ClusterID) {
			whole[ad.Attempt] = append(whole[ad.Attempt], ad.ClusterID)
		}
	}
	return whole
}

// launchers checks that each attempt has at most one.
func (t *trialOf) launchers() {
	of := map[int]int{}
	for _, ad := range t.e.Ads {
		if ad.UID != t.UID || !ad.Launcher || ad.halfSpooled() {
			continue
		}
		if other := of[ad.Attempt]; other > 0 {
			t.find(Doubled, "attempt %d has the launchers %d and %d", ad.Attempt, other, ad.ClusterID)
		}
		of[ad.Attempt] = ad.ClusterID
	}
}

// doubled checks that each run has one cluster, and each spec one run, or two if the first was suspended or some of its
// jobs run again: otherwise another attempt could hide a doubled cluster.
func (t *trialOf) doubled(whole map[int][]int) {
	specs, clusters := 0, 0
	if !t.Trial.Shape.Spec.refused() {
		specs++
	}
	if t.Edited && !t.Trial.Shape.Edited.refused() || t.Trial.Shape.Paused || t.Trial.Shape.Again {
		specs++
	}
	for attempt, ids := range whole {
		clusters += len(ids)
		if len(ids) > 1 {
			slices.Sort(ids)
			t.find(Doubled, "attempt %d is clusters %v", attempt, ids)
		}
	}
	if clusters > specs && len(t.findings) == 0 {
		t.find(Doubled, "%d clusters for %d descriptions: %v", clusters, specs, whole)
	}
}

// gone checks that nothing of a deleted HTCJob remains.
func (t *trialOf) gone() {
	if job, found := t.e.Objects[t.UID]; found {
		t.find(LeftOver, "the object: finalizers %v, %+v", job.Finalizers, job.Status.Conditions)
	}
	for _, r := range t.e.Runs {
		if r.UID == t.UID {
			t.find(LeftOver, "run of attempt %d, %s", r.Attempt, r.State)
		}
	}
	for _, r := range t.e.Rows {
		if r.UID == t.UID {
			t.find(LeftOver, "row of proc %d of attempt %d", r.Proc, r.Attempt)
		}
	}
	for _, dir := range t.e.Staged {
		if strings.HasPrefix(dir, t.UID) {
			t.find(LeftOver, "staged directory %s", dir)
		}
	}
	for _, ad := range t.e.Ads {
		if ad.UID == t.UID && ad.Queued {
			t.find(LeftOver, "job %s", ad)
		}
	}
}

// alive checks that no job of an ended HTCJob is still active.
func (t *trialOf) alive() {
	for _, ad := range t.e.Ads {
		if ad.UID == t.UID && ad.alive() {
			t.find(LeftOver, "the HTCJob has ended, but not job %s", ad)
		}
	}
}

func (t *trialOf) refused(job v1alpha1.HTCJob) {
	if got, want := counts(job), fmt.Sprint([]int{0, 0, t.spec().Queue}); got != want ||
		job.Status.Phase != v1alpha1.PhaseFailed {
		t.find(Wrong, "refused, but %s %s instead of %s", job.Status.Phase, got, want)
	}
	for _, dir := range t.e.Staged {
		if strings.HasPrefix(dir, t.UID) {
			t.find(LeftOver, "staged directory %s of a refused HTCJob", dir)
		}
	}
}

// compare checks the ledger's rows and the object against the ads, proc by proc, and the ads against what the script
// does.
func (t *trialOf) compare(job v1alpha1.HTCJob, cluster int) {
	spec, attempt := t.spec(), int(job.Status.Attempt)
	ads, sent := t.newest(attempt, cluster)
	if job.Rerun() != "" {
		t.onlyFailed(sent)
	}
	rows := map[int]Row{}
	for _, r := range t.e.Rows {
		if r.UID == t.UID && r.Attempt == attempt {
			rows[r.Proc] = r
		}
	}
	if got, want := fmt.Sprint(job.Status.JobID), fmt.Sprint(v1alpha1.JobIDs(cluster, len(sent))); got != want {
		t.find(Wrong, "the status lists jobs %s instead of %s", got, want)
	}
	if len(ads) != spec.Queue || len(rows) != spec.Queue {
		t.find(Wrong, "%d ads and %d rows instead of %d", len(ads), len(rows), spec.Queue)
	}
	succeeded, failed := 0, 0
	for proc, ad := range ads {
		is := ad.status(spec.Success)
		switch is {
		case rowSucceeded:
			succeeded++
		case rowFailed:
			failed++
		}
		if row := rows[proc]; row.Status != is {
			t.find(
				Wrong,
				"proc %d has status %d (%s, by %s) instead of %d; job %s",
				proc,
				row.Status,
				row.Reason,
				row.Source,
				is,
				ad,
			)
		}
		if ad.halfSpooled() { // the schedd was killed before it had marked all procs of the cluster as spooled
			if reason := rows[proc].Reason; reason != "StagingFailed" {
				t.find(Wrong, "proc %d is failed as %s instead of StagingFailed; job %s", proc, reason, ad)
			}
			continue
		}
		if proc < len(spec.Codes) && (!ad.done() || ad.ExitCode == nil || *ad.ExitCode != spec.Codes[proc]) {
			t.find(Wrong, "the script of proc %d exits with %d, but job %s", proc, spec.Codes[proc], ad)
		}
	}
	for proc := range spec.Queue {
		if ad, found := ads[proc]; !found || !ad.halfSpooled() {
			t.kept(job, proc)
		}
	}
	phase := v1alpha1.PhaseSucceeded
	if failed > 0 {
		phase = v1alpha1.PhaseFailed
	}
	if got, want := counts(job), fmt.Sprint([]int{0, succeeded, failed}); got != want || job.Status.Phase != phase {
		t.find(Wrong, "the status says %s %s instead of %s %s", job.Status.Phase, got, phase, want)
	}
}

// kept checks what was fetched against what the script leaves.
func (t *trialOf) kept(job v1alpha1.HTCJob, proc int) {
	if t.e.Kept == nil {
		return
	}
	fetched := meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionOutputFetched)
	for _, leaf := range t.spec().Leaves {
		text, found := t.e.Kept[fmt.Sprintf("%s/%d/%d/%s", t.Trial.Name, job.Status.Attempt, proc, leaf.Name)]
		switch {
		case found && (text == leaf.Text || leaf.Begins && strings.HasPrefix(text, leaf.Text)):
		case !found:
			t.find(Lost, "the file %q of proc %d; OutputFetched is %+v", leaf.Name, proc, fetched)
		default:
			t.find(
				Wrong,
				"the file %q of proc %d has %d bytes instead of %d",
				leaf.Name,
				proc,
				len(text),
				len(leaf.Text),
			)
		}
	}
}

func counts(job v1alpha1.HTCJob) string {
	return fmt.Sprint([]int32{job.Status.Active, job.Status.Succeeded, job.Status.Failed})
}
