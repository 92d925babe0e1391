package schedd

import (
	"bufio"
	"io"
	"regexp"
	"strconv"
	"strings"

	"htc.cern.ch/htcd/internal/schedd/plaintext"
)

// What condor_q -better-analyze prints. 25.14 counts "slots" where 23.9 writes nothing, and machines besides.
var (
	summaryLine = regexp.MustCompile(`Run analysis summary .*  Of (\d+) (?:machines|slots)`)
	countLine   = regexp.MustCompile(
		`^ *(\d+) (?:slots )?(are rejected by your job's requirements|reject your job because of their own requirements)`,
	)
	stepLine = regexp.MustCompile(`^\[\d+\] +(\d+)  (.+)$`)
)

const (
	maxAnalysed = 64 << 10 // bytes of a line: a job's requirements may be long
	maxSteps    = 200      // that are kept
)

func readAnalysis(r io.Reader) (a Analysis, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxAnalysed)
	for lines.Scan() {
		line := lines.Text()
		if m := stepLine.FindStringSubmatch(line); m != nil && len(a.Steps) < maxSteps {
			n, _ := strconv.Atoi(m[1])
			a.Steps = append(a.Steps, Step{plaintext.Line(strings.TrimSpace(m[2])), n})
		}
		if m := summaryLine.FindStringSubmatch(line); m != nil {
			a.Slots, _ = strconv.Atoi(m[1])
		}
		if m := countLine.FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[1])
			if strings.HasPrefix(m[2], "are") {
				a.Rejects = n
			} else {
				a.Refused = n
			}
		}
	}
	return a, lines.Err()
}
