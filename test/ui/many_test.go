package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/serve/aggregate"
	"htc.cern.ch/htcd/test/trial"
)

// apiserver lists HTCJobs and nothing else, and tells watchers of changes. In the lab's own, htcd would write thousands
// of statuses, too.
type apiserver struct {
	jobs    []v1alpha1.HTCJob
	changes chan v1alpha1.HTCJob
	turn    atomic.Int64 // of the states of procs
}

func (a *apiserver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	out := json.NewEncoder(w)
	list := metav1.ListMeta{ResourceVersion: "1000000"}
	ours, _ := strings.CutPrefix(r.URL.Path, "/apis/htc.cern.ch/v1alpha1/")
	q := r.URL.Query()
	if asked, output := strings.CutPrefix(
		r.URL.Path,
		"/apis/output.htc.cern.ch/v1alpha1/namespaces/atlas-higgs/",
	); output {
		a.output(w, asked, q)
		return
	}
	switch watching := q.Get("watch") != ""; {
	case watching && q.Get("sendInitialEvents") != "":
		w.WriteHeader(http.StatusUnprocessableEntity) // as one without that
		_ = out.Encode(
			metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
				Status:   metav1.StatusFailure,
				Reason:   metav1.StatusReasonInvalid,
				Code:     http.StatusUnprocessableEntity,
			},
		)
	case watching:
		flush := http.NewResponseController(w)
		_ = flush.Flush()
		changes := a.changes
		if ours != "htcjobs" {
			changes = nil
		}
		for {
			select {
			case <-r.Context().Done():
				return
			case job := <-changes:
				_ = out.Encode(map[string]any{"type": "MODIFIED", "object": job})
				_ = flush.Flush()
			}
		}
	case ours == "htcjobs":
		_ = out.Encode(
			v1alpha1.HTCJobList{
				TypeMeta: metav1.TypeMeta{Kind: "HTCJobList", APIVersion: "htc.cern.ch/v1alpha1"},
				ListMeta: list,
				Items:    a.jobs,
			},
		)
	case ours == "htcworkflows":
		_ = out.Encode(
			v1alpha1.HTCWorkflowList{
				TypeMeta: metav1.TypeMeta{Kind: "HTCWorkflowList", APIVersion: "htc.cern.ch/v1alpha1"},
				ListMeta: list,
				Items:    []v1alpha1.HTCWorkflow{manyNodes(), network()},
			},
		)
	default:
		kind := map[string]string{"htcpools": "HTCPoolList"}[ours]
		_ = out.Encode(
			map[string]any{"kind": kind, "apiVersion": "htc.cern.ch/v1alpha1", "metadata": list, "items": []any{}},
		)
	}
}

// output is what htcd knows of one HTCJob of 10,000 jobs, and of a workflow of 1,000 sequences.
func (a *apiserver) output(w http.ResponseWriter, asked string, q url.Values) {
	w.Header().Set(aggregate.HeaderAttempt, "1")
	out := json.NewEncoder(w)
	states := []aggregate.NodeState{
		aggregate.NodeDone,
		aggregate.NodeDone,
		aggregate.NodeRunning,
		aggregate.NodeIdle,
		aggregate.NodeHeld,
	}
	switch _, what, _ := strings.Cut(asked, "/log/"); {
	case what == "attempts":
		_ = out.Encode(
			aggregate.Attempt{
				Attempt:   1,
				State:     "Submitted",
				Cluster:   1,
				Schedd:    "s",
				Created:   time.Now().Add(-time.Hour),
				Submitted: time.Now().Add(-time.Minute),
				Jobs:      10_000,
				Failed:    1,
			},
		)
	case what == "procs" && q.Get("state") == "" && q.Get("limit") != "1":
		for i := range 10_000 {
			p := aggregate.Proc{
				Proc:    i,
				State:   states[(i+int(a.turn.Load()))%len(states)],
				JobID:   fmt.Sprintf("1.%d", i),
				Changed: time.Now(),
			}
			if i == 7777 {
				p.State, p.ExitCode, p.Stderr = aggregate.NodeFailed, new(3), "no convergence"
			}
			_ = out.Encode(p)
		}
	case strings.HasPrefix(asked, "htcworkflows/network/") && what == "nodes":
		for i, n := range network().Spec.Graph.Nodes[:200] {
			_ = out.Encode(aggregate.Node{Step: string(n.Step), Name: string(n.Name), State: states[i%len(states)]})
		}
	case what == "nodes":
		for i := range 5000 {
			_ = out.Encode(
				aggregate.Node{
					Step:     fmt.Sprintf("step-%d", i%5),
					Sequence: new(i / 5),
					State:    states[i%len(states)],
					NodeKey:  aggregate.NodeKey{DAG: 1, Node: i},
				},
			)
		}
	}
}

// manyNodes is a workflow of 1,000 sequences of five steps.
func manyNodes() (w v1alpha1.HTCWorkflow) {
	w.TypeMeta = metav1.TypeMeta{APIVersion: "htc.cern.ch/v1alpha1", Kind: v1alpha1.WorkflowKind}
	w.ObjectMeta = metav1.ObjectMeta{Namespace: "atlas-higgs", Name: "many", UID: "many", ResourceVersion: "1"}
	w.Spec.Sequences = &v1alpha1.Sequences{Count: new(int32(1000))}
	for i := range 5 {
		w.Spec.Steps = append(
			w.Spec.Steps,
			v1alpha1.Step{StepWork: v1alpha1.StepWork{Name: v1alpha1.StepName(fmt.Sprintf("step-%d", i))}},
		)
	}
	w.Status.Phase, w.Status.Attempt, w.Status.Nodes.Total, w.Status.Sequences.Total =
		v1alpha1.PhaseRunning, 1, 5000, 1000
	return w
}

// manyJobs are as a group has them in a week.
func manyJobs(n int) (all []v1alpha1.HTCJob) {
	begin := time.Now().Add(-time.Duration(n) * 2 * time.Minute)
	for i := range n {
		job := *trial.Manifest(fmt.Sprintf("%s-%04d", []string{"simulate", "reconstruct", "fit", "merge"}[i%4], i), "echo", trial.Queue(100))
		job.Namespace, job.UID, job.ResourceVersion = []string{"atlas-higgs", "cms-top"}[i%2], types.UID(
			fmt.Sprint("uid-", i),
		), fmt.Sprint(
			i+1,
		)
		job.CreationTimestamp = metav1.NewTime(begin.Add(time.Duration(i) * 2 * time.Minute))
		s := &job.Status
		switch s.Phase = v1alpha1.PhaseSucceeded; {
		case n-i <= 2:
			s.Phase, s.Active, s.Idle = v1alpha1.PhaseIdle, 100, 100
		case n-i <= 7:
			s.Phase, s.Active, s.Running, s.Idle, s.Succeeded, s.Failed = v1alpha1.PhaseRunning, 70, 40, 30, 29, 1
		case i%9 == 0:
			s.Phase, s.Succeeded, s.Failed, s.Reason = v1alpha1.PhaseFailed, 97, 3, "Failed"
			s.Message = "3 of 100 jobs failed; 4711.42: exit code 3: no convergence after 500 steps"
		case i%50 == 3:
			s.Phase, s.Active, s.Held, s.Reason = v1alpha1.PhaseHeld, 100, 100, "Held"
			s.Message = "100 jobs are on hold: memory usage exceeded request_memory"
		default:
			s.Succeeded = 100
		}
		all = append(all, job)
	}
	return all
}

// pretended serves n HTCJobs, and returns a kubeconfig for that.
func pretended(t *testing.T, n int) (a *apiserver, kubeconfig string) {
	a = &apiserver{jobs: manyJobs(n), changes: make(chan v1alpha1.HTCJob)}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "c", Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c", Namespace: "atlas-higgs"}},
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: server.URL}},
	}, kubeconfig))
	return a, kubeconfig
}

// seenAt has the page note when it shows a change. What counts is the frame after it.
const seenAt = `window.seen = {}; new MutationObserver(() => requestAnimationFrame(() => {
	for (const small of document.querySelectorAll("#rows .row .note")) {
		const change = /^change: (\d+)$/.exec(small.textContent);
		if (change && !(change[1] in seen)) seen[change[1]] = Date.now();
	}
})).observe(document.getElementById("rows"), {subtree: true, childList: true, characterData: true})`

// frames scrolls through the list and returns how long the frames took, in milliseconds.
const frames = `new Promise((resolve) => {
	const all = []; let last = performance.now(); const step = (document.documentElement.scrollHeight - innerHeight) / 120;
	const next = (now) => { all.push(now - last); last = now; scrollBy(0, step); all.length < 120 ? requestAnimationFrame(next) : resolve(all); };
	requestAnimationFrame(next);
})`

// TestFiveThousandHTCJobsAreFollowed prints what it measures and asserts only that everything is shown: the machine may
// be busy.
func TestFiveThousandHTCJobsAreFollowed(t *testing.T) {
	const n, changed = 5000, 50
	b := trial.New(t)
	a, kubeconfig := pretended(t, n)
	p := tab{t, browser(t)}
	p.size(1000, 620)
	began := time.Now()
	run(p, chromedp.Navigate(served(t, b, "--kubeconfig", kubeconfig)))
	p.until(
		fmt.Sprintf(
			`document.getElementById("live").textContent == "live" && document.getElementById("shown").textContent == "%d shown"`,
			n,
		),
	)
	t.Logf("%d HTCJobs are shown %v after htcd ui was started", n, time.Since(began).Round(time.Millisecond))
	p.picture("ui-list")

	eval[any](p, seenAt+"; 0")
	var sent []int64
	for i := range changed {
		job := a.jobs[n-1-i%10] // which is in sight
		job.ResourceVersion = fmt.Sprint(n + 1 + i)
		job.Status.Reason, job.Status.Message = "change", fmt.Sprint(i)
		sent = append(sent, time.Now().UnixMilli())
		a.changes <- job
		p.until(fmt.Sprintf(`%d in seen`, i))
	}
	seen := eval[map[string]int64](p, `seen`)
	var late []int64
	for i, at := range sent {
		late = append(late, seen[fmt.Sprint(i)]-at)
	}
	slices.Sort(late)
	t.Logf(
		"a change among %d HTCJobs is on the screen after %d ms in the median, %d ms at most of %d",
		n,
		late[changed/2],
		late[changed-1],
		changed,
	)

	took := eval[[]float64](p, frames, chromedp.EvalAwaitPromise)
	p.until(`document.querySelector("#rows .row:last-child").getAttribute("aria-rowindex") == "5001"`)
	slices.Sort(took)
	t.Logf(
		"scrolling through all: a frame takes %.0f ms in the median, %.0f ms at most of %d",
		took[len(took)/2],
		took[len(took)-1],
		len(took),
	)

	typed := eval[float64](
		p,
		`(() => { const f = document.getElementById("filter"); f.value = "fit-00"; const t = performance.now(); f.dispatchEvent(new Event("input")); document.body.offsetHeight; return performance.now() - t; })()`,
	)
	t.Logf("filtering them takes %.0f ms", typed)
	require.Equal(t, "25 of 5000 shown", eval[string](p, `document.getElementById("shown").textContent`))
	sorted := eval[float64](
		p,
		`(() => { const b = document.querySelector("button[data-sort=name]"); const t = performance.now(); b.click(); document.body.offsetHeight; return performance.now() - t; })()`,
	)
	t.Logf("sorting them takes %.0f ms", sorted)
}

// drawn notes when the browser has drawn what a function of the page is called for.
const drawn = `window.took = []; (() => { const inner = draw; draw = (grid) => {
	const begin = performance.now(); inner(grid); document.body.offsetHeight; took.push(performance.now() - begin);
}; })()`

// TestTenThousandJobsAreDrawn prints what it measures, and asserts only that everything is shown.
func TestTenThousandJobsAreDrawn(t *testing.T) {
	b := trial.New(t)
	a, kubeconfig := pretended(t, 1)
	p := tab{t, browser(t)}
	p.size(1000, 620)
	run(p, chromedp.Navigate(served(t, b, "--kubeconfig", kubeconfig)))
	p.until(seen("#rows a"))
	p.goes(`#rows a`, `document.querySelectorAll("#cells a").length == 10000`)
	require.Equal(t, 1, eval[int](p, `document.querySelectorAll("#cells a.c-failed").length`))
	eval[any](p, drawn+"; 0")
	a.turn.Add(1)
	p.until(
		`document.querySelector("#cells a:nth-child(2)") && took.length > 0 && document.getElementById("cells").all[1].className == "c-running"`,
	)
	t.Logf("a grid of 10,000 cells of which 8,000 change is drawn in %.0f ms", eval[float64](p, `Math.max(...took)`))
	p.goes(`a[href$="/workflows"]`, seen("#rows a"))
	p.goes(`#rows a[href$="/many"]`, `document.querySelectorAll("#cells a").length == 5000`)
	p.picture("many-nodes")
}
