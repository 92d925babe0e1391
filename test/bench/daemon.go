package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"htc.cern.ch/htcd/test/lab/parts"
)

// daemon is an htcd of ours, with the lab's configuration and its own ledger.
type daemon struct {
	p     *place
	cmd   *exec.Cmd
	began time.Time
	took  time.Duration // from exec to ready
	ended chan error

	mu     sync.Mutex
	pprof  string // where its profiles are
	passes []pass
	news   chan struct{} // closed and replaced with every pass
}

// pass is one check of the schedd, as reported by htcd's log.
type pass struct {
	name string
	took time.Duration
}

// silent are the flags of an htcd that checks the schedd only once, at its start.
var silent = []string{"--reconcile-schedule=@every 1000h", "--refresh=1000h"}

// startHtcd starts one on the data directory and returns when it is ready.
func (p *place) startHtcd(ctx context.Context, data string, flags ...string) (*daemon, error) {
	if err := p.give("htcd", data); err != nil {
		return nil, err
	}
	args := append([]string{"run", "--data", data, "--leader-elect=false", "--pprof-listen=:0"}, flags...)
	cmd, err := p.command(context.WithoutCancel(ctx), "htcd", "", p.lab.Path("htcd", "bin", "htcd"), args...)
	if err != nil {
		return nil, err
	}
	cmd.Env = append(
		[]string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "HOME=/nonexistent"},
		parts.HTCdEnv(p.world)...)
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	log, err := os.Create(filepath.Join(p.results, "htcd.log"))
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = w
	d := &daemon{p: p, cmd: cmd, ended: make(chan error, 1), news: make(chan struct{}), began: time.Now()}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	_ = w.Close()
	go d.read(io.TeeReader(r, log))
	go func() { d.ended <- cmd.Wait() }()
	if err := d.ready(ctx); err != nil {
		return nil, errors.Join(err, d.stop())
	}
	return d, nil
}

// ready waits for /readyz.
func (d *daemon) ready(ctx context.Context) error {
	url := fmt.Sprintf("http://127.0.0.1:%d/readyz", d.p.world.Ports.Health)
	for {
		if answer, err := http.Get(url); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				d.took = time.Since(d.began)
				return nil
			}
		}
		select {
		case err := <-d.ended:
			d.ended <- err
			return fmt.Errorf(
				"htcd ended before it was ready (%w), see %s",
				err,
				filepath.Join(d.p.results, "htcd.log"),
			)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// read follows the log.
func (d *daemon) read(log io.Reader) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct {
			Message, Pass, Profiles string
			Took                    float64
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue
		}
		d.mu.Lock()
		if line.Profiles != "" {
			d.pprof = line.Profiles
		}
		if line.Message == "pass" {
			d.passes = append(d.passes, pass{line.Pass, time.Duration(line.Took * float64(time.Millisecond))})
			close(d.news)
			d.news = make(chan struct{})
		}
		d.mu.Unlock()
	}
}

// pass waits for the nth pass, counted from 0.
func (d *daemon) pass(ctx context.Context, n int) (pass, error) {
	for {
		d.mu.Lock()
		news := d.news
		if len(d.passes) > n {
			defer d.mu.Unlock()
			return d.passes[n], nil
		}
		d.mu.Unlock()
		select {
		case <-news:
		case err := <-d.ended:
			d.ended <- err
			return pass{}, fmt.Errorf("htcd ended: %w", err)
		case <-ctx.Done():
			return pass{}, ctx.Err()
		case <-time.After(5 * time.Minute):
			return pass{}, errors.New("no pass in five minutes")
		}
	}
}

// passed returns how many there were.
func (d *daemon) passed() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.passes)
}

// stop ends it gracefully, or by force if that takes too long.
func (d *daemon) stop() error {
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-d.ended:
		return err
	case <-time.After(40 * time.Second):
		_ = d.cmd.Process.Kill()
		return errors.Join(errors.New("htcd had to be killed"), <-d.ended)
	}
}

// end stops it when a row has been measured.
func (d *daemon) end(err *error) { *err = errors.Join(*err, d.stop()) }

// profile saves a CPU profile of the next seconds and returns immediately; wait blocks until it is saved.
func (d *daemon) profile(name string, seconds int) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := d.save(fmt.Sprintf("%s.cpu.pprof", name), fmt.Sprintf("profile?seconds=%d", seconds)); err != nil {
			fmt.Fprintln(os.Stderr, "bench: profile:", err)
		}
	}()
	return func() { <-done }
}

// ask requests a profile. htcd logged its address before it was ready.
func (d *daemon) ask(path string) (*http.Response, error) {
	d.mu.Lock()
	url := d.pprof + path
	d.mu.Unlock()
	return http.Get(url)
}

func (d *daemon) save(file, path string) error {
	answer, err := d.ask(path)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.p.results, file), data, 0o644)
}

// status reads a size of /proc/PID/status in bytes: VmRSS, or VmHWM, its maximum.
func (d *daemon) status(name string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, name+":"); found {
			kib, err := strconv.Atoi(strings.Fields(value)[0])
			return float64(kib) * 1024, err
		}
	}
	return 0, fmt.Errorf("no %s", name)
}

// starts returns how many programs htcd has started.
func (d *daemon) starts(ctx context.Context) (n float64, err error) {
	err = metrics(ctx, d.p.world.Ports.Health, func(line string) error {
		if !strings.HasPrefix(line, "htcd_program_starts_total{") {
			return nil
		}
		more, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		n += more
		return err
	})
	return n, err
}

// asking returns how long its condor_q and condor_history ran, according to its metrics.
func (d *daemon) asking(ctx context.Context) (sum time.Duration, err error) {
	err = metrics(ctx, d.p.world.Ports.Health, func(line string) error {
		for _, name := range []string{"condor_q", "condor_history"} {
			if value, found := strings.CutPrefix(
				line,
				fmt.Sprintf("htcd_condor_command_duration_seconds_sum{command=%q} ", name),
			); found {
				seconds, err := strconv.ParseFloat(value, 64)
				if err != nil {
					return err
				}
				sum += time.Duration(seconds * float64(time.Second))
			}
		}
		return nil
	})
	return sum, err
}

// forgetMaximum resets VmHWM.
func (d *daemon) forgetMaximum() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", d.cmd.Process.Pid), []byte("5"), 0o200)
}

// cpu returns the CPU time it has used.
func (d *daemon) cpu() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond, errors.Join(err1, err2)
}

func (d *daemon) files() (int, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", d.cmd.Process.Pid))
	return len(entries), err
}

// goroutines returns the count in the first line of the goroutine profile.
func (d *daemon) goroutines() (int, error) {
	answer, err := d.ask("goroutine?debug=1")
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	line, err := bufio.NewReader(answer.Body).ReadString('\n')
	if err != nil {
		return 0, err
	}
	var n int
	_, err = fmt.Sscanf(line, "goroutine profile: total %d", &n)
	return n, err
}
