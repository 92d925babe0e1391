package ui

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// jobView is the page about an HTCJob.
type jobView struct {
	ref
	Phase      string
	Look       look
	Note       string
	Counts     counts
	Facts      []fact
	Operations []operation
	Conditions []told
	Events     []happening
	Attempts   []timeline
	Attempt    int // that the rest is about; 0: none was sent
	Grid       grid
	Failures   []failure
	More       int // failures that are not listed
	Proc       *procView
	Archive    string // where all output is, below the base
	Script     []fact // its parts
	Sorry      []string
}

// procView is one job of it.
type procView struct {
	aggregate.Proc
	Look  look
	How   string
	Files []file
	Logs  []fact // a stream, and where it is shown
}

// jobFacts is what was asked for the page.
type jobFacts struct {
	job      *v1alpha1.HTCJob
	events   []corev1.Event
	attempts []aggregate.Attempt
	attempt  int
	from     int
	procs    []aggregate.Proc // from that one on
	failed   []aggregate.Proc // the first of them
	one      *aggregate.Proc
	files    []aggregate.File
	sorry    []string
}

// mostFailures is how many failures a page describes.
const mostFailures = 50

func (s *Server) showJob(ctx context.Context, r ref, object any, q url.Values) shown {
	f := jobFacts{job: object.(*v1alpha1.HTCJob), attempt: numberIn(q, "attempt", 0), from: numberIn(q, "from", 0)}
	ask := func(err error) {
		if err != nil {
			f.sorry = append(f.sorry, words(err))
		}
	}
	var err error
	f.events, err = s.events(ctx, r, f.job)
	ask(err)
	parameters := func(more ...string) url.Values {
		p := url.Values{"attempt": {strconv.Itoa(f.attempt)}}
		for i := 0; i < len(more); i += 2 {
			p.Set(more[i], more[i+1])
		}
		return p
	}
	if f.attempts, _, err = all[aggregate.Attempt](ctx, s, r, "log/attempts", nil); err == nil {
		procs, header, err := all[aggregate.Proc](
			ctx,
			s,
			r,
			"log/procs",
			parameters("from", strconv.Itoa(f.from), "limit", strconv.Itoa(mostCells)),
		)
		if f.procs = procs; err == nil {
			f.attempt = attemptIn(header)
			f.failed, _, err = all[aggregate.Proc](
				ctx,
				s,
				r,
				"log/procs",
				parameters("state", "failed", "limit", strconv.Itoa(mostFailures)),
			)
		}
		ask(err)
	}
	ask(err)
	if n := numberIn(q, "proc", -1); n >= 0 && f.attempt > 0 {
		one, _, err := all[aggregate.Proc](ctx, s, r, "log/procs", parameters("from", strconv.Itoa(n), "limit", "1"))
		ask(err)
		if len(one) > 0 && one[0].Proc == n {
			f.one = &one[0]
		}
		if f.one != nil && f.one.Output {
			f.files, _, err = all[aggregate.File](ctx, s, r, "log/files", parameters("proc", strconv.Itoa(n)))
			ask(err)
		}
	}
	return shown{f.job.Name, s.base().job(viewOfJob(r, f, time.Now()))}
}

// viewOfJob is pure.
func viewOfJob(r ref, f jobFacts, now time.Time) jobView {
	job, s := f.job, f.job.Status
	v := jobView{
		ref: r, Phase: phase(s.Phase), Note: note(s.Reason, s.Message), Counts: countsOf(job), Facts: factsOf(job),
		Operations: operationsOf(r, job, job.Spec.Suspend, ended(job), int(s.Failed)),
		Conditions: tell(
			s.Conditions,
		), Events: happened(f.events), Attempt: f.attempt, Script: scriptOf(job.Spec.Script), Sorry: f.sorry,
	}
	v.Look = lookOfPhase(v.Phase)
	v.Attempts = timelines(job, f.attempts, f.attempt, now)
	jobs := job.Jobs()
	for _, a := range f.attempts {
		if a.Attempt == f.attempt {
			jobs = a.Jobs
		}
	}
	if f.attempt > 0 {
		v.Grid = gridOfProcs(r, f.attempt, f.from, jobs, f.procs)
	}
	v.Failures = failuresOf(r, f)
	for _, a := range v.Attempts {
		if a.Attempt == f.attempt {
			v.More = max(0, a.Counts.Failed-len(v.Failures))
			if a.Counts.Done+a.Counts.Failed > 0 {
				v.Archive = "/archive" + linkTo(r) + "?attempt=" + strconv.Itoa(f.attempt)
			}
		}
	}
	if f.one != nil {
		v.Proc = procOf(r, f)
	}
	return v
}

// scriptOf lists what runs, in its order.
func scriptOf(s v1alpha1.Script) []fact {
	var all []fact
	part := func(name string, p *v1alpha1.ScriptPart) {
		if p != nil {
			all = append(all, fact{name, p.Source})
		}
	}
	part("Before the script", s.Before)
	all = append(all, fact{"Script", s.Source})
	part("After the script", s.After)
	return all
}

// ended reports whether it has ended, and nothing else was asked for meanwhile.
func ended(job *v1alpha1.HTCJob) bool {
	return job.Status.Phase.Terminal() && job.Status.ObservedGeneration >= job.Generation &&
		(job.Rerun() == "" || job.Rerun() == job.Status.Rerun || job.RerunRefused())
}

func factsOf(job *v1alpha1.HTCJob) []fact {
	s := job.Status
	var pool, memory string
	if e := s.Effective; e != nil {
		pool = e.Pool
		if e.Resources != nil {
			memory = requested(e.Resources)
		}
	}
	if memory == "" && job.Spec.Resources != nil {
		memory = requested(job.Spec.Resources)
	}
	return facts(
		fact{
			"Namespace",
			job.Namespace,
		},
		fact{"Jobs", strconv.Itoa(job.Jobs())},
		fact{"Image", job.Spec.Script.Image},
		fact{"Command", cmp.Or(job.Spec.Script.Command, job.Spec.Script.Executable)},
		fact{
			"Each asks for",
			memory,
		},
		fact{"Pool", pool},
		fact{"Schedd", s.Schedd},
		fact{"Account", s.User},
		fact{"Exit code", codeOf(s.ExitCode)},
		fact{"Duration", s.Duration},
		fact{"Result", textOf(s.Result)},
		fact{"Created", moment(job.CreationTimestamp.Time)},
		fact{"Started", momentOf(s.StartedAt)},
		fact{"Ended", momentOf(s.CompletionTime)},
		fact{"Last confirmed by the schedd", momentOf(s.LastChecked)},
	)
}

// codeOf is an exit code, empty if there is none.
func codeOf(code *int32) string {
	if code == nil {
		return ""
	}
	return strconv.Itoa(int(*code))
}

func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func momentOf(t *metav1.Time) string {
	if t == nil {
		return ""
	}
	return moment(t.Time)
}

func requested(r *v1alpha1.Resources) string {
	var parts []string
	add := func(value fmt.Stringer, what string) { parts = append(parts, value.String()+" "+what) }
	if r.CPUs != nil {
		add(r.CPUs, "CPUs")
	}
	if r.Memory != nil {
		add(r.Memory, "memory")
	}
	if r.Disk != nil {
		add(r.Disk, "disk")
	}
	if r.GPUs != nil {
		add(r.GPUs, "GPUs")
	}
	return strings.Join(parts, ", ")
}

// gridOfProcs draws the jobs of an attempt, of which some are known.
func gridOfProcs(r ref, attempt, from, total int, procs []aggregate.Proc) grid {
	link := linkTo(r) + "?attempt=" + strconv.Itoa(attempt)
	g := grid{From: from, Total: total, Link: link + "&from=" + strconv.Itoa(from) + "&proc="}
	cells := []byte(strings.Repeat(".", max(0, min(mostCells, total-from))))
	for _, p := range procs {
		if at := p.Proc - from; at >= 0 && at < len(cells) {
			cells[at] = lookOf(p.State).Code
		}
	}
	g.Cells = string(cells)
	if from > 0 {
		g.Prev = link + "&from=" + strconv.Itoa(max(0, from-mostCells))
	}
	if from+len(cells) < total {
		g.Next = link + "&from=" + strconv.Itoa(from+mostCells)
	}
	return g
}

// failuresOf describes the failures that are known, those of the status where htcd itself cannot be asked.
func failuresOf(r ref, f jobFacts) (all []failure) {
	items := map[int32]string{}
	for _, x := range f.job.Status.Failures {
		if x.Proc != nil {
			items[*x.Proc] = x.Item
		}
	}
	for _, p := range f.failed {
		x := failure{
			Who: strconv.Itoa(p.Proc), How: how(p.ExitCode, p.Signal, p.Reason), Message: p.Message, Stderr: p.Stderr,
			Link: fmt.Sprintf(
				"%s?attempt=%d&proc=%d",
				linkTo(r),
				f.attempt,
				p.Proc,
			), Log: logLink(r, f.attempt, "proc="+strconv.Itoa(p.Proc), "stdout"),
		}
		if x.Message == x.How {
			x.Message = ""
		}
		if f.attempt == int(f.job.Status.Attempt) {
			x.Item = items[int32(p.Proc)] // #nosec G115 -- at most 100,000
		}
		all = append(all, x)
	}
	if len(all) > 0 || f.attempt > 0 && f.attempt != int(f.job.Status.Attempt) {
		return all
	}
	for _, x := range f.job.Status.Failures {
		var exit, signal *int
		if x.ExitCode != nil {
			exit = new(int(*x.ExitCode))
		}
		if x.Signal != nil {
			signal = new(int(*x.Signal))
		}
		all = append(
			all,
			failure{Who: x.JobID, Item: x.Item, How: how(exit, signal, x.Reason), Message: x.Message, Stderr: x.Stderr},
		)
	}
	return all
}

func procOf(r ref, f jobFacts) *procView {
	p := &procView{Proc: *f.one, Look: lookOf(f.one.State), How: how(f.one.ExitCode, f.one.Signal, f.one.Reason)}
	which := "proc=" + strconv.Itoa(p.Proc.Proc)
	for _, stream := range []string{"stdout", "stderr"} {
		p.Logs = append(p.Logs, fact{stream, logLink(r, f.attempt, which, stream)})
	}
	p.Files = filesOf(r, f.attempt, f.files, which)
	return p
}

func logLink(r ref, attempt int, which, stream string) string {
	return fmt.Sprintf("/log%s?attempt=%d&%s&stream=%s", linkTo(r), attempt, which, stream)
}

// filesOf lists what one job or node has left.
func filesOf(r ref, attempt int, files []aggregate.File, which string) (all []file) {
	for _, f := range files {
		where := url.Values{"attempt": {strconv.Itoa(attempt)}, "job": {strconv.Itoa(f.Job)}, "path": {f.Path}}
		all = append(
			all,
			file{Path: f.Path, Size: bytesOf(f.Size), Link: "/file" + linkTo(r) + "?" + which + "&" + where.Encode()},
		)
	}
	return all
}
