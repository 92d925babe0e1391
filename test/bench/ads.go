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

// adsText returns n ads as condor_q -json prints them with htcd's projection.
func adsText(n int) []byte {
	var b bytes.Buffer
	b.WriteString("[\n")
	for i := range n {
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, `{
  "ClusterId": %d,
  "EnteredCurrentStatus": 1795220852,
  "ExitBySignal": false,
  "ExitCode": 0,
  "HTCJobAttempt": 1,
  "HTCJobName": "zero-%d",
  "HTCJobNamespace": "default",
  "HTCJobUID": "7f1f7c0e-8a43-4c0e-9d57-2f1b9bb1c7a1",
  "HoldReason": "Spooling \"input\" data files",
  "JobStatus": 4,
  "LastJobStatus": 2,
  "NumJobStarts": 1,
  "ProcId": 0,
  "StageInFinish": 1795220850
}
`, i, i)
	}
	b.WriteString("]\n")
	return b.Bytes()
}

// readingAds measures the reader beside encoding/json's generic decoding of the same ads, and beside merely reading the
// bytes. All take turns; this process's CPU time counts, including garbage collection.
func readingAds(_ context.Context, _ *place, n int) ([]figure, error) {
	text := adsText(n)
	generic := &reader{
		text: text,
		read: func(r io.Reader) error { var ads []map[string]any; return json.NewDecoder(r).Decode(&ads) },
	}
	ours := &reader{
		text: text,
		read: func(r io.Reader) error { return classad.ReadJSON(r, func(classad.Ad) error { return nil }) },
	}
	alone := &reader{
		text: text,
		read: func(r io.Reader) error { _, err := io.Copy(io.Discard, struct{ io.Reader }{r}); return err },
	}
	const turns = 9
	for range turns {
		for _, r := range []*reader{generic, ours, alone} {
			if err := r.turn(); err != nil {
				return nil, err
			}
		}
	}
	return []figure{
		{
			what:  "json",
			ours:  ours.rate(),
			floor: generic.rate(),
			unit:  "MB/s",
			aim:   "5x",
			note: fmt.Sprintf(
				"median of %d, by CPU time; %.1f allocations per ad, encoding/json %.0f; the bytes alone %.0f MB/s",
				turns,
				ours.allocations/float64(n),
				generic.allocations/float64(n),
				alone.rate(),
			),
		},
	}, nil
}

// reader is one way to read a text, with its time in each turn.
type reader struct {
	text        []byte
	read        func(io.Reader) error
	took        []time.Duration
	allocations float64 // in the last turn
}

// turn reads the text repeatedly until that takes long enough to be measured.
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

// rate returns the rate in MB/s.
func (r *reader) rate() float64 { return float64(len(r.text)) / median(r.took) / 1e6 }

// used returns the CPU time of this process so far.
func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
