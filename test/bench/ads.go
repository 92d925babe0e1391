package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

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

// readingAds measures the readers beside encoding/json's generic decoding of the same ads, and reading the bytes alone.
func readingAds(_ context.Context, _ *place, n int) (figures []figure, err error) {
	rate := func(text []byte, read func(io.Reader) error) (mbs, allocations float64) {
		r := testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if failed := read(bytes.NewReader(text)); failed != nil {
					err = failed
				}
			}
		})
		return float64(len(text)) * float64(r.N) / r.T.Seconds() / 1e6, float64(r.AllocsPerOp()) / float64(n)
	}
	generics := adsText(n, "json")
	generic, genericAllocations := rate(generics, func(r io.Reader) error { var ads []map[string]any; return json.NewDecoder(r).Decode(&ads) })
	for _, c := range []struct {
		form string
		read func(io.Reader, func(classad.Ad) error) error
	}{{"json", classad.ReadJSON}, {"long", classad.ReadLong}} {
		text := adsText(n, c.form)
		floor := generic * float64(len(text)) / float64(len(generics)) // as fast as it reads the same ads
		ours, allocations := rate(text, func(r io.Reader) error { return c.read(r, func(classad.Ad) error { return nil }) })
		alone, _ := rate(text, func(r io.Reader) error { _, err := io.Copy(io.Discard, struct{ io.Reader }{r}); return err })
		figures = append(figures, figure{
			what: c.form, ours: ours, floor: floor, unit: "MB/s", aim: "5x",
			note: fmt.Sprintf("%.1f allocations per ad, encoding/json %.0f; the bytes alone %.0f MB/s", allocations, genericAllocations, alone),
		})
		if n := strings.Count(string(text), "ClusterId"); n == 0 {
			return nil, fmt.Errorf("no ads in %s", c.form)
		}
	}
	return figures, err
}
