package chaos

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/trial"
)

var (
	trials = flag.Int("trials", 12, "how many HTCJobs")
	seed   = flag.Uint64("seed", 0, "what decides everything; 0: the clock")
	feed   = flag.Bool("feed", false, "htcd has a feed at the usual schedd, which is disturbed, too")
)

// settling limits how long nothing may end while something still moves. The longest that htcd waits is the minute in
// which a half-spooled cluster might still be completed.
func settling() time.Duration { return 3*time.Minute + inTurn(*trials) }

func TestNothingIsDoubledLostWrongOrLeftOver(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	began := time.Now()
	say := func(format string, args ...any) {
		fmt.Printf("[%4.0fs] %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	p := newPlayer(t, began)
	p.Feed = *feed
	plan := NewPlan(*seed, *trials, p.Feed)
	say(
		"CHAOS_SEED=%d N=%d: %d disturbances; every step is in %s",
		*seed,
		*trials,
		len(plan.Disturbances),
		stepsFile(p.Lab),
	)

	telling, stop := context.WithCancel(t.Context())
	told := make(chan struct{})
	go func() { tell(telling, p, say); close(told) }()
	err := p.Play(t.Context(), plan)
	stop()
	<-told
	require.NoError(t, err)
	say("all %d sent, %s; now everything is left alone", len(p.Sent()), p.Done())

	e, err := rest(t.Context(), p, say)
	require.NoError(t, err)
	findings := Judge(e)
	waiting := 0
	for _, job := range e.Objects {
		if hour(job.Status.Conditions) {
			waiting++
		}
	}
	say("%d wait for an hour because of the empty queue", waiting)
	if p.Feed {
		log, err := os.ReadFile(p.Lab.Log("htcd"))
		require.NoError(t, err)
		times := strings.Count(string(log), "the cross-check reads the feed")
		say("htcd has begun to read the feed %d times", times)
		require.Positive(t, times)
	}
	say("CHAOS_SEED=%d N=%d", *seed, *trials)
	require.NoError(t, Print(os.Stdout, shapeNames(), e.shapes(), findings))
	for _, f := range findings {
		fmt.Printf("%s: %s (%s): %s\n", f.Fault, f.Trial, f.Shape, f.What)
	}
	explain(p, e, findings)
	if len(findings) > 0 && os.Getenv("LAB_KEEP") != "" {
		require.Empty(t, findings, "the namespace %s is left as it is", p.Namespace)
	}

	// Finally everything is deleted: nothing of any trial may be left.
	left := deleteAll(t, p, e, say)
	say("after the deletion of them all: %d left over", len(left))
	for _, f := range left {
		fmt.Printf("%s: %s (%s): %s\n", f.Fault, f.Trial, f.Shape, f.What)
	}
	require.Empty(t, append(findings, left...))
}

// newPlayer makes a namespace for the run. Both stay if something was found and the lab should be kept.
func newPlayer(t *testing.T, began time.Time) *Player {
	t.Helper()
	running, err := lab.Find()
	require.NoError(t, err)
	config := trial.Config(t)
	core, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	jobs, err := v1alpha1.NewClient(config)
	require.NoError(t, err)
	var namespaces [2]string
	for i := range namespaces {
		namespace, err := core.CoreV1().Namespaces().Create(t.Context(),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "chaos-"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		namespaces[i] = namespace.Name
	}
	steps, err := os.Create(stepsFile(running))
	require.NoError(t, err)
	p := &Player{
		Lab: running, Jobs: jobs, Core: core, Namespace: namespaces[0], Own: namespaces[1],
		turn: 20 * time.Second,
		Log: func(format string, args ...any) {
			now := time.Now()
			fmt.Fprintf(
				steps,
				"%s [%7.2fs] %s\n",
				now.UTC().Format(time.RFC3339Nano),
				now.Sub(began).Seconds(),
				fmt.Sprintf(format, args...),
			)
		},
	}
	t.Cleanup(func() {
		defer steps.Close()
		if t.Failed() && os.Getenv("LAB_KEEP") != "" {
			return
		}
		ctx := context.WithoutCancel(t.Context())
		require.NoError(t, p.Restore(ctx))
		for _, namespace := range namespaces {
			require.NoError(t, core.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{}))
		}
	})
	return p
}

func stepsFile(l *lab.Lab) string { return l.Log("chaos") }

// tell prints progress until ctx ends.
func tell(ctx context.Context, p *Player, say func(string, ...any)) {
	for tick := time.NewTicker(15 * time.Second); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		phases := map[v1alpha1.Phase]int{}
		for _, namespace := range p.namespaces() {
			list, err := p.Jobs.HTCJobs(namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				continue
			}
			for _, job := range list.Items {
				phases[job.Status.Phase]++
			}
		}
		say("%v; %s", phases, p.Done())
	}
}

// rest waits until nothing moves and returns the evidence; whatever moves too long is for the judge.
func rest(ctx context.Context, p *Player, say func(string, ...any)) (e Evidence, err error) {
	err = untilRest(ctx, say, func() (moving, err error) {
		if e, err = p.gather(ctx); err != nil {
			return nil, err
		}
		e.Sent = p.Sent()
		return settled(e), nil
	}, p.stuck)
	if err == nil {
		e.Kept, err = p.kept(ctx, "out")
	}
	return e, err
}

// deleteAll deletes every HTCJob and returns findings about what is left of them.
func deleteAll(t *testing.T, p *Player, e Evidence, say func(string, ...any)) []Finding {
	t.Helper()
	for i := range e.Sent {
		if e.Sent[i].Deleted {
			continue
		}
		e.Sent[i].Deleted = true
		sent := e.Sent[i].Trial
		jobs := p.Jobs.HTCJobs(p.namespace(sent.Shape.Place))
		require.NoError(t, jobs.Delete(t.Context(), sent.Name, metav1.DeleteOptions{}))
	}
	p.mu.Lock()
	p.sent = e.Sent
	p.mu.Unlock()
	after, err := rest(t.Context(), p, say)
	require.NoError(t, err)
	var left []Finding
	for _, f := range Judge(after) {
		if f.Fault == LeftOver {
			left = append(left, f)
		}
	}
	return left
}

// explain prints what helps to investigate findings: the ads, rows and log lines of each trial that has one.
func explain(p *Player, e Evidence, findings []Finding) {
	said := readLines(p)
	told := map[string]bool{}
	for _, f := range findings {
		if told[f.Trial] {
			continue
		}
		told[f.Trial] = true
		fmt.Printf("\n%s (%s)\n", f.Trial, f.Shape)
		uid := f.Trial
		for _, s := range e.Sent {
			if s.Trial.Name == f.Trial {
				uid = s.UID
			}
		}
		for _, ad := range e.Ads {
			if ad.UID == uid {
				fmt.Println("  job", ad)
			}
		}
		for _, r := range e.Runs {
			if r.UID == uid {
				fmt.Printf("  run %+v\n", r)
			}
		}
		said.print(p, f.Trial, uid)
	}
}

// untilRest looks until nothing has moved twice, some time apart, since only then would a second submission show; or
// until what moves has not become less for too long. It calls stuck while that has not become less for a while.
func untilRest(
	ctx context.Context,
	say func(string, ...any),
	look func() (moving, err error),
	stuck func(context.Context) error,
) error {
	quiet, least, said := 0, math.MaxInt, time.Time{}
	for deadline := time.Now(); ; {
		moving, err := look()
		if err != nil {
			return err
		}
		n := 0
		if quiet++; moving != nil {
			quiet, n = 0, strings.Count(moving.Error(), "\n")+1
		}
		if n < least {
			least, deadline = n, time.Now().Add(settling())
		}
		if quiet == 2 || time.Now().After(deadline) {
			return nil
		}
		if moving != nil && time.Until(deadline) < settling()-20*time.Second {
			if err := stuck(ctx); err != nil {
				return err
			}
		}
		if moving != nil && time.Since(said) > 14*time.Second {
			said = time.Now()
			say("%d are still moving: %.300s", n, strings.ReplaceAll(moving.Error(), "\n", ", "))
		}
		sleep(ctx, 3*time.Second)
	}
}

// lines are what the run and htcd have written down.
type lines struct{ steps, log string }

func readLines(p *Player) lines {
	log, _ := os.ReadFile(p.Lab.Log("htcd"))
	steps, _ := os.ReadFile(stepsFile(p.Lab))
	return lines{string(steps), string(log)}
}

// print prints those about a trial.
func (l lines) print(p *Player, name, uid string) {
	for line := range strings.Lines(l.steps) {
		if strings.Contains(line, name+":") {
			fmt.Print("  step ", line)
		}
	}
	for line := range strings.Lines(l.log) {
		of := func(namespace string) bool { return strings.Contains(line, namespace+"/"+name+`"`) }
		if slices.ContainsFunc(p.namespaces(), of) || strings.Contains(line, uid) {
			fmt.Print("  htcd ", line)
		}
	}
}
