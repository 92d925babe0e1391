package condor

import "syscall"

// NoImageSignal is the signal by which the wrapper ends when it is certain that the node has no image, so that the
// script has not begun: no such file, or none that could be fetched with the login. Nothing else sends it to the
// wrapper.
const NoImageSignal syscall.Signal = UnsavedSignal - 1

// noImage returns the outcome of a job without an image.
func (j Job) noImage() (Outcome, bool) {
	is := j.ExitBySignal != nil && *j.ExitBySignal && j.ExitSignal != nil && *j.ExitSignal == int(NoImageSignal)
	return Outcome{
		State:   OutcomeFailed,
		Reason:  "ImageMissing",
		Message: "the node does not have the image, or could not fetch it with its login: the script has not begun; its standard error says more",
	}, is
}
