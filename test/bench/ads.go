package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"syscall"
	"time"

	"htc.cern.ch/htcd/internal/classad"
)

// adsText is n ads as condor_q prints them with htcd's projection, in one form or the other.
func adsText(n int, form string) []byte {
	var b bytes.Buffer
	pair, between, begin, end := "%s = %s\n", "", "", "\n"
	if form == "json" {
		pair, between, begin, end = "  %q: %s", ",\n", "{\n", "\n}\n"
		b.WriteString("[\n")
	}
	for i := range n {
		if i > 0 && form == "json" {
			b.WriteString(",\n")
		}
		b.WriteString(begin)
		for k, a := range [][2]string{
			{"ClusterId", fmt.Sprint(i)}, {"EnteredCurrentStatus", "1795220852"}, {"ExitBySignal", "false"}, {"ExitCode", "0"}, {"HTCJobAttempt", "1"},
			{"HTCJobName", fmt.Sprintf(`"zero-%d"`, i)}, {"HTCJobNamespace", `"default"`}, {"HTCJobUID", `"7f1f7c0e-8a43-4c0e-9d57-2f1b9bb1c7a1"`},
			{"HoldReason", `"Spooling \"input\" data files"`}, {"JobStatus", "4"}, {"LastJobStatus", "2"}, {"NumJobStarts", "1"}, {"ProcId", "0"},
			{"StageInFinish", "1795220850"},
		} {
			if k > 0 {
				b.WriteString(between)
			}
			fmt.Fprintf(&b, pair, a[0], a[1])
		}
		b.WriteString(end)
	}
	if form == "json" {
		b.WriteString("]\n")
	}
	return b.Bytes()
}

// readingAds measures the readers beside encoding/json's generic decoding of the same ads, and reading the bytes alone. All
// take turns, and what counts is this process's CPU time, collecting garbage included.
func readingAds(_ context.Context, _ *place, n int) ([]figure, error) {
	readers := []*reader{
		{text: adsText(n, "json"), read: func(r io.Reader) error { var ads []map[string]any; return json.NewDecoder(r).Decode(&ads) }},
		{form: "json", text: adsText(n, "json"), read: func(r io.Reader) error { return classad.ReadJSON(r, func(classad.Ad) error { return nil }) }},
		{form: "long", text: adsText(n, "long"), read: func(r io.Reader) error { return classad.ReadLong(r, func(classad.Ad) error { return nil }) }},
		{text: adsText(n, "json"), read: func(r io.Reader) error { _, err := io.Copy(io.Discard, struct{ io.Reader }{r}); return err }},
	}
	const turns = 9
	for range turns {
		for _, r := range readers {
			if err := r.turn(); err != nil {
				return nil, err
			}
		}
	}
	generic, alone := readers[0], readers[3]
	var figures []figure
	for _, r := range readers[1:3] {
		floor := generic.rate() * float64(len(r.text)) / float64(len(generic.text)) // as fast as it reads the same ads
		figures = append(figures, figure{
			what: r.form, ours: r.rate(), floor: floor, unit: "MB/s", aim: "5x",
			note: fmt.Sprintf("median of %d, by CPU time; %.1f allocations per ad, encoding/json %.0f; the bytes alone %.0f MB/s",
				turns, r.allocations/float64(n), generic.allocations/float64(n), alone.rate()),
		})
	}
	return figures, nil
}

// reader is one way to read a text, and what it took in each turn.
type reader struct {
	form        string
	text        []byte
	read        func(io.Reader) error
	took        []time.Duration
	allocations float64 // in the last turn
}

// turn reads the text some times, until that takes long enough to be measured.
func (r *reader) turn() error {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began, times := used(), 0
	for ; times == 0 || used()-began < 200*time.Millisecond; times++ {
		if err := r.read(bytes.NewReader(r.text)); err != nil {
			return err
		}
	}
	took := (used() - began) / time.Duration(times)
	runtime.ReadMemStats(&after)
	r.took, r.allocations = append(r.took, took), float64(after.Mallocs-before.Mallocs)/float64(times)
	return nil
}

// rate is in MB/s.
func (r *reader) rate() float64 { return float64(len(r.text)) / median(r.took) / 1e6 }

// used is the CPU time of this process so far.
func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
