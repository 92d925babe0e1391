package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab/parts"
)

// Place is where the jobs of a shape are sent, and as whom. The zero value is htcd's usual one.
type Place struct {
	Own    bool // from a namespace that has an account of its own
	Either bool // to one of the two schedds of an HTCPool
}

const kinitSecret = "kinit-secret"

// alice is the account of the second namespace, and at times that of the common Secret.
var alice = map[string][]byte{"username": []byte("alice"), "password": []byte(parts.Passwords["alice"])}

// script returns what runs a script: in an image of the registry, if it is sent as htcd's usual account.
func (p Place) script(source string) v1alpha1.Program {
	if p.Own {
		return inDirectory(source)
	}
	return v1alpha1.Program{Image: "centos", Command: "bash", Source: source}
}

// inDirectory returns what runs a script in an image that nobody has to unpack.
func inDirectory(source string) v1alpha1.Program {
	return v1alpha1.Program{Image: "/opt/image/busybox", Command: "sh", Source: source}
}

// poolOf returns spec.pool.
func (p *Player) poolOf(place Place) *v1alpha1.Pool {
	if !place.Either {
		return nil
	}
	return &v1alpha1.Pool{Name: p.Namespace}
}

// namespace returns where the objects of a place are.
func (p *Player) namespace(place Place) string {
	if place.Own {
		return p.Own
	}
	return p.Namespace
}

func (p *Player) namespaces() []string { return []string{p.Namespace, p.Own} }

// furnish gives the second namespace its account, makes the HTCPool, and restarts htcd so that it uses both.
func (p *Player) furnish(ctx context.Context) error {
	secret, err := p.Core.CoreV1().Secrets("default").Get(ctx, kinitSecret, metav1.GetOptions{})
	if err != nil {
		return err
	}
	p.usual, p.undo = secret.Data, append(p.undo, p.takeAway)
	overlay, err := filepath.Abs("../security/testdata/namespace-secrets")
	if err != nil {
		return err
	}
	if _, err := p.Lab.Run(ctx, "kubectl", "apply", "-k", overlay); err != nil {
		return err
	}
	own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: kinitSecret}, Data: alice}
	if _, err := p.Core.CoreV1().Secrets(p.Own).Create(ctx, own, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := p.secondSchedd(ctx); err != nil {
		return err
	}
	pool := &v1alpha1.HTCPool{ObjectMeta: metav1.ObjectMeta{Name: p.Namespace}, Spec: v1alpha1.HTCPoolSpec{
		Schedds: []v1alpha1.ScheddName{"127-0-0-1." + parts.Domain, parts.Schedd2Name},
	}}
	if _, err := p.Jobs.Pools().Create(ctx, pool, metav1.CreateOptions{}); err != nil {
		return err
	}
	flags := slices.Concat(htcdFlags, p.Flags, []string{"--namespace-secrets"})
	if p.Feed {
		more, err := p.startFeed(ctx)
		if err != nil {
			return err
		}
		flags = append(flags, more...)
	}
	return p.Lab.Part("htcd").Restart(ctx, flags...)
}

// secondSchedd starts it with an empty queue and other numbers of clusters than the usual one has.
func (p *Player) secondSchedd(ctx context.Context) error {
	second, config := p.Lab.Part("schedd2"), p.Lab.Path("condor", "schedd2.conf")
	before, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	if err := second.Stop(ctx); err != nil {
		return err
	}
	if _, err := p.sh(ctx, `rm -f "$1"/spool2/job_queue.log*`, p.Lab.Path("condor")); err != nil {
		return err
	}
	numbers := fmt.Appendf(before, "SCHEDD_CLUSTER_INITIAL_VALUE = %d\n", 1_000_000)
	if err := os.WriteFile(config, numbers, 0o644); err != nil {
		return err
	}
	p.undo = append(p.undo, func(ctx context.Context) error {
		return errors.Join(second.Stop(ctx), os.WriteFile(config, before, 0o644))
	})
	return second.Start(ctx)
}

// takeAway undoes furnish, except for the second schedd.
func (p *Player) takeAway(ctx context.Context) error {
	secrets := p.Core.CoreV1().Secrets(p.Own)
	err := secrets.Delete(ctx, kinitSecret, metav1.DeleteOptions{})
	free := []byte(`{"metadata":{"finalizers":null}}`)
	_, kept := secrets.Patch(ctx, kinitSecret, types.MergePatchType, free, metav1.PatchOptions{})
	if !apierrors.IsNotFound(kept) {
		err = errors.Join(err, kept)
	}
	err = errors.Join(err, p.Jobs.Pools().Delete(ctx, p.Namespace, metav1.DeleteOptions{}))
	for _, kind := range []string{"clusterrolebinding", "clusterrole"} {
		_, failed := p.Lab.Run(ctx, "kubectl", "delete", kind, "htcd-namespace-secrets")
		err = errors.Join(err, failed)
	}
	return errors.Join(err, p.setCommon(ctx, p.usual))
}

// setCommon changes the common Secret.
func (p *Player) setCommon(ctx context.Context, data map[string][]byte) error {
	patch, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return err
	}
	_, err = p.Core.CoreV1().
		Secrets("default").
		Patch(ctx, kinitSecret, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// alternate gives the common Secret its other account every now and then, for longer each time: a machine may be slow.
// What was sent as one of the two can be fetched and removed only while htcd has that one.
func (p *Player) alternate(ctx context.Context) error {
	p.mu.Lock()
	never := p.done[secretLane+" "+doAccount] == 0
	p.mu.Unlock()
	if never || time.Since(p.alternated) < p.turn {
		return nil
	}
	p.alternated, p.other, p.turn = time.Now(), !p.other, min(2*p.turn, 90*time.Second)
	p.Log("the common Secret has its other account: %t", p.other)
	if p.other {
		return p.setCommon(ctx, alice)
	}
	return p.setCommon(ctx, p.usual)
}

// stuck does what people do when nothing gets on.
func (p *Player) stuck(ctx context.Context) error { return errors.Join(p.alternate(ctx), p.letGo(ctx)) }

// letGo lets go of what has been deleted and waits for the hour.
func (p *Player) letGo(ctx context.Context) error {
	var errs []error
	for _, namespace := range p.namespaces() {
		jobs, workflows := p.Jobs.HTCJobs(namespace), p.Jobs.Workflows(namespace)
		allJobs, err := jobs.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		allWorkflows, err := workflows.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, job := range allJobs.Items {
			errs = append(errs, abandon(ctx, jobs, &job, job.Status.Conditions))
		}
		for _, w := range allWorkflows.Items {
			errs = append(errs, abandon(ctx, workflows, &w, w.Status.Conditions))
		}
	}
	return errors.Join(errs...)
}

type patcher[T any] interface {
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (T, error)
}

func abandon[T any](ctx context.Context, of patcher[T], o metav1.Object, conditions []metav1.Condition) error {
	if o.GetDeletionTimestamp() == nil || !hour(conditions) {
		return nil
	}
	const patch = `{"metadata":{"annotations":{"` + v1alpha1.AbandonAnnotation + `":"true"}}}`
	_, err := of.Patch(ctx, o.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// hour reports whether something waits because its schedd answers with another queue than when it began, for an hour:
// with the empty queue, which refuses everything, as htcd cannot know if it was killed meanwhile.
func hour(conditions []metav1.Condition) bool {
	return slices.ContainsFunc(conditions, func(c metav1.Condition) bool {
		return strings.Contains(c.Message, "another queue than when")
	})
}

// alternating does so until wait returns, and gives it its usual one then: an edit may wait for the end of jobs that
// are handed over by the launcher of the other account.
func (p *Player) alternating(ctx context.Context, wait func()) (err error) {
	waited := make(chan struct{})
	go func() { wait(); close(waited) }()
	for {
		select {
		case <-waited:
			p.other = false
			return errors.Join(err, p.setCommon(ctx, p.usual))
		case <-time.After(time.Second):
			err = errors.Join(err, p.alternate(ctx))
		}
	}
}

// emptyQueue restarts the schedd without its spool, as before that is mounted. It takes no jobs then: they would be
// lost with that queue.
func (p *Player) emptyQueue(ctx context.Context) error {
	return p.otherSpool(
		ctx,
		`cp -p "$1/server.conf" "$1/server.conf.away"; echo "MAX_JOBS_SUBMITTED = 0" >>"$1/server.conf"
		mv "$1/spool" "$1/spool.away"; mkdir "$1/spool"; chmod --reference="$1/spool.away" "$1/spool"
		chown --reference="$1/spool.away" "$1/spool"`,
	)
}

func (p *Player) ownQueue(ctx context.Context) error {
	if _, err := os.Stat(p.Lab.Path("condor", "spool.away")); err != nil {
		return nil // it has it
	}
	return p.otherSpool(
		ctx,
		`rm -rf "$1/spool"; mv "$1/spool.away" "$1/spool"; mv "$1/server.conf.away" "$1/server.conf"`,
	)
}

func (p *Player) otherSpool(ctx context.Context, script string) error {
	if err := p.Lab.Part("schedd").Stop(ctx); err != nil {
		return err
	}
	if _, err := p.sh(ctx, script, p.Lab.Path("condor")); err != nil {
		return err
	}
	return p.Lab.Part("schedd").Start(ctx)
}
