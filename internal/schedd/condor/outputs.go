package condor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

const (
	MaxOutputs    = 20
	MaxOutputPath = 200 // all of them are in an attribute, which MaxText bounds
)

// MissingSignal is the signal by which the wrapper ends when the first output is missing; the next number says that the
// second one is, and so on. Nothing else sends these to the wrapper: the script is in a PID namespace of its own, and
// whatever it returns is a return code. Where a site runs jobs in a shell or a container of its own, HTCondor sees 128
// more as the return code instead; as a script may return that, too, it is told as what it is, and the standard error
// says what is missing.
const MissingSignal syscall.Signal = 40

// MayLack reports whether the job's end may mean that an output is missing. Only its reasons show which one (see
// ErrReasons).
func (j Job) MayLack() bool {
	_, may := j.lacks()
	return may
}

// lacks returns the number of the missing output that the job's end stands for.
func (j Job) lacks() (n int, may bool) {
	if !j.Done() || j.ExitBySignal == nil || !*j.ExitBySignal || j.ExitSignal == nil {
		return 0, false
	}
	n = *j.ExitSignal - int(MissingSignal)
	return n, n >= 0 && n < MaxOutputs
}

// missing returns the outcome of a job that ended without one of its outputs.
func (j Job) missing() (Outcome, bool) {
	n, may := j.lacks()
	paths := strings.Split(j.Outputs, ",")
	if !may || j.Outputs == "" || n >= len(paths) {
		return Outcome{}, false
	}
	path := paths[n]
	if slices.ContainsFunc([]rune(path), func(r rune) bool { return !strconv.IsPrint(r) }) ||
		len(path) > MaxOutputPath {
		path = fmt.Sprintf("number %d", n+1) // htcd has not written this
	}
	return Outcome{State: OutcomeFailed, Reason: "OutputMissing",
		Message: "the script succeeded, but left no " + path + ", which spec.outputs names"}, true
}

// MaxText is the maximum length of an attribute's text, in bytes: the schedd omits longer ones.
const MaxText = 4 << 10
