package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// workflow compares an HTCWorkflow of n nodes with the same DAG sent by condor_submit_dag: sequences of two steps, of
// which the second begins after the first. Each node runs one script in the same image. The floor's nodes run apptainer
// themselves: no wrapper, no callback, no directories of their own; its DAGMan has the same settings. Both are measured
// until the last node has ended.
func workflow(ctx context.Context, p *place, n int) (figures []figure, err error) {
	d, err := p.working(ctx, "--reconcile-schedule=@every 1m")
	if err != nil {
		return nil, err
	}
	defer d.end(&err)
	if _, err := p.byDAGMan(ctx, pairs(2)); err != nil { // the image is unpacked once
		return nil, err
	}
	var ours, floor []time.Duration
	used := [2]usage{{}, {}}
	turns := 2
	if n > 2000 {
		turns = 1
	}
	for turn := range turns {
		before, err := cpuUsage()
		if err != nil {
			return nil, err
		}
		raw, err := p.byDAGMan(ctx, pairs(n))
		if err != nil {
			return nil, err
		}
		between, err := cpuUsage()
		if err != nil {
			return nil, err
		}
		mine, err := p.byWorkflow(ctx, fmt.Sprintf("turn%d", turn), n)
		if err != nil {
			return nil, err
		}
		after, err := cpuUsage()
		if err != nil {
			return nil, err
		}
		used[0].add(after.since(between))
		used[1].add(between.since(before))
		ours, floor = append(ours, mine.ended), append(floor, raw)
		figures = append(
			figures,
			figure{
				what: "output fetched after the end",
				ours: (mine.fetched - mine.ended).Seconds(),
				unit: "s",
				note: "load " + load(),
			},
			figure{
				what: "status writes per second",
				ours: float64(mine.writes) / mine.fetched.Seconds(),
				unit: "/s",
				aim:  "1 /s",
			},
		)
	}
	fmt.Println(perItem("one node", used[0], used[1], turns*n))
	took, best := quantile(ours, 0), quantile(floor, 0)
	return append(figures, figure{ours: took, floor: best, unit: "s", aim: "1.2x",
		note: fmt.Sprintf(
			"%.3g nodes/s, floor %.3g; best of %d each; load %s",
			float64(n)/took,
			float64(n)/best,
			turns,
			load(),
		)}), nil
}

// twoSteps is a workflow of n nodes.
func twoSteps(name string, n int, more string) *v1alpha1.HTCWorkflow {
	step := func(name string) v1alpha1.Step {
		return v1alpha1.Step{StepWork: v1alpha1.StepWork{Name: v1alpha1.StepName(name), Job: v1alpha1.StepJob{
			Script:  v1alpha1.Program{Image: "centos", Command: "bash", Source: "echo done\n"},
			HTCOpts: more,
		}}}
	}
	count := int32(n / 2)
	return &v1alpha1.HTCWorkflow{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.WorkflowKind},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.HTCWorkflowSpec{
			Sequences: &v1alpha1.Sequences{Count: &count}, Steps: []v1alpha1.Step{step("first"), step("second")},
			Throttle: &v1alpha1.Throttle{MaxIdle: new(int32(1000))}, // DAGMan's own limit
		},
	}
}

// course is what became of a workflow.
type course struct {
	sent, ended, fetched time.Duration
	writes               int // changes of the object
	largest              int // bytes of the object
}

// byWorkflow creates a workflow and waits until it has succeeded and its output has been fetched.
func (p *place) byWorkflow(ctx context.Context, name string, n int) (course, error) {
	return p.succeeded(ctx, twoSteps(name, n, ""))
}

// succeeded creates a workflow and waits until it has succeeded and its output has been fetched.
func (p *place) succeeded(ctx context.Context, w *v1alpha1.HTCWorkflow) (course, error) {
	return p.watched(ctx, w, func(w *v1alpha1.HTCWorkflow, c course) (bool, error) {
		if w.Status.Phase.Terminal() && w.Status.Phase != v1alpha1.PhaseSucceeded {
			return false, fmt.Errorf("%s is %s: %+v", w.Name, w.Status.Phase, w.Status.Nodes)
		}
		return c.fetched > 0, nil
	})
}

// watched creates a workflow and follows it until it is as wanted.
func (p *place) watched(
	ctx context.Context,
	w *v1alpha1.HTCWorkflow,
	is func(*v1alpha1.HTCWorkflow, course) (bool, error),
) (c course, err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Hour)
	defer cancel()
	flows := p.jobs.Workflows(p.ours)
	began := time.Now()
	made, err := flows.Create(ctx, w, metav1.CreateOptions{})
	if err != nil {
		return c, err
	}
	version := made.ResourceVersion
	for {
		changes, err := flows.Watch(
			ctx,
			metav1.ListOptions{ResourceVersion: version, FieldSelector: "metadata.name=" + w.Name},
		)
		if err != nil {
			return c, err
		}
		for e := range changes.ResultChan() {
			now, ok := e.Object.(*v1alpha1.HTCWorkflow)
			if !ok || e.Type == watch.Deleted {
				continue
			}
			version = now.ResourceVersion
			c.see(now, time.Since(began))
			if done, err := is(now, c); done || err != nil {
				changes.Stop()
				return c, err
			}
		}
		if ctx.Err() != nil {
			return c, fmt.Errorf("%s after %s: %w", w.Name, time.Since(began), ctx.Err())
		}
	}
}

// see notes what a version of the object shows.
func (c *course) see(w *v1alpha1.HTCWorkflow, after time.Duration) {
	c.writes++
	if text, err := json.Marshal(w); err == nil {
		c.largest = max(c.largest, len(text))
	}
	if len(w.Status.JobID) > 0 && c.sent == 0 {
		c.sent = after
	}
	if w.Status.Phase.Terminal() && c.ended == 0 {
		c.ended = after
	}
	for _, condition := range w.Status.Conditions {
		if condition.Type == v1alpha1.ConditionOutputFetched && condition.Status == metav1.ConditionTrue &&
			w.Status.Phase.Terminal() &&
			c.fetched == 0 {
			c.fetched = after
		}
	}
}

// registryImage is the image of all rows in the lab's registry.
func (p *place) registryImage() string {
	return fmt.Sprintf("docker://127.0.0.1:%d/centos", p.world.Ports.Registry)
}

// inContainer is an executable that runs the file script in the container of an image, and does nothing else.
func inContainer(image string) string {
	return "#!/bin/sh\nPATH=${PATH:-/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin}\nexport PATH\nmkdir .own\n" +
		"export APPTAINER_CACHEDIR=\"$PWD/.own\" APPTAINER_TMPDIR=\"$PWD/.own\" APPTAINER_WORKDIR=\"$PWD/.own\"\n" +
		"apptainer --quiet exec --contain --ipc --pid --bind \"$PWD\" --pwd \"$PWD\" " + image + " bash ./script\n"
}

// pairs is the DAG file of sequences of two steps.
func pairs(n int) string {
	var b strings.Builder
	for i := n/2 - 1; i >= 0; i-- {
		fmt.Fprintf(
			&b,
			"JOB A%d node.sub\nVARS A%d n=\"a%d\"\nJOB B%d node.sub\nVARS B%d n=\"b%d\"\nPARENT A%d CHILD B%d\n",
			i,
			i,
			i,
			i,
			i,
			i,
			i,
			i,
		)
	}
	return b.String()
}

// byDAGMan sends a DAG by hand and waits until it has left the queue.
func (p *place) byDAGMan(ctx context.Context, dag string) (time.Duration, error) {
	dir, err := p.dir("robot", "dag")
	if err != nil {
		return 0, err
	}
	files := map[string]string{
		"node.sh": inContainer(p.registryImage()),
		"script":  "echo done\n",
		"node.sub": "executable = node.sh\ntransfer_input_files = script\nshould_transfer_files = YES\nwhen_to_transfer_output = ON_EXIT\n" +
			"output = $(n).out\nerror = $(n).err\nnotification = Never\nqueue\n",
		"flow.config": "DAGMAN_USER_LOG_SCAN_INTERVAL = 1\nDAGMAN_QUEUE_UPDATE_INTERVAL = 5\nDAGMAN_SUBMIT_DEPTH_FIRST = True\n",
	}
	files["flow.dag"] = dag
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			return 0, err
		}
	}
	if err := p.give("robot", dir); err != nil {
		return 0, err
	}
	began := time.Now()
	out, err := p.as(
		ctx,
		"robot",
		dir,
		nil,
		"condor_submit_dag",
		"-notification",
		"never",
		"-maxidle",
		"1000",
		"-config",
		"flow.config",
		"-insert_env",
		"_CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS=FS",
		"flow.dag",
	)
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(out, "submitted to cluster ")
	if !found {
		return 0, fmt.Errorf("condor_submit_dag printed %q", out)
	}
	cluster, _, _ := strings.Cut(rest, ".")
	for {
		left, err := p.as(ctx, "admin", "", nil, "condor_q", "-allusers", cluster, "-af", "JobStatus")
		if err != nil {
			return 0, err
		}
		if left == "" {
			break
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
	took := time.Since(began)
	code, err := p.as(ctx, "admin", "", nil, "condor_history", cluster, "-limit", "1", "-af", "ExitCode")
	if err != nil {
		return 0, err
	}
	if strings.TrimSpace(code) != "0" {
		said, _ := os.ReadFile(filepath.Join(dir, "a0.err"))
		return 0, fmt.Errorf("DAG %s ended with %q, its first node with: %s", cluster, strings.TrimSpace(code), said)
	}
	return took, nil
}

// manyNodes has an HTCWorkflow of n nodes sent, of which a factory keeps 1,000 in the queue, and removes it. The floor
// of a cross-check is one condor_q for those.
func manyNodes(ctx context.Context, p *place, n int) (figures []figure, err error) {
	d, err := p.working(ctx, "--reconcile-schedule=@every 15s")
	if err != nil {
		return nil, err
	}
	defer d.end(&err)
	restore, err := p.configure(calm)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, restore()) }()
	if err := d.forgetMaximum(); err != nil {
		return nil, err
	}
	w := twoSteps("many", n, "requirements = false\n")
	w.Spec.Sequences.Count, w.Spec.Steps = new(int32(n)), w.Spec.Steps[:1]
	var queued time.Duration
	began := time.Now()
	c, err := p.watched(ctx, w, func(w *v1alpha1.HTCWorkflow, _ course) (bool, error) {
		queued = time.Since(began)
		if w.Status.Phase.Terminal() {
			return false, fmt.Errorf("it is %s: %+v", w.Status.Phase, w.Status.Conditions)
		}
		return int(w.Status.Nodes.Idle) >= min(n, 1000), nil
	})
	if err != nil {
		return nil, err
	}
	say := func(f figure) { figures = append(figures, f) }
	say(figure{what: "created to sent", ours: c.sent.Seconds(), unit: "s", note: "load " + load()})
	say(figure{what: "created to 1,000 idle, as the status has it", ours: queued.Seconds(), unit: "s", aim: "60 s"})
	say(figure{what: "status writes per second", ours: float64(c.writes) / queued.Seconds(), unit: "/s", aim: "1 /s"})
	say(figure{what: "object", ours: float64(c.largest) / 1000, unit: "kB", aim: "100 kB"})
	if _, err := p.as(ctx, "admin", "", nil, "condor_hold", "-constraint", "HTCNode < 10"); err != nil {
		return figures, err
	}
	var took []time.Duration // by cross-checks of nodes, one of which may ask about all
	for n := d.passed(); len(took) < 3; n++ {
		ask, err := d.pass(ctx, n)
		if err != nil {
			return figures, err
		}
		if ask.name == "nodes' cross-check" {
			took = append(took, ask.took)
		}
	}
	raw, err := p.timed(ctx, "admin", "condor_q", "-allusers", "-constraint", "HTCWorkflowUID =!= undefined", "-json",
		"-attributes", "ClusterId,ProcId,Owner,JobStatus,HTCNode,HTCWorkflowUID,HTCWorkflowDAG,EnteredCurrentStatus")
	if err != nil {
		return figures, err
	}
	say(
		figure{
			what:  "cross-check of nodes, 1 % held, median of 3",
			ours:  quantile(took, .5),
			floor: raw.Seconds(),
			unit:  "s",
			aim:   "0.2x",
			note:  "load " + load(),
		},
	)
	say(figure{what: "the slowest", ours: quantile(took, 1), floor: raw.Seconds(), unit: "s"})
	began = time.Now()
	if err := p.jobs.Workflows(p.ours).Delete(ctx, w.Name, metav1.DeleteOptions{}); err != nil {
		return figures, err
	}
	for {
		left, err := p.jobs.Workflows(p.ours).List(ctx, metav1.ListOptions{})
		if err != nil {
			return figures, err
		}
		if len(left.Items) == 0 {
			break
		}
		select {
		case <-ctx.Done():
			return figures, ctx.Err()
		case <-time.After(time.Second):
		}
	}
	say(figure{what: "deleted to gone", ours: time.Since(began).Seconds(), unit: "s", note: "load " + load()})
	out, err := p.as(
		ctx,
		"admin",
		"",
		nil,
		"condor_q",
		"-allusers",
		"-constraint",
		"HTCWorkflowUID =!= undefined",
		"-af",
		"ClusterId",
	)
	if err != nil {
		return figures, err
	}
	if out != "" {
		return figures, fmt.Errorf("%d nodes are still in the queue", strings.Count(out, "\n"))
	}
	most, err := d.status("VmHWM")
	say(figure{what: "memory at most", ours: most / 1e6, unit: "MB", aim: "200 MB"})
	return figures, errors.Join(err, d.save("nodes.heap.pprof", "heap"))
}
