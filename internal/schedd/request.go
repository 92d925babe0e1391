package schedd

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Request is what an idle job asks for.
type Request struct {
	Cluster, Proc int
	Size          Size
	Requirements  [sha256.Size]byte // sum of their text: jobs with the same one and the same size match the same slots
	InVain        int64             // how often HTCondor has started it, if its script has never begun
}

// requestColumns are evaluated by condor_q, which needs the attributes that they and their expressions refer to: those
// in the last line are what htcd's spec.memoryRetry and HTCondor's defaults refer to.
var requestColumns = []string{
	"ClusterId", "ProcId", "RequestCpus", "RequestGPUs", "RequestMemory", "RequestDisk", "unparse(Requirements)",
	startsInVain,
	"NumHoldsByReason", "MemoryUsage", "ResidentSetSize", "ImageSize", "DiskUsage",
}

// startsInVain is Request.InVain. A shadow that cannot set its job up ends before it counts as a start of the job.
const startsInVain = "ifThenElse((NumJobStarts > 0) =?= true, 0, NumShadowStarts)"

// ManyInVain is from which number on starts in vain are no accident.
const ManyInVain = 5

// longestRequirements is the longest text of requirements that is asked for, in bytes: more than htcd lets users write.
const longestRequirements = 16 << 10

// Requests calls fn for those of the given jobs that have been idle for that long, or have been started many times in
// vain. Numbers that the schedd cannot tell are 0.
func (c *Client) Requests(
	ctx context.Context,
	id Identity,
	jobIDs []string,
	idle time.Duration,
	fn func(Request),
) error {
	args, err := c.target(ctx, id)
	if err != nil {
		return err
	}
	var clusters []int
	for i, jobID := range jobIDs {
		text, _, _ := strings.Cut(jobID, ".")
		cluster, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("job id %q: %w", jobID, err)
		}
		clusters = append(clusters, cluster)
		jobIDs[i] = classad.Quote(jobID)
	}
	short := fmt.Sprintf("(size(unparse(Requirements)) > %d) =!= true", longestRequirements)
	for _, name := range requestColumns[2:6] {
		short += fmt.Sprintf(" && (size(unparse(%s)) > %d) =!= true", name, condor.MaxText)
	}
	these := fmt.Sprintf(
		`%s && (JobStatus == %d && time() - EnteredCurrentStatus >= %d || JobStatus <= %d && %s >= %d) && `+
			`member(strcat(ClusterId, ".", ProcId), {%s}) && %s`,
		anyOf("ClusterId", clusters),
		condor.Idle,
		int(idle.Seconds()),
		condor.Running,
		startsInVain,
		ManyInVain,
		strings.Join(jobIDs, ","),
		short,
	)
	args = append(append(args, "-allusers", "-constraint", these, "-af:t"), requestColumns...)
	return c.run(
		ctx,
		command{name: "condor_q", args: args, id: id, timeout: c.o.Timeout, read: func(r io.Reader) error {
			lines := bufio.NewScanner(r)
			lines.Buffer(nil, 1<<20)
			for lines.Scan() {
				if request, ok := readRequest(lines.Text()); ok {
					fn(request)
				}
			}
			return lines.Err()
		}},
	)
}

// readRequest reads a line. The owner of a job may have written anything into it.
func readRequest(line string) (r Request, ok bool) {
	words := strings.Split(line, "\t")
	if len(words) < len(requestColumns) {
		return r, false
	}
	var n [8]int64
	for i := range n {
		f, err := strconv.ParseFloat(words[i], 64)
		if err == nil && f > 0 {
			n[i] = int64(min(f, 1<<60))
		}
	}
	return Request{
		Cluster: int(n[0]), Proc: int(n[1]), Size: Size{CPUs: n[2], GPUs: n[3], Memory: n[4], Disk: n[5]},
		Requirements: sha256.Sum256([]byte(words[6])), InVain: n[7],
	}, n[0] > 0
}
