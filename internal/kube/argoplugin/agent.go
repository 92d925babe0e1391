package argoplugin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rs/zerolog"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Agent executes the steps of one workflow.
type Agent struct {
	cluster cluster
	log     zerolog.Logger
	now     func() time.Time

	objects  []cache.Store
	news     chan struct{} // something has changed
	refused  map[string]refusal
	progress time.Time // when it was last written how far steps are
}

// New returns the agent of a workflow; config is the plugin's own account.
func New(config *rest.Config, namespace, workflow string, log zerolog.Logger) (*Agent, error) {
	c, err := newCluster(config, namespace, workflow)
	if err != nil {
		return nil, err
	}
	return &Agent{cluster: c, log: log, now: time.Now, news: make(chan struct{}, 1), refused: map[string]refusal{}}, nil
}

const (
	// apart keeps passes from following each other more closely. Argo handles the whole workflow after every report.
	apart = time.Second
	// regularly there is a pass without news, and Argo hears how far steps are, as often as from its own agent.
	regularly = 10 * time.Second
	// leaving is how long a plugin that was told to end still looks for steps that are over. Argo ends it with the
	// workflow, a moment before or after it takes the steps out. Kubernetes grants 30 s.
	leaving = 20 * time.Second
)

// Run works until Argo has finished the workflow, or until some time after ctx has ended.
func (a *Agent) Run(ctx context.Context) error {
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	stores, synced := a.cluster.watch(work, a.tell)
	a.objects = stores
	told := ctx.Done()
	var end <-chan time.Time
	if !cache.WaitForCacheSync(told, synced...) {
		return nil // it has never done anything
	}
	for {
		finished, err := a.pass(work, end != nil)
		wait := regularly
		switch {
		case finished:
			a.log.Info().Msg("the workflow is finished")
			return nil
		case apierrors.IsConflict(err):
			wait = 0 // the task set has changed meanwhile
		case err != nil:
			a.log.Warn().Err(err).Msg("trying again")
		case end != nil:
			wait = 0
		}
		select {
		case <-end:
			return nil
		case <-time.After(apart):
		}
		select {
		case <-told:
			a.log.Info().Str("within", leaving.String()).Msg("stopping: looking for steps that have ended")
			told, end = nil, time.After(leaving)
		case <-end:
			return nil
		case <-a.news:
		case <-time.After(wait):
		}
	}
}

// tell makes the next pass begin soon.
func (a *Agent) tell() {
	select {
	case a.news <- struct{}{}:
	default:
	}
}

// pass compares the steps with their objects once, and creates, deletes and reports. An agent that was told to end only
// deletes.
func (a *Agent) pass(ctx context.Context, leaves bool) (finished bool, err error) {
	set, err := a.cluster.tasks(ctx)
	if apierrors.IsNotFound(err) {
		return false, nil // Argo makes it with the first step; without the workflow its objects go by themselves
	}
	if err != nil {
		return false, err
	}
	run, err := a.cluster.run(ctx)
	if err != nil {
		return false, err
	}
	s, err := a.gather(ctx, set, run)
	if err != nil {
		return false, err
	}
	p := decide(s)
	completed := run.Completed || set.Labels[completedLabel] == "true"
	failures := []error{a.delete(ctx, p.Delete)}
	if !leaves && !completed {
		failures = append(failures, a.create(ctx, run, p.Create), a.report(ctx, set, p.Report))
	}
	err = errors.Join(failures...)
	return completed && err == nil, err
}

// gather reads what the decision depends on. An object that is not in the cache may be younger than that.
func (a *Agent) gather(ctx context.Context, set *taskSet, run workflow) (situation, error) {
	s := situation{
		Workflow: run,
		Objects:  map[reference]*object{},
		Reported: set.Status.Nodes,
		Refused:  a.refused,
		Now:      a.now(),
	}
	maps.DeleteFunc(s.Reported, func(node string, _ report) bool { return run.Over[node] })
	for _, store := range a.objects {
		for _, known := range store.List() {
			o := objectOf(known)
			s.Objects[o.reference()] = o
		}
	}
	for _, node := range slices.Sorted(maps.Keys(set.Spec.Tasks)) {
		if set.Spec.Tasks[node].kind() == nil || run.Completed || run.Over[node] {
			continue
		}
		t := set.Spec.Tasks[node].task(node)
		s.Tasks = append(s.Tasks, t)
		ref := run.reference(t)
		if s.Objects[ref] != nil {
			continue
		}
		o, err := a.cluster.get(ctx, ref)
		switch {
		case err == nil:
			s.Objects[ref] = o
		case !apierrors.IsNotFound(err):
			return s, fmt.Errorf("read %s %s: %w", ref.kind.name, ref.name, err)
		}
	}
	return s, nil
}

func (a *Agent) delete(ctx context.Context, objects []*object) error {
	var failures []error
	for _, o := range objects {
		err := a.cluster.delete(ctx, o)
		failures = append(failures, err)
		a.log.Info().Err(err).Str(o.key, o.Name).Msg("its step has ended: deleted")
	}
	return errors.Join(failures...)
}

// create creates objects, and keeps what the apiserver has against them for the next report.
func (a *Agent) create(ctx context.Context, run workflow, tasks map[string]task) error {
	var failures []error
	for _, name := range slices.Sorted(maps.Keys(tasks)) {
		t := tasks[name]
		switch err := a.cluster.create(ctx, run, name, t); {
		case err == nil:
			delete(a.refused, t.Node)
			a.log.Info().Str(t.kind.key, name).Str("node", t.Node).Msg("created")
			a.tell()
		default:
			final := apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
				apierrors.IsRequestEntityTooLargeError(err)
			a.refused[t.Node] = refusal{Final: final, Message: err.Error()}
			if final {
				a.tell()
			} else {
				failures = append(failures, fmt.Errorf("create %s %s: %w", t.kind.name, name, err))
			}
		}
	}
	return errors.Join(failures...)
}

func (a *Agent) report(ctx context.Context, set *taskSet, all map[string]report) error {
	progress := a.now().Sub(a.progress) >= regularly
	reports := urgent(all, set.Status.Nodes, progress)
	if len(reports) == 0 {
		return nil
	}
	if err := a.cluster.report(ctx, set, reports); err != nil {
		return err
	}
	if progress {
		a.progress = a.now()
	}
	for node, r := range reports {
		a.log.Info().Str("node", node).Str("phase", string(r.Phase)).Msg(r.Message)
	}
	return nil
}
