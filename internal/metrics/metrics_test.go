package metrics

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/tool"
	"htc.cern.ch/htcd/internal/target/backend"
)

var update = flag.Bool("update", false, "rewrite docs/metrics.md")

const docs = "../../docs/metrics.md"

// The page is written by hand, except for the table between two marks.
func TestThePageListsEveryMetric(t *testing.T) {
	const begin, end = "<!-- from internal/metrics -->\n", "<!-- end -->\n"
	page, err := os.ReadFile(docs)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(page), begin)
	require.True(t, ok, begin)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok, end)
	want := before + begin + New(Build{}).Markdown() + end + after
	if *update {
		require.NoError(t, os.WriteFile(docs, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(page), "go test ./internal/metrics -update")
	for _, kind := range crosscheck.Repairs {
		require.Contains(t, after, "| `"+string(kind)+"` |")
	}
}

// page is what Prometheus is answered.
func page(t *testing.T, m *Metrics) string {
	t.Helper()
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, answer.Code)
	return answer.Body.String()
}

// value is one line of the page.
func value(t *testing.T, page, series string) string {
	t.Helper()
	for line := range strings.Lines(page) {
		if v, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func TestNamesFollowThePrometheusConventions(t *testing.T) {
	m := New(Build{Version: "v", Go: "go"})
	problems, err := testutil.GatherAndLint(m.registry)
	require.NoError(t, err)
	require.Empty(t, problems)
	for _, f := range m.families {
		require.Regexp(t, regexp.MustCompile(`^htcd_[a-z_]+$`), f.name)
		require.Equal(t, f.kind == "counter", strings.HasSuffix(f.name, "_total"), f.name)
		if !slices.Contains(f.labels, "pool") &&
			f.name != "htcd_core_seconds_total" { // there are at most 21 for each pool, and 201
			require.NotContains(t, f.labels, "namespace", "%s: grows with the users", f.name)
		}
		require.NotContains(t, f.labels, "name", f.name)
	}
}

func TestWhatHappensIsCounted(t *testing.T) {
	m := New(Build{Version: "v1", Go: "go1"})
	unreachable := &condor.Error{Kind: condor.Unreachable}
	m.Leading(true)
	require.Empty(t, value(t, page(t, m), "htcd_htcjobs_watched"), "one that stands by has not asked")
	m.Watched(nil)
	m.Watched(unreachable)
	m.Callback(204, time.Millisecond)
	m.Callback(413, time.Millisecond)
	m.Unanswered(notify.NoRequest)
	m.Command("condor_q", time.Second, nil)
	m.Command("condor_rm", time.Second, unreachable)
	m.Repaired(crosscheck.LostCallback, 1)
	m.Passed("cross-check", schedd.Endpoint{Schedd: "s"}, time.Second, nil)
	m.Passed("refresh", schedd.Endpoint{Collector: "c", Schedd: "s"}, time.Second, unreachable)
	m.Fetched(3, 4096)
	m.GaveUp(1)
	m.FetchFailed("NoSpace")
	m.Pushed(2048)
	m.PushFailed("ArtifactForbidden")
	got := page(t, m)
	for series, want := range map[string]string{
		`htcd_build_info{goversion="go1",version="v1"}`: "1",
		`htcd_leader`:                      "1",
		`htcd_htcjobs_watched`:             "0",
		`htcd_callbacks_total{code="204"}`: "1",
		`htcd_receiver_unanswered_connections_total{reason="no_request"}`:       "1",
		`htcd_receiver_unanswered_connections_total{reason="displaced"}`:        "0",
		`htcd_callbacks_total{code="413"}`:                                      "1",
		`htcd_callback_duration_seconds_count`:                                  "2",
		`htcd_condor_commands_total{command="condor_q",result="OK"}`:            "1",
		`htcd_condor_commands_total{command="condor_rm",result="Unreachable"}`:  "1",
		`htcd_condor_command_duration_seconds_sum{command="condor_rm"}`:         "1",
		`htcd_repairs_total{kind="lost_callback"}`:                              "1",
		`htcd_repairs_total{kind="vanished"}`:                                   "0",
		`htcd_passes_total{pass="cross-check",result="OK"}`:                     "1",
		`htcd_passes_total{pass="refresh",result="Error"}`:                      "1",
		`htcd_pass_last_success_timestamp_seconds{pass="refresh",schedd="c/s"}`: "",
		`htcd_fetched_procs_total{result="OK"}`:                                 "3",
		`htcd_fetched_procs_total{result="GivenUp"}`:                            "1",
		`htcd_fetched_bytes_total`:                                              "4096",
		`htcd_fetch_errors_total{reason="NoSpace"}`:                             "1",
		`htcd_pushed_artifacts_total`:                                           "1",
		`htcd_pushed_bytes_total`:                                               "2048",
		`htcd_push_errors_total{reason="ArtifactForbidden"}`:                    "1",
	} {
		require.Equal(t, want, value(t, got, series), series)
	}
	require.NotEmpty(t, value(t, got, `htcd_pass_last_success_timestamp_seconds{pass="cross-check",schedd="s"}`))
}

// sender is a schedd that takes, or refuses, what is sent.
type sender struct {
	backend.Schedd
	err error
}

func (s sender) Submit(context.Context, schedd.Identity, string) (condor.Cluster, error) {
	return condor.Cluster{ID: 1, Procs: 5}, s.err
}

func TestSubmissionsAreCountedByTheirError(t *testing.T) {
	m := New(Build{})
	_, err := m.Schedd(sender{}).Submit(t.Context(), schedd.Identity{}, "")
	require.NoError(t, err)
	refused := &condor.Error{Kind: condor.Refused}
	_, err = m.Schedd(sender{err: fmt.Errorf("submit: %w", refused)}).Submit(t.Context(), schedd.Identity{}, "")
	require.ErrorIs(t, err, refused)
	got := page(t, m)
	require.Equal(t, "1", value(t, got, `htcd_submissions_total{result="OK"}`))
	require.Equal(t, "1", value(t, got, `htcd_submissions_total{result="Refused"}`))
	require.Equal(t, "5", value(t, got, `htcd_submitted_procs_total`))
	require.Equal(t, "2", value(t, got, `htcd_submission_duration_seconds_count`))
}

func TestWritesOfTheLedgerAreCountedByWhoseFaultItIs(t *testing.T) {
	own := errors.New("the caller's own")
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"one that is durable":                    {nil, "OK"},
		"one whose function said no":             {own, "Rejected"},
		"one that waited for too long":           {fmt.Errorf("write ledger: %w", context.DeadlineExceeded), "TimedOut"},
		"one into a file that is damaged":        {fmt.Errorf("x: %w", ledger.ErrCorrupt), "Damaged"},
		"one into a file that is gone":           {ledger.ErrLost, "Damaged"},
		"one whose caller went away before that": {context.Canceled, "Rejected"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, writeResult(c.err)) })
	}
}

func TestSecretsAreShownAsTheyAreNowWhileSomebodyNeedsThem(t *testing.T) {
	m := New(Build{})
	now := time.Unix(1_000_000, 0)
	m.tickets.now = func() time.Time { return now }
	ends, usable := `htcd_ticket_expiry_timestamp_seconds{secret="ns/kinit-secret"}`, `htcd_secret_usable{secret="ns/kinit-secret"}`

	m.Ticket("ns", "kinit-secret", now.Add(time.Hour), nil)
	require.Equal(t, "1.0036e+06", value(t, page(t, m), ends))
	require.Equal(t, "1", value(t, page(t, m), usable))
	now = now.Add(10 * time.Minute)
	m.Ticket("ns", "kinit-secret", time.Time{}, &backend.CredentialError{Reason: "BadPassword"})
	require.Empty(t, value(t, page(t, m), ends), "that ticket is no longer the Secret's")
	require.Equal(t, "0", value(t, page(t, m), usable))
	require.Equal(t, "1", value(t, page(t, m), `htcd_ticket_requests_total{result="BadPassword"}`))
	m.Ticket("ns", "token", time.Time{}, nil)
	require.Equal(t, "1", value(t, page(t, m), `htcd_secret_usable{secret="ns/token"}`))
	require.Empty(t, value(t, page(t, m), `htcd_ticket_expiry_timestamp_seconds{secret="ns/token"}`), "it never ends")
	now = now.Add(16 * time.Minute)
	require.Empty(t, value(t, page(t, m), usable), "nobody asks for it any more")
	require.Empty(t, m.tickets.m)
}

func TestStatusesThatAreRefusedAreCounted(t *testing.T) {
	m := New(Build{})
	resource := v1alpha1.GroupVersion.WithResource(v1alpha1.Resource).GroupResource()
	for result, err := range map[string]error{
		"OK":        nil,
		"Forbidden": apierrors.NewForbidden(resource, "j", errors.New("no")),
		"Invalid":   apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind(v1alpha1.Kind).GroupKind(), "j", nil),
		"TooLarge":  apierrors.NewRequestEntityTooLargeError("3 MB"),
		"Conflict":  apierrors.NewConflict(resource, "j", errors.New("no")),
		"NotFound":  apierrors.NewNotFound(resource, "j"),
		"Error":     &apierrors.StatusError{ErrStatus: metav1.Status{Reason: "AnythingAWebhookSays", Code: 400}},
	} {
		m.StatusWritten(err)
		require.Equal(t, "1", value(t, page(t, m), fmt.Sprintf("htcd_status_writes_total{result=%q}", result)), result)
	}
}

// loop is a control loop that says what it is m.
type loop struct {
	waiting  map[string]int
	backends map[schedd.Endpoint]backend.Reachability
}

func (l loop) Waiting() map[string]int                            { return l.waiting }
func (l loop) WorkflowsWaiting() map[string]int                   { return map[string]int{"submit": 3} }
func (l loop) JobCredentials() map[string]int                     { return map[string]int{"ended": 2} }
func (l loop) Backends() map[schedd.Endpoint]backend.Reachability { return l.backends }

func openLedger(t testing.TB) (*ledger.Ledger, string) {
	file := filepath.Join(t.TempDir(), "htcjobs.db")
	book, err := ledger.Open(context.Background(), file)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, book.Close()) })
	return book, file
}

func TestWhatIsLookedUpComesFromTheLedgerTheLoopAndTheVolume(t *testing.T) {
	m := New(Build{})
	book, file := openLedger(t)
	submitted := time.Unix(1_000_000, 0)
	run := ledger.Run{
		UID:       "u",
		Attempt:   1,
		Namespace: "ns",
		Name:      "j",
		State:     ledger.Submitted,
		Schedd:    "mine",
		Cluster:   7,
		Procs:     3,
		Submitted: submitted,
	}
	require.NoError(t, m.Ledger(book).Write(t.Context(), func(tx *ledger.Tx) error {
		if err := tx.InsertRun(run); err != nil {
			return err
		}
		return tx.InsertProcs(run, 3)
	}))
	now := submitted.Add(time.Hour)
	long := now.Add(-needed - time.Second)
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{}, &v1alpha1.HTCJob{}, 0, nil)
	require.NoError(t, m.Working(Work{
		Pools:      noPools,
		Ledger:     book,
		Informer:   informer,
		Workflows:  informer,
		LedgerFile: file,
		Data:       filepath.Dir(file),
		KeepFree:   42,
		Now:        func() time.Time { return now },
		Controller: loop{map[string]int{"fetch": 2}, map[schedd.Endpoint]backend.Reachability{
			{Schedd: "mine"}:     {Down: true, At: long},
			{}:                   {At: now, Answered: now}, // which one is the usual
			{Schedd: "usually"}:  {At: now, Down: true, Usual: true},
			{Schedd: "other"}:    {At: now, Answered: now, Pace: backend.Pace{Commands: 4, PerSecond: 9}},
			{Schedd: "idle"}:     {Answered: long, Down: true, At: long},
			{Schedd: "misspelt"}: {Down: true, At: now},
		}},
	}))
	got := page(t, m)
	for series, want := range map[string]string{
		`htcd_procs{state="unknown"}`:                                   "3",
		`htcd_procs{state="held"}`:                                      "0",
		`htcd_open_runs{schedd="mine"}`:                                 "1",
		`htcd_open_runs_checked_timestamp_seconds{schedd="mine"}`:       "1e+06",
		`htcd_unfetched_procs`:                                          "0",
		`htcd_queue_depth{queue="fetch"}`:                               "2",
		`htcd_workflow_queue_depth{queue="submit"}`:                     "3",
		`htcd_nodes{state="waiting"}`:                                   "0",
		`htcd_volume_keep_free_bytes`:                                   "42",
		`htcd_schedd_reachable{schedd="mine"}`:                          "0",
		`htcd_schedd_commands_at_once{schedd="other"}`:                  "4",
		`htcd_schedd_reachable{schedd="usual"}`:                         "",
		`htcd_schedd_reachable{schedd="usually"}`:                       "0",
		`htcd_schedd_reachable{schedd="other"}`:                         "1",
		`htcd_schedd_reachable{schedd="idle"}`:                          "",
		`htcd_schedd_reachable{schedd="misspelt"}`:                      "",
		`htcd_ledger_writes_total{result="OK"}`:                         "1",
		`htcd_namespace_jobs{namespace="ns",pool="_none",state="idle"}`: "3",
		`htcd_scrape_errors_total`:                                      "0",
	} {
		require.Equal(t, want, value(t, got, series), series)
	}
	require.NotEmpty(t, value(t, got, "htcd_ledger_size_bytes"))
	require.Equal(t, "0", value(t, got, "htcd_ledger_free_bytes"))
	require.NotEmpty(t, value(t, got, "htcd_volume_free_bytes"))
	free, size, err := output.Volume(filepath.Dir(file))
	require.NoError(t, err)
	require.Positive(t, free.Files)
	require.Equal(t, size.BoundsFiles(), value(t, got, "htcd_volume_free_files") != "")
	require.Equal(t, size.BoundsFiles(), value(t, got, "htcd_volume_keep_free_files") != "")
	require.NotContains(t, got, `"j"`)
}

func TestALedgerThatIsAwayHidesNothingElse(t *testing.T) {
	m := New(Build{})
	book, err := ledger.Open(t.Context(), filepath.Join(t.TempDir(), "htcjobs.db"))
	require.NoError(t, err)
	require.NoError(t, book.Close())
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{}, &v1alpha1.HTCJob{}, 0, nil)
	require.NoError(t, m.Working(Work{
		Pools:      noPools,
		Ledger:     book,
		Informer:   informer,
		Workflows:  informer,
		LedgerFile: "/nonexistent",
		Data:       "/nonexistent",
		Now:        time.Now,
		Controller: loop{},
	}))
	page(t, m)
	got := page(t, m)
	require.NotEqual(t, "0", value(t, got, "htcd_scrape_errors_total"))
	require.Equal(t, "0", value(t, got, "htcd_leader"))
}

func TestHTCJobsAreCountedAsTheyComeChangeAndGo(t *testing.T) {
	m := New(Build{})
	seen := m.phases()
	job := func(phase v1alpha1.Phase) *v1alpha1.HTCJob {
		return &v1alpha1.HTCJob{ObjectMeta: metav1.ObjectMeta{Name: "j"}, Status: v1alpha1.HTCJobStatus{Phase: phase}}
	}
	of := func(phase string) string { return value(t, page(t, m), fmt.Sprintf("htcd_htcjobs{phase=%q}", phase)) }
	seen.OnAdd(job(""), true)
	seen.OnAdd(job("Running"), false)
	require.Equal(t, "1", of("Pending"))
	require.Equal(t, "1", of("Running"))
	seen.OnUpdate(job(""), job("Running"))
	require.Equal(t, "0", of("Pending"))
	require.Equal(t, "2", of("Running"))
	seen.OnDelete(job("Running"))
	seen.OnDelete(cache.DeletedFinalStateUnknown{Obj: job("Running")})
	require.Equal(t, "0", of("Running"))
	require.Equal(t, "0", of("Held"))
}

// What a scrape costs with a hundred thousand HTCJobs in the ledger, a tenth of them open.
func BenchmarkScrape(b *testing.B) {
	book, file := openLedger(b)
	const runs = 100_000
	for from := 0; from < runs; from += 1000 {
		require.NoError(b, book.Write(b.Context(), func(tx *ledger.Tx) error {
			for i := from; i < from+1000; i++ {
				run := ledger.Run{
					UID:       fmt.Sprint(i),
					Attempt:   1,
					Namespace: "ns",
					Name:      fmt.Sprint(i),
					State:     ledger.Submitted,
					Schedd:    "s",
					Cluster:   i + 1,
					Procs:     1,
					Confirmed: i%10 > 0,
				}
				if err := tx.InsertRun(run); err != nil {
					return err
				}
				if err := tx.InsertProcs(run, 1); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	now := time.Now()
	w := &work{workDescs: New(Build{}).work, Work: Work{
		Ledger: book, LedgerFile: file, Data: filepath.Dir(file), Controller: loop{},
		Now: func() time.Time { now = now.Add(fresh); return now }, // read again every time
	}}
	for b.Loop() {
		metrics := make(chan prometheus.Metric, 100)
		w.Collect(metrics)
	}
}

func BenchmarkCallback(b *testing.B) {
	m := New(Build{})
	for b.Loop() {
		m.Callback(204, time.Millisecond)
	}
}

func TestTheFirstNamespacesHaveSeriesOfTheirOwn(t *testing.T) {
	m := New(Build{Version: "v", Go: "go"})
	m.Used("idle", 0)
	for i := range mostNamespaces + 5 {
		m.Used(fmt.Sprint("ns", i), 2)
	}
	m.Used("ns0", 3)
	all := page(t, m)
	require.Equal(t, "5", value(t, all, `htcd_core_seconds_total{namespace="ns0"}`))
	require.Equal(t, "10", value(t, all, `htcd_core_seconds_total{namespace="_other"}`))
	require.Equal(t, mostNamespaces+1, strings.Count(all, "htcd_core_seconds_total{"))
}

func TestStartedProgramsAreCounted(t *testing.T) {
	m := New(Build{})
	require.NoError(t, tool.Run(t.Context(), tool.Command{Name: "true", BinDir: "/bin", Timeout: time.Minute}))
	require.NotEmpty(t, value(t, page(t, m), `htcd_program_starts_total{program="true"}`))
}
