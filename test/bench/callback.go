package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab/parts"
)

// firstCluster is the first cluster of runs that no schedd has.
const firstCluster = 1_000_001

// poster sends callbacks as jobs do.
type poster struct {
	url    string
	client *http.Client
}

func (p *place) poster(connections int) (*poster, error) {
	client, err := parts.ReceiverClient(p.world)
	if err != nil {
		return nil, err
	}
	client.Transport.(*http.Transport).MaxIdleConnsPerHost = connections
	return &poster{fmt.Sprintf("https://127.0.0.1:%d/cloudevents", p.world.Ports.Receiver), client}, nil
}

func (s *poster) post(ctx context.Context, namespace, name, jobID string) error {
	event, err := json.Marshal(map[string]any{
		"specversion":     "1.0",
		"type":            "ch.cern.htc.job.ended",
		"source":          "/bench",
		"id":              jobID,
		"datacontenttype": "application/json",
		"data":            map[string]any{"name": name, "namespace": namespace, "jobid": jobID, "retcode": 0},
	})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(event))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/cloudevents+json")
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode/100 != 2 {
		err = fmt.Errorf("the receiver says %s: %s", answer.Status, said)
	}
	return err
}

// byHand is the minimum cost of a callback's way to the status: one durable commit, one PUT.
type byHand struct {
	mu   sync.Mutex
	conn *sql.Conn
	jobs v1alpha1.Interface
}

func (p *place) byHand(ctx context.Context, rows int) (*byHand, error) {
	dir, err := p.dir("root", "hand")
	if err != nil {
		return nil, err
	}
	conn, err := plainFile(ctx, filepath.Join(dir, "hand.db"), rows)
	return &byHand{conn: conn, jobs: p.jobs.HTCJobs(p.other)}, err
}

// plainFile makes a SQLite file as durable as the ledger, with one table with the ledger's columns.
func plainFile(ctx context.Context, path string, rows int) (*sql.Conn, error) {
	db, err := sql.Open(
		"sqlite",
		"file:"+path+"?_pragma=journal_mode(PERSIST)&_pragma=synchronous(FULL)&_pragma=cache_spill(0)",
	)
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	for _, statement := range []string{
		`CREATE TABLE procs (htcjobName, jobId, status, tempDir, run, proc, jobStatus, exitCode, exitSignal, reason, message, source, absent, changed, checked)`,
		fmt.Sprintf(`WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < %d)
			INSERT INTO procs SELECT 'name', '1.' || n, 1, '/data/staging', 1, n, 0, NULL, NULL, '', '', '', 0, 0, 0 FROM number`, max(rows, 1)),
	} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return nil, err
		}
	}
	return conn, nil
}

// end commits and PUTs, and returns when both are answered.
func (h *byHand) end(ctx context.Context, i int, job *v1alpha1.HTCJob) error {
	h.mu.Lock()
	_, err := h.conn.ExecContext(
		ctx,
		`UPDATE procs SET status = 4, exitCode = 0, reason = 'Completed', changed = ? WHERE rowid = ?`,
		time.Now().UnixMilli(),
		i+1,
	)
	h.mu.Unlock()
	if err != nil {
		return err
	}
	job = job.DeepCopy()
	job.Status.Phase, job.Status.Succeeded, job.Status.ObservedGeneration = v1alpha1.PhaseSucceeded, 1, job.Generation
	_, err = h.jobs.UpdateStatus(ctx, job, metav1.UpdateOptions{})
	return err
}

// callbackToStatus measures from the POST to the change seen by a watch, and the floor from the commit to the answer of
// the PUT: 1 a second, then rate a second, ours and the floor in turns of a second.
func callbackToStatus(ctx context.Context, p *place, rate int) (figures []figure, err error) {
	data, err := p.dir("htcd", "data")
	if err != nil {
		return nil, err
	}
	const slow = 15
	n := 10 * rate
	ours, err := p.create(ctx, p.ours, "ours", n+slow, 1)
	if err != nil {
		return nil, err
	}
	floors, err := p.create(ctx, p.other, "floor", n+slow, 1)
	if err != nil {
		return nil, err
	}
	if err := p.fill(
		ctx,
		data,
		ours,
		filling{cluster: func(i int) int { return firstCluster + i }, procs: 1},
	); err != nil {
		return nil, err
	}
	d, err := p.startHtcd(ctx, data, append(silent, "--namespace", p.ours)...)
	if err != nil {
		return nil, err
	}
	defer d.end(&err)
	if err := d.settled(ctx, len(ours)); err != nil {
		return nil, err
	}
	hand, err := p.byHand(ctx, n+slow)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	ended := map[string]time.Time{}
	stop, err := p.follow(ctx, p.ours, func(job *v1alpha1.HTCJob) {
		if job.Status.Phase == v1alpha1.PhaseSucceeded {
			mu.Lock()
			defer mu.Unlock()
			if _, known := ended[job.Name]; !known {
				ended[job.Name] = time.Now()
			}
		}
	})
	if err != nil {
		return nil, err
	}
	defer stop()
	sender, err := p.poster(64)
	if err != nil {
		return nil, err
	}

	measure := func(from, to, rate int, profile string) (waits, floor []time.Duration, err error) {
		before, err := cpuUsage()
		if err != nil {
			return nil, nil, err
		}
		start, began := time.Now(), make([]time.Time, len(ours))
		var group errgroup.Group
		done := func() {}
		if profile != "" {
			done = d.profile(profile, 10)
		}
		for block := from; block < to; block += rate {
			tick := time.NewTicker(time.Second / time.Duration(rate))
			for i := block; i < min(block+rate, to); i++ {
				<-tick.C
				group.Go(func() error {
					began[i] = time.Now()
					return sender.post(ctx, p.ours, ours[i].Name, fmt.Sprintf("%d.0", firstCluster+i))
				})
			}
			for i := block; i < min(block+rate, to); i++ {
				<-tick.C
				group.Go(func() error {
					at := time.Now()
					err := hand.end(ctx, i, floors[i])
					mu.Lock()
					defer mu.Unlock()
					floor = append(floor, time.Since(at))
					return err
				})
			}
			tick.Stop()
		}
		if err := group.Wait(); err != nil {
			return nil, nil, err
		}
		sent := time.Since(start)
		after, err := cpuUsage()
		if err != nil {
			return nil, nil, err
		}
		done()
		fmt.Printf("%d/s: %s\n", rate, perPair(after.since(before), sent, to-from))
		succeeded := func(job *v1alpha1.HTCJob) bool { return job.Status.Phase == v1alpha1.PhaseSucceeded }
		if err := p.told(ctx, p.ours, to, succeeded); err != nil {
			return nil, nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		for i := from; i < to; i++ {
			waits = append(waits, ended[ours[i].Name].Sub(began[i]))
		}
		return waits, floor, nil
	}
	for _, c := range []struct {
		from, to, rate int
		profile, aim   string
	}{{0, slow, 1, "", "1.3x"}, {slow, slow + n, rate, "callback", "50 ms"}} {
		waits, floor, err := measure(c.from, c.to, c.rate, c.profile)
		if err != nil {
			return figures, err
		}
		figures = append(
			figures,
			figure{
				what:  fmt.Sprintf("%d/s p50", c.rate),
				ours:  1000 * median(waits),
				floor: 1000 * median(floor),
				unit:  "ms",
				aim:   c.aim,
			},
			figure{
				what:  fmt.Sprintf("%d/s p99", c.rate),
				ours:  1000 * quantile(waits, 0.99),
				floor: 1000 * quantile(floor, 0.99),
				unit:  "ms",
				aim:   "50 ms",
			},
		)
	}
	return figures, nil
}

// perPair says what n callbacks and as many floors took of the machine's cores until the last was sent.
func perPair(used usage, took time.Duration, n int) string {
	var all time.Duration
	for _, one := range used {
		all += one
	}
	each := func(d time.Duration) string {
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond)/float64(n))
	}
	text := fmt.Sprintf(
		"%.2f of %d cores busy during %.1f s; a callback and a floor: %s",
		all.Seconds()/took.Seconds(),
		runtime.NumCPU(),
		took.Seconds(),
		each(all),
	)
	for _, name := range []string{"kube-apiserver", "htcd", "etcd", "bench"} {
		text += fmt.Sprintf(", %s %s", name, each(used[name]))
	}
	return text
}

// callbacks measures how fast callbacks from 64 senders are accepted, for one HTCJob of n. The floor writes the same
// rows into a table without index or trigger, with as many per commit as there are senders. The senders and HTTP alone
// are measured too: the same posts to a server that reads them and answers.
func callbacks(ctx context.Context, p *place, n int) (figures []figure, err error) {
	const senders = 64
	data, err := p.dir("htcd", "data")
	if err != nil {
		return nil, err
	}
	jobs, err := p.create(ctx, p.ours, "large", 1, n)
	if err != nil {
		return nil, err
	}
	if err := p.fill(ctx, data, jobs, filling{cluster: func(int) int { return firstCluster }, procs: n}); err != nil {
		return nil, err
	}
	d, err := p.startHtcd(ctx, data, append(silent, "--namespace", p.ours)...)
	if err != nil {
		return nil, err
	}
	defer d.end(&err)
	if err := d.settled(ctx, 1); err != nil {
		return nil, err
	}
	sender, err := p.poster(senders)
	if err != nil {
		return nil, err
	}
	dir, err := p.dir("root", "hand")
	if err != nil {
		return nil, err
	}
	plain, err := plainFile(ctx, filepath.Join(dir, "plain.db"), n)
	if err != nil {
		return nil, err
	}
	alone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer alone.Close()
	nowhere := &poster{alone.URL, sender.client}
	send := func(to *poster, from, end int) (time.Duration, error) {
		var next atomic.Int64
		next.Store(int64(from))
		began := time.Now()
		var group errgroup.Group
		for range senders {
			group.Go(func() error {
				for i := int(next.Add(1)) - 1; i < end; i = int(next.Add(1)) - 1 {
					if err := to.post(ctx, p.ours, jobs[0].Name, fmt.Sprintf("%d.%d", firstCluster, i)); err != nil {
						return err
					}
				}
				return nil
			})
		}
		err := group.Wait()
		return time.Since(began), err
	}
	done := d.profile("callbacks", 5)
	var took, floor, bare time.Duration
	const turns = 4
	for turn := range turns { // ours and the floor in turns
		from, to := n*turn/turns, n*(turn+1)/turns
		mine, err := send(sender, from, to)
		if err != nil {
			return nil, err
		}
		began := time.Now()
		if err := insertByHand(ctx, plain, from, to, senders); err != nil {
			return nil, err
		}
		inserted := time.Since(began)
		posted, err := send(nowhere, from, to)
		if err != nil {
			return nil, err
		}
		took, floor, bare = took+mine, floor+inserted, bare+posted
	}
	done()
	return []figure{
		{ours: float64(n) / took.Seconds(), floor: float64(n) / floor.Seconds(), unit: "/s", aim: "0.5 and 5,000/s",
			note: fmt.Sprintf("HTTP alone, with the same senders, %.0f /s", float64(n)/bare.Seconds())},
	}, nil
}

// insertByHand writes rows, batch of them per commit.
func insertByHand(ctx context.Context, conn *sql.Conn, from, to, batch int) error {
	statement, err := conn.PrepareContext(
		ctx,
		`INSERT INTO procs VALUES ('large', ?, 4, '/data/staging', 1, ?, 0, 0, NULL, 'Completed', 'exit code 0', 'callback', 0, ?, 0)`,
	)
	if err != nil {
		return err
	}
	defer statement.Close()
	for ; from < to; from += batch {
		if _, err := conn.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
			return err
		}
		for i := from; i < min(from+batch, to); i++ {
			if _, err := statement.ExecContext(
				ctx,
				fmt.Sprintf("%d.%d", firstCluster, i),
				i,
				time.Now().UnixMilli(),
			); err != nil {
				return err
			}
		}
		if _, err := conn.ExecContext(ctx, `COMMIT`); err != nil {
			return err
		}
	}
	return nil
}
