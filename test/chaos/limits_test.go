package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// queueSample is one look at the queue.
type queueSample struct {
	at   time.Time
	open int
}

// TestLimitsHold lets HTCJobs compete for the limits of two pools while htcd and the schedd are killed: one in three,
// of two namespaces, by way of a pool with newPerMinute, the others by way of one with maxOpen. These are of one
// namespace: jobs that wait for a slot would count for another only up to their namespace's share, and there could be
// more.
func TestLimitsHold(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	// The latter per minute; few HTCJobs must reach them, too.
	mostOpen, mostNew := min(50, *trials/4), min(30, *trials/6)
	random := rand.New(rand.NewPCG(*seed, 0))
	began := time.Now()
	p := newPlayer(t, began)
	ctx := t.Context()
	open := p.pool(t, "open", v1alpha1.PoolLimits{MaxOpen: new(int32(mostOpen))})
	rate := p.pool(t, "rate", v1alpha1.PoolLimits{NewPerMinute: new(int32(mostNew))})
	require.NoError(t, p.Lab.Part("htcd").Restart(ctx, htcdFlags...))

	work, over := context.WithCancel(ctx)
	defer over()
	var background sync.WaitGroup
	var samples []queueSample
	var kills [2]int
	background.Go(func() { samples = p.sample(work, open) })
	for i, part := range []string{"htcd", "schedd"} {
		pause := time.Duration(15+30*i) * time.Second
		background.Go(func() {
			for work.Err() == nil {
				sleep(work, pause/2+time.Duration(random.Int64N(int64(pause))))
				if work.Err() == nil && p.Lab.Part(part).Kill(ctx) == nil {
					kills[i]++
					sleep(work, 2*time.Second)
				}
				if err := p.Lab.Part(part).Start(ctx); err != nil {
					t.Errorf("start %s: %v", part, err)
				}
			}
		})
	}
	namespaces := []string{p.Namespace, trial.Namespace(t)}
	for i := range *trials {
		job := trial.Manifest(fmt.Sprintf("job-%d", i), "sleep 5\n", trial.Unpacked)
		job.Spec.Pool = &v1alpha1.Pool{Name: open}
		namespace := namespaces[0]
		if i%3 == 0 {
			job.Spec.Pool.Name, namespace = rate, namespaces[i/3%2]
		}
		_, err := p.Jobs.HTCJobs(namespace).Create(ctx, job, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	p.ended(t, began, namespaces)
	over()
	background.Wait()
	require.NoError(t, p.Lab.Part("schedd").Start(ctx))
	require.NoError(t, p.Lab.Part("htcd").Start(ctx))

	sent := map[string][]string{} // job ids by UID
	for _, job := range p.everSent(t, open, rate) {
		sent[job.uid] = append(sent[job.uid], job.id)
	}
	require.Len(t, sent, *trials, "none is lost")
	for uid, ids := range sent {
		require.Len(t, ids, 1, "HTCJob %s was sent twice: %v", uid, ids)
	}
	most := slices.MaxFunc(samples, func(a, b queueSample) int { return a.open - b.open })
	busiest := busiestMinute(p.everSent(t, rate))
	fmt.Printf(
		"CHAOS_SEED=%d N=%d: %s, htcd killed %d times, schedd %d; in %d samples of the queue at most %d of %d open; at most %d of %d sent in a minute\n",
		*seed,
		*trials,
		time.Since(began).Round(time.Second),
		kills[0],
		kills[1],
		len(samples),
		most.open,
		mostOpen,
		busiest,
		mostNew,
	)
	require.LessOrEqual(t, most.open, mostOpen, "at %s", most.at)
	require.LessOrEqual(t, busiest, mostNew)
	require.NotEmpty(t, samples)
}

// pool creates an HTCPool and returns its name.
func (p *Player) pool(t *testing.T, suffix string, limits v1alpha1.PoolLimits) string {
	t.Helper()
	pool := &v1alpha1.HTCPool{
		ObjectMeta: metav1.ObjectMeta{Name: p.Namespace + "-" + suffix},
		Spec:       v1alpha1.HTCPoolSpec{Limits: &limits},
	}
	_, err := p.Jobs.Pools().Create(t.Context(), pool, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, p.Jobs.Pools().Delete(context.WithoutCancel(t.Context()), pool.Name, metav1.DeleteOptions{}))
	})
	return pool.Name
}

// sample counts the open jobs of a pool in the queue until ctx ends. While the schedd is away there is nothing to
// count.
func (p *Player) sample(ctx context.Context, pool string) (all []queueSample) {
	for ctx.Err() == nil {
		out, err := p.Lab.Run(
			ctx,
			"condor_q",
			"-allusers",
			"-constraint",
			fmt.Sprintf("HTCPool == %q && JobStatus =!= 3 && JobStatus =!= 4", pool),
			"-af",
			"ClusterId",
			"JobStatus",
		)
		if err == nil {
			all = append(all, queueSample{time.Now(), strings.Count(out, "\n")})
		}
		sleep(ctx, 300*time.Millisecond)
	}
	return all
}

// ended waits until all HTCJobs have succeeded.
func (p *Player) ended(t *testing.T, began time.Time, namespaces []string) {
	t.Helper()
	said := time.Now()
	for last, progress := -1, time.Now(); ; {
		phases := map[v1alpha1.Phase]int{}
		for _, namespace := range namespaces {
			list, err := p.Jobs.HTCJobs(namespace).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			for _, job := range list.Items {
				phases[job.Status.Phase]++
			}
		}
		done := phases[v1alpha1.PhaseSucceeded]
		if time.Since(said) > 15*time.Second {
			said = time.Now()
			fmt.Printf("[%4.0fs] %v\n", time.Since(began).Seconds(), phases)
		}
		if done == *trials {
			return
		}
		if done != last {
			last, progress = done, time.Now()
		}
		require.Less(t, time.Since(progress), patience(*trials), "nothing ends any more: %v", phases)
		sleep(t.Context(), time.Second)
	}
}

// sentJob is a job that was in the queue at any time.
type sentJob struct {
	id, uid string
	queued  int // QDate
}

// everSent lists all jobs of some pools in queue and history, without those whose files never arrived, which were
// removed and sent again.
func (p *Player) everSent(t *testing.T, pools ...string) (all []sentJob) {
	t.Helper()
	seen := map[string]bool{}
	constraint := fmt.Sprintf("stringListMember(HTCPool, %q)", strings.Join(pools, ","))
	for _, tool := range []string{"condor_q", "condor_history"} {
		args := []string{
			"-constraint",
			constraint,
			"-af",
			`strcat(ClusterId, ".", ProcId)`,
			"HTCJobUID",
			"QDate",
			"JobStatus",
			"NumJobStarts",
		}
		if tool == "condor_q" {
			args = append([]string{"-allusers"}, args...)
		}
		out, err := p.Lab.Run(t.Context(), tool, args...)
		require.NoError(t, err)
		for line := range strings.Lines(out) {
			f := strings.Fields(line)
			require.Len(t, f, 5)
			if f[3] == "3" && (f[4] == "0" || f[4] == "undefined") {
				continue
			}
			queued, err := strconv.Atoi(f[2])
			require.NoError(t, err)
			if !seen[f[0]] {
				seen[f[0]] = true
				all = append(all, sentJob{f[0], f[1], queued})
			}
		}
	}
	return all
}

// busiestMinute returns the most jobs that came into the queue within less than a minute; times are whole seconds.
func busiestMinute(jobs []sentJob) (most int) {
	slices.SortFunc(jobs, func(a, b sentJob) int { return a.queued - b.queued })
	first := 0
	for i, job := range jobs {
		for job.queued-jobs[first].queued >= 59 {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}
