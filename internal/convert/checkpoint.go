package convert

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/convert/submitfile"
)

// checkpointRE matches what the API takes for a file of a checkpoint.
var checkpointRE = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+=@%~:!-]*(/[A-Za-z0-9_][A-Za-z0-9_.+=@%~:!-]*)*$`)

func checkpointCode(v *view, value string, by *submitfile.Statement) {
	code, err := strconv.ParseInt(value, 10, 32)
	if err != nil || code < 2 || code > 124 {
		v.say(by, Cannot, "a checkpoint cannot have the return code "+value+": others end with it, too, when they fail",
			"one from 2 to 124, in the program as well", "")
		return
	}
	c := v1alpha1.Checkpoint{ExitCode: int32(code)}
	files, from := v.value("transfer_checkpoint_files")
	if from == nil { // HTCondor takes what the job brings back
		files, from = v.value("transfer_output_files")
	}
	if from == nil || len(commas(files)) == 0 {
		v.say(by, Cannot, "a checkpoint has names", "transfer_checkpoint_files = FILE, FILE beside it", "")
		return
	}
	for _, file := range commas(files) {
		file = strings.TrimSuffix(strings.TrimPrefix(file, "./"), "/")
		if !checkpointRE.MatchString(file) || reservedRE.MatchString(file) || len(file) > 200 {
			v.say(from, Cannot, "a file of a checkpoint must not be called "+file,
				"a relative path of letters, digits and _ . + = @ % ~ : -, no part of which begins with a dot", "")
			continue
		}
		if !slices.Contains(c.Files, v1alpha1.CheckpointFile(file)) {
			c.Files = append(c.Files, v1alpha1.CheckpointFile(file))
		}
	}
	if len(c.Files) == 0 || len(c.Files) > maxOutputs {
		v.say(by, Cannot, "a checkpoint has 1 to "+strconv.Itoa(maxOutputs)+" files", "a directory", "")
		return
	}
	v.shape.Spec.Checkpoint = &c
	v.say(by, Taken, "", "", "spec.checkpoint.exitCode")
}

func checkpointFiles(v *view, _ string, by *submitfile.Statement) {
	if code, _ := v.value("checkpoint_exit_code"); code == "" {
		v.say(by, Moot, "without checkpoint_exit_code there are no checkpoints", "", "")
		return
	}
	v.say(by, Taken, "", "", "spec.checkpoint.files")
}

// onEviction is what ON_EXIT_OR_EVICT says. Beside the code of a checkpoint it means nothing: HTCondor keeps its files.
func onEviction(v *view, by *submitfile.Statement) {
	code, _ := v.value("checkpoint_exit_code")
	universe, _ := v.value("universe")
	switch {
	case code != "":
		v.say(by, Moot, "checkpoint.files are what an eviction leaves", "", "")
	case strings.EqualFold(universe, "parallel"):
		v.say(by, Cannot, "of a job of several nodes nothing is kept when it is evicted",
			"files that the program writes elsewhere as it goes on", "")
	default:
		v.shape.Spec.Checkpoint = &v1alpha1.Checkpoint{OnEviction: true}
		v.say(by, Taken, "", "", "spec.checkpoint.onEviction")
	}
}
