package submit

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

//go:embed checkpoint.sh
var checkpointBody string

// Checkpoint lets a job go on where it was when it is evicted. Its script ends with a return code of its own whenever
// it has written the files. HTCondor keeps them then, and starts it again: at once, and with the last ones after an
// eviction.
type Checkpoint struct {
	ExitCode   int
	Files      []string // paths of files and directories in the script's directory
	OnEviction bool     // instead of both: HTCondor keeps what the script leaves as output when it is evicted
}

// DirCheckpoint is the directory that HTCondor keeps for it. A directory is replaced as a whole by the next one, and
// what is missing in it puts no job on hold.
const DirCheckpoint = ".htcd-ckpt"

// Programs fail with 1. Shells, apptainer and the wrapper end with more than 124 if the script could not run, or was
// killed: HTCondor would begin it again without end.
const (
	leastCheckpoint = 2
	mostCheckpoint  = 124
)

func (d Description) checkCheckpoint(codes []int, options []option) error {
	c := d.Checkpoint
	if c == nil {
		return nil
	}
	until, _ := value(options, "retry_until")
	switch {
	case c.OnEviction && (c.ExitCode != 0 || len(c.Files) > 0):
		return condor.Refusal("spec.checkpoint: onEviction is instead of exitCode and files: leave them out")
	case c.OnEviction && d.Interactive > 0:
		return condor.Refusal(
			"spec.checkpoint: an interactive job runs no script that could leave something: leave it out",
		)
	case c.OnEviction:
		return nil
	case c.ExitCode < leastCheckpoint || c.ExitCode > mostCheckpoint:
		return condor.Refusal(
			"spec.checkpoint.exitCode: found %d, expected %d to %d, such as 85: others are how programs end that have failed, were killed or could not run",
			c.ExitCode,
			leastCheckpoint,
			mostCheckpoint,
		)
	case slices.Contains(codes, c.ExitCode):
		return condor.Refusal(
			"spec.checkpoint.exitCode: %d is a success, too: let the script return another code for a checkpoint",
			c.ExitCode,
		)
	case until == strconv.Itoa(c.ExitCode):
		return condor.Refusal(
			"spec.checkpoint.exitCode: %d is that of retry_until, too: let the script return another code for a checkpoint",
			c.ExitCode,
		)
	case d.Interactive > 0:
		return condor.Refusal(
			"spec.checkpoint: an interactive job runs no script that could write a checkpoint: leave it out",
		)
	case len(c.Files) == 0 || len(c.Files) > condor.MaxOutputs:
		return condor.Refusal(
			"spec.checkpoint.files: expected 1 to %d, found %d: name a directory",
			condor.MaxOutputs,
			len(c.Files),
		)
	}
	for i, file := range c.Files {
		top, _, _ := strings.Cut(file, "/")
		switch {
		case len(file) > condor.MaxOutputPath || strings.ContainsAny(file, "*?[]") || !outputPathRE.MatchString(file):
			return condor.Refusal(
				"spec.checkpoint.files: found %q, expected a path in the script's directory of letters, digits and _ . + = @ %% ~ : ! -, at most %d, in which no part begins with a dot; for files whose names change name their directory",
				condor.Clip(file),
				condor.MaxOutputPath,
			)
		case slices.Contains(takenFiles, top) || strings.HasPrefix(top, "_condor"):
			return condor.Refusal(
				"spec.checkpoint.files: found %q, a name that htcd or HTCondor uses: let the script give the file another name",
				file,
			)
		case slices.ContainsFunc(d.Inputs, func(in Input) bool { return in.Secret && in.Name == top }):
			return condor.Refusal(
				"spec.checkpoint.files: %s comes from a Secret, which the job gets anew each time: leave it out",
				file,
			)
		case slices.Contains(c.Files[:i], file):
			return condor.Refusal("spec.checkpoint.files: found %q twice", file)
		}
	}
	return nil
}

// whenToTransfer returns the value of when_to_transfer_output.
func (d Description) whenToTransfer() string {
	if d.Checkpoint != nil && d.Checkpoint.OnEviction {
		return "ON_EXIT_OR_EVICT"
	}
	return "ON_EXIT"
}

// checkpointLines returns the submit lines for checkpoints.
func (d Description) checkpointLines() []option {
	if d.Checkpoint == nil || d.Checkpoint.OnEviction {
		return nil
	}
	return []option{
		{"checkpoint_exit_code", strconv.Itoa(d.Checkpoint.ExitCode)},
		{"transfer_checkpoint_files", DirCheckpoint},
	}
}

// setCheckpoint sets what checkpoint.sh needs.
func (d Description) setCheckpoint(set func(name, value string)) {
	if d.Checkpoint == nil || d.Checkpoint.OnEviction {
		set("checkpoint", "")
		set("evictable", one(d.Checkpoint != nil))
		return
	}
	set("evictable", "")
	set("checkpoint", strconv.Itoa(d.Checkpoint.ExitCode))
	set("saved", strings.Join(d.Checkpoint.Files, "\n"))
	set("unsaved", strconv.Itoa(int(condor.UnsavedSignal)))
}
