package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab"
)

// htcdFlags prepares htcd for being killed all the time: a new process leads at once, as a restarted container does,
// and waits of minutes become seconds.
var htcdFlags = []string{
	"--reconcile-schedule=@every 10s", "--refresh=3s", "--callback-deadline=20s",
	"--keep-free=16Mi", // for a small volume
}

// Player carries out a plan in a lab.
type Player struct {
	Lab       *lab.Lab
	Jobs      *v1alpha1.Client
	Core      kubernetes.Interface
	Namespace string
	Own       string                           // the namespace with an account of its own
	Flags     []string                         // of htcd, beside htcdFlags
	Feed      bool                             // there is one at the usual schedd
	Log       func(format string, args ...any) // logs every single action

	usual      map[string][]byte // the common Secret as it is usually
	other      bool              // alternate has given it the other account
	alternated time.Time
	turn       time.Duration // of an account
	onSmall    bool          // htcd has the small volume
	undo       []func(context.Context) error

	mu     sync.Mutex
	sent   []Sent
	done   map[string]int
	mended time.Time // when everything was repaired; zero before
}

// Play returns when everything has been done, restored and restarted, and the apiserver has accepted every edit.
func (p *Player) Play(ctx context.Context, plan Plan) (err error) {
	p.done = map[string]int{}
	read := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: configMap}, Data: configMapData}
	if _, err := p.Core.CoreV1().ConfigMaps(p.Namespace).Create(ctx, read, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := p.small(ctx); err != nil {
		return err
	}
	if err := p.furnish(ctx); err != nil {
		return err
	}
	began := time.Now()
	var all, edits sync.WaitGroup
	errs := make(chan error, len(plan.Disturbances)+2*len(plan.Trials))
	p.disturbAll(ctx, began, plan, &all, errs)
	for _, trial := range plan.Trials {
		all.Go(func() {
			sleep(ctx, time.Until(began.Add(trial.At)))
			err := p.try(ctx, trial)
			if err == nil && trial.Shape.Edited != nil {
				edits.Go(func() {
					sleep(ctx, trial.Later)
					if err := p.edit(ctx, trial); err != nil {
						errs <- fmt.Errorf("edit %s: %w", trial.Name, err)
					}
				})
			}
			if err == nil && trial.Shape.Paused {
				edits.Go(func() {
					for _, suspend := range []bool{true, false} {
						sleep(ctx, trial.Later)
						if err := p.suspend(ctx, trial, suspend); err != nil {
							errs <- fmt.Errorf("suspend %s: %w", trial.Name, err)
						}
					}
				})
			}
			if err == nil && trial.Shape.Again {
				edits.Go(func() {
					if err := p.again(ctx, trial); err != nil {
						errs <- fmt.Errorf("run %s again: %w", trial.Name, err)
					}
				})
			}
			if err != nil {
				errs <- fmt.Errorf("%s: %w", trial.Name, err)
			}
		})
	}
	return p.finish(ctx, &all, &edits, errs)
}

// finish mends everything once all has been sent and disturbed, and waits for the edits.
func (p *Player) finish(ctx context.Context, all, edits *sync.WaitGroup, errs chan error) error {
	all.Wait()
	err := p.mend(context.WithoutCancel(ctx))
	p.mu.Lock()
	p.mended, p.alternated = time.Now(), time.Now()
	p.mu.Unlock()
	err = errors.Join(err, p.alternating(ctx, edits.Wait))
	close(errs)
	for e := range errs {
		err = errors.Join(err, e)
	}
	return err
}

// disturbAll carries out the disturbances, those of a lane after one another.
func (p *Player) disturbAll(ctx context.Context, began time.Time, plan Plan, all *sync.WaitGroup, errs chan<- error) {
	lanes := map[string][]Disturbance{}
	for _, d := range plan.Disturbances {
		lanes[d.Lane] = append(lanes[d.Lane], d)
	}
	for _, lane := range lanes {
		all.Go(func() {
			for _, d := range lane {
				sleep(ctx, time.Until(began.Add(d.At)))
				if err := p.disturb(ctx, d); err != nil {
					errs <- fmt.Errorf("%s: %w", d, err)
					return
				}
			}
		})
	}
}

// disturb carries out one disturbance and ends it.
func (p *Player) disturb(ctx context.Context, d Disturbance) error {
	if ctx.Err() != nil {
		return nil
	}
	p.Log("%s", d)
	p.count(d.Lane + " " + d.Do)
	switch {
	case d.Do == doRevert, d.Do == doForget:
		return p.revert(ctx, d)
	case d.Lane == dagmanLane:
		return p.killOne(ctx, "DAGMan", `[ "$(cat "$p/comm" 2>/dev/null)" = condor_dagman ]`, d.Which)
	case d.Lane == launcherLane:
		return p.killOne(
			ctx,
			"launcher",
			`[ -f "$p/cwd/factory.sub" ] && [ "$(cat "$p/cwd/pid" 2>/dev/null)" = "${p#/proc/}" ]`,
			d.Which,
		)
	}
	part := p.Lab.Part(d.Lane)
	if d.Lane == callbacksLane {
		part = p.Lab.Part("receiver-net")
	}
	begin, end := part.Kill, part.Start
	switch d.Do {
	case doStop, doLose:
		begin = part.Stop
	case doFreeze:
		begin, end = part.Freeze, part.Thaw
	case doMix:
		begin = func(context.Context) error { return p.Lab.DisturbCallbacks(d.Callbacks) }
		end = func(context.Context) error { return p.Lab.DisturbCallbacks(lab.Callbacks{}) }
	case doWrong:
		begin = func(ctx context.Context) error {
			return p.setCommon(ctx, map[string][]byte{"password": []byte("not it")})
		}
		end = func(ctx context.Context) error { return p.setCommon(ctx, p.usual) }
	case doAccount:
		begin = func(ctx context.Context) error { return p.setCommon(ctx, alice) }
		end = func(ctx context.Context) error { return p.setCommon(ctx, p.usual) }
	case doEmpty:
		begin, end = p.emptyQueue, p.ownQueue
	case doFill:
		begin, end = func(ctx context.Context) error { return p.fill(ctx, d.Leaves) }, p.empty
	case doOlder:
		begin, end = p.olderSpool, p.newestSpool
	case doBigAd:
		begin, end = p.send, p.remove
	}
	if err := begin(ctx); err != nil {
		return err
	}
	sleep(ctx, d.For)
	err := end(ctx)
	p.Log("%s: over", d)
	return err
}

// mend restores everything and starts what is stopped. Restore gives htcd back its own flags at the very end. A huge ad
// that was to be removed while the schedd showed an empty queue has come back with its own.
func (p *Player) mend(ctx context.Context) error {
	p.Log("mend")
	return errors.Join(
		p.setCommon(ctx, p.usual),
		p.Lab.DisturbCallbacks(lab.Callbacks{}),
		p.Lab.Part("receiver-net").Start(ctx),
		p.ownQueue(ctx),
		p.Lab.Part("schedd").Start(ctx),
		p.Lab.Part("schedd2").Start(ctx),
		p.remove(ctx),
		p.empty(ctx),
		p.mendFeed(ctx),
		p.Lab.Part("htcd").Start(ctx),
	)
}

// Restore gives htcd back its own volume and flags, and the lab what it had.
func (p *Player) Restore(ctx context.Context) error {
	var err error
	for _, undo := range slices.Backward(p.undo) {
		err = errors.Join(err, undo(ctx))
	}
	return errors.Join(err, p.large(ctx), p.Lab.Part("htcd").Restart(ctx))
}

// patience limits how long an edit is tried once everything is repaired: the apiserver refuses it while jobs are
// active.
func patience(trials int) time.Duration { return 10*time.Minute + inTurn(trials) }

// inTurn is how much longer it takes with more trials, which wait for one another: the output of two is fetched at a
// time, and half of them need the account that the common Secret does not have just then.
func inTurn(trials int) time.Duration { return time.Duration(trials) * 2 * time.Second }

// givesUp reports whether an edit of what has these conditions is no longer tried.
func (p *Player) givesUp(ctx context.Context, conditions []metav1.Condition) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return ctx.Err() != nil ||
		!p.mended.IsZero() && (hour(conditions) || time.Since(p.mended) > patience(len(p.sent)))
}

// try carries out the user's part in the life of one HTCJob.
func (p *Player) try(ctx context.Context, trial Trial) error {
	if ctx.Err() != nil {
		return nil
	}
	place := trial.Shape.Place
	jobs := p.Jobs.HTCJobs(p.namespace(place))
	job, err := jobs.Create(ctx, &v1alpha1.HTCJob{
		ObjectMeta: metav1.ObjectMeta{Name: trial.Name},
		Spec:       trial.Shape.Spec.object(place, p.poolOf(place)),
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	p.Log("%s: created %q as %s", trial.Name, trial.Shape.Name, job.UID)
	if trial.Shape.Deleted {
		sleep(ctx, trial.Later)
		p.Log("%s: delete", trial.Name)
		p.count("HTCJob deleted")
		err = jobs.Delete(ctx, trial.Name, metav1.DeleteOptions{})
	}
	p.add(Sent{Trial: trial, UID: string(job.UID), Deleted: trial.Shape.Deleted})
	return err
}

func (p *Player) edit(ctx context.Context, trial Trial) error {
	place := trial.Shape.Place
	// A JSON patch replaces the complete spec: a merge patch would keep what the edit omits.
	patch, err := json.Marshal(
		[]map[string]any{
			{"op": "replace", "path": "/spec", "value": trial.Shape.Edited.object(place, p.poolOf(place))},
		},
	)
	if err != nil {
		return err
	}
	jobs := p.Jobs.HTCJobs(p.namespace(place))
	for {
		_, err := jobs.Patch(ctx, trial.Name, types.JSONPatchType, patch, metav1.PatchOptions{})
		if err == nil {
			p.Log("%s: edited", trial.Name)
			p.count("HTCJob edited")
			p.edited(trial)
			return nil
		}
		if !apierrors.IsInvalid(err) {
			return err
		}
		job, got := jobs.Get(ctx, trial.Name, metav1.GetOptions{})
		if got != nil {
			return got
		}
		if p.givesUp(ctx, job.Status.Conditions) {
			if hour(job.Status.Conditions) {
				return nil
			}
			return err
		}
		sleep(ctx, 500*time.Millisecond)
	}
}

// again asks for another attempt of what has failed, as soon as all has ended.
func (p *Player) again(ctx context.Context, trial Trial) error {
	patch := fmt.Appendf(
		nil,
		`{"metadata":{"annotations":{%q:"1",%q:"failed"}}}`,
		v1alpha1.RerunAnnotation,
		v1alpha1.RerunProcsAnnotation,
	)
	jobs := p.Jobs.HTCJobs(p.namespace(trial.Shape.Place))
	for {
		job, err := jobs.Get(ctx, trial.Name, metav1.GetOptions{})
		if err == nil && job.Status.Phase.Terminal() {
			_, err = jobs.Patch(ctx, trial.Name, types.MergePatchType, patch, metav1.PatchOptions{})
			p.Log("%s: what has failed runs again", trial.Name)
			p.count("HTCJob run again in part")
			return err
		}
		if err != nil || p.givesUp(ctx, job.Status.Conditions) {
			return err
		}
		sleep(ctx, 500*time.Millisecond)
	}
}

func (p *Player) suspend(ctx context.Context, trial Trial, is bool) error {
	patch := fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, is)
	jobs := p.Jobs.HTCJobs(p.namespace(trial.Shape.Place))
	_, err := jobs.Patch(ctx, trial.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	p.Log("%s: suspend %t", trial.Name, is)
	p.count(fmt.Sprintf("HTCJob suspended %t", is))
	return err
}

func (p *Player) add(s Sent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, s)
}

func (p *Player) edited(trial Trial) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.sent {
		if p.sent[i].Trial.Name == trial.Name {
			p.sent[i].Edited = true
		}
	}
}

func (p *Player) count(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done[what]++
}

// Sent returns what became of the trials so far.
func (p *Player) Sent() []Sent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Sent(nil), p.sent...)
}

// Done returns counts of what was done so far, in fmt's order of map keys.
func (p *Player) Done() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprint(p.done)
}

func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
