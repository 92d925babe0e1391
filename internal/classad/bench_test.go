package classad

import (
	"fmt"
	"strings"
	"testing"
)

func benchText(ads int) string {
	var b strings.Builder
	b.WriteString("[\n")
	for i := range ads {
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
	return b.String()
}

func BenchmarkRead10000Ads(b *testing.B) {
	s := benchText(10000)
	b.SetBytes(int64(len(s)))
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		if err := ReadJSON(strings.NewReader(s), func(Ad) error { n++; return nil }); err != nil || n != 10000 {
			b.Fatal(n, err)
		}
	}
}

func BenchmarkParseExpr(b *testing.B) {
	const s = `(TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (TARGET.Disk >= RequestDisk) && ifThenElse(MaxRuntime =!= undefined, MaxRuntime, 3600) > 60`
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		if _, err := ParseExpr(s); err != nil {
			b.Fatal(err)
		}
	}
}
