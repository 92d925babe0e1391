package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// mix is what a soak sends, one after another: HTCJobs that succeed and fail, have several jobs, are refused, are held,
// and are deleted while they wait.
var mix = []struct {
	procs  int
	source string
	opts   string
}{
	{1, "exit 0\n", ""},
	{1, "exit 3\n", ""},
	{5, "exit 0\n", ""},
	{1, "sleep 10\n", ""},
	{1, "exit 0\n", "executable = /bin/sh\n"}, // refused
	{2, "exit 0\n", "requirements = false\n"}, // waits until it is deleted
	{1, "exit 1\n", "max_retries = 1\n"},
	{1, "exit 1\n", "on_exit_hold = ExitCode == 1\n"},
}

// every is the interval between HTCJobs, and life how long each is left after that.
const (
	every = 2 * time.Second
	life  = 90 * time.Second
)

// sample is what must level off, and what etcd's data take. Events are part of those, and live for an hour.
type sample struct {
	at                                            time.Duration
	rss, files, goroutines, ledger, present, etcd float64
}

const sampleHead = "| minute | RSS [MB] | file handles | goroutines | ledger [MB] | etcd [MB] | HTCJobs | load |\n|---|---|---|---|---|---|---|---|"

func (s sample) line(jobs string) string {
	return fmt.Sprintf(
		"| %.1f | %.1f | %.0f | %.0f | %.2f | %.1f | %s | %s |",
		s.at.Minutes(),
		s.rss,
		s.files,
		s.goroutines,
		s.ledger,
		s.etcd,
		jobs,
		load(),
	)
}

// quantities lists what is judged, and by how much each may grow regardless of the share: small values vary by chance.
var quantities = []struct {
	name  string
	of    func(sample) float64
	slack float64
}{
	{"RSS [MB]", func(s sample) float64 { return s.rss }, 8},
	{"file handles", func(s sample) float64 { return s.files }, 6},
	{"goroutines", func(s sample) float64 { return s.goroutines }, 15},
	{"ledger [MB]", func(s sample) float64 { return s.ledger }, 0.5},
}

// soak sends the mix for a time and fails if htcd has not levelled off, i.e. if the last third of the samples is higher
// than the second.
func soak(ctx context.Context, p *place, length time.Duration) (err error) {
	data, err := p.dir("htcd", "data")
	if err != nil {
		return err
	}
	d, err := p.startHtcd(ctx, data, "--namespace", p.ours)
	if err != nil {
		return err
	}
	defer d.end(&err)
	file, err := os.Create(filepath.Join(p.results, "soak.md"))
	if err != nil {
		return err
	}
	defer file.Close()
	say := func(line string) {
		fmt.Println(line)
		fmt.Fprintln(file, line)
	}
	say(sampleHead)
	var samples []sample
	began := time.Now()
	send, look := time.NewTicker(every), time.NewTicker(max(length/60, 5*time.Second))
	defer send.Stop()
	defer look.Stop()
	for sent := 0; time.Since(began) < length; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-d.ended:
			d.ended <- err
			return fmt.Errorf("htcd ended: %w", err)
		case <-send.C:
			if err := p.step(ctx, sent); err != nil {
				return err
			}
			sent++
		case <-look.C:
			s, err := p.sample(ctx, d, data, time.Since(began))
			if err != nil {
				return err
			}
			samples = append(samples, s)
			say(s.line(fmt.Sprintf("%.0f", s.present)))
		}
	}
	if err := d.save("soak.heap.pprof", "heap"); err != nil {
		return err
	}
	rising := judge(samples)
	for _, line := range rising {
		say("rising: " + line)
	}
	if len(rising) > 0 {
		return errors.New("not level: " + strings.Join(rising, "; "))
	}
	say(fmt.Sprintf("\nlevel over %.0f minutes", length.Minutes()))
	return nil
}

// step sends the nth HTCJob and deletes those whose time has come.
func (p *place) step(ctx context.Context, n int) error {
	jobs := p.jobs.HTCJobs(p.ours)
	m := mix[n%len(mix)]
	job := htcjob(fmt.Sprintf("soak-%06d", n), m.procs)
	job.Spec.Script.Source, job.Spec.HTCOpts = m.source, m.opts
	if _, err := jobs.Create(ctx, job, metav1.CreateOptions{}); err != nil {
		return err
	}
	if old := n - int(life/every); old >= 0 {
		return jobs.Delete(ctx, fmt.Sprintf("soak-%06d", old), metav1.DeleteOptions{})
	}
	return nil
}

func (p *place) sample(ctx context.Context, d *daemon, data string, at time.Duration) (sample, error) {
	rss, err1 := d.status("VmRSS")
	files, err2 := d.files()
	goroutines, err3 := d.goroutines()
	info, err4 := os.Stat(filepath.Join(data, "sqlite", "htcjobs.db"))
	var list []v1alpha1.HTCJob
	list, err5 := p.list(ctx, p.ours)
	etcd, err6 := p.etcd(ctx)
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		return sample{}, err
	}
	return sample{
		at,
		rss / 1e6,
		float64(files),
		float64(goroutines),
		float64(info.Size()) / 1e6,
		float64(len(list)),
		etcd / 1e6,
	}, nil
}

// etcd returns how many bytes of etcd's file are in use.
func (p *place) etcd(ctx context.Context) (bytes float64, err error) {
	const name = "etcd_mvcc_db_total_size_in_use_in_bytes "
	found := false
	err = metrics(ctx, p.world.Ports.EtcdClient, func(line string) error {
		value, is := strings.CutPrefix(line, name)
		if !is {
			return nil
		}
		found = true
		bytes, err = strconv.ParseFloat(value, 64)
		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("etcd has no metric %s", name)
	}
	return bytes, err
}

// judge returns what has not levelled off: quantities whose median in the last third is more than a tenth, and more
// than the slack, above that in the second third. The first third is for warming up.
func judge(samples []sample) []string {
	third := len(samples) / 3
	if third == 0 {
		return []string{"too few samples to tell"}
	}
	var rising []string
	for _, q := range quantities {
		middle := func(part []sample) float64 {
			part = slices.SortedFunc(
				slices.Values(part),
				func(a, b sample) int { return cmp.Compare(q.of(a), q.of(b)) },
			)
			return q.of(part[len(part)/2])
		}
		before, after := middle(samples[third:2*third]), middle(samples[len(samples)-third:])
		if after > before*1.1 && after-before > q.slack {
			rising = append(rising, fmt.Sprintf("%s from %.4g to %.4g", q.name, before, after))
		}
	}
	return rising
}
