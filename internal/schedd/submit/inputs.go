package submit

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Input is a file that htcd brings into the directory of the script.
type Input struct {
	Name   string
	OfProc bool // every proc gets its own
	Secret bool // it is removed before HTCondor brings back output
	Unpack Unpack
	// HTCondor fetches it on the execute node; empty: htcd brings it. {{item.NAME}} and {{proc}} are replaced
	URL string
}

// The directories, in that of the run, whose contents HTCondor transfers: one for all procs, beside one for each of
// those that have files of their own, called by its number. They exist before Submit, as far as there are such inputs.
const (
	InputsDir    = ".in"
	InputsShared = "shared"
)

var (
	inputsShared = InputsDir + "/" + InputsShared + "/"
	inputsOfProc = InputsDir + "/$(ProcId)/"

	inputRE = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,127}$`)
	// takenFiles are names that htcd and HTCondor use in the directory of the script.
	takenFiles = []string{fileScript, fileToken, fileSender, fileJob, FileSubmit, "condor_exec.exe", "tmp", "var"}
)

// Taken reports whether a path in the script's directory begins with a name that htcd and HTCondor use.
func Taken(name string) bool {
	top, _, _ := strings.Cut(name, "/")
	return slices.Contains(takenFiles, top) || strings.HasPrefix(top, "_condor") || strings.HasPrefix(top, ".")
}

// inputDirs lists what transfer_input_files needs for the inputs. The trailing slashes mean the contents.
func (d Description) inputDirs() []string {
	var dirs []string
	if slices.ContainsFunc(d.Inputs, func(in Input) bool { return !in.OfProc && in.URL == "" }) {
		dirs = append(dirs, inputsShared)
	}
	if slices.ContainsFunc(d.Inputs, func(in Input) bool { return in.OfProc && in.URL == "" }) {
		dirs = append(dirs, inputsOfProc)
	}
	return dirs
}

// inputNames lists the names of inputs, or of Secrets among them.
func (d Description) inputNames(secret bool) string {
	var names []string
	for _, in := range d.Inputs {
		if in.Secret || !secret {
			names = append(names, in.Name)
		}
	}
	return strings.Join(names, " ")
}

// checkInputs refuses names that would be another file's, or more than a name.
func (d Description) checkInputs() error {
	seen := map[string]bool{}
	for _, in := range d.Inputs {
		switch {
		case !inputRE.MatchString(in.Name):
			return condor.Refusal(
				"spec.inputs: name %q: expected at most 128 letters, digits and _ . + -, the first a letter, a digit or _",
				in.Name,
			)
		case slices.Contains(takenFiles, in.Name) || strings.HasPrefix(in.Name, "_condor"):
			return condor.Refusal("spec.inputs: name %q: htcd or HTCondor uses it: choose another", in.Name)
		case seen[in.Name]:
			return condor.Refusal("spec.inputs: there are two of the name %q", in.Name)
		}
		seen[in.Name] = true
	}
	return d.checkInputURLs()
}

// checkSecretOutputs refuses output files that are inputs from Secrets.
func (d Description) checkSecretOutputs(options []option) error {
	for _, o := range options {
		if o.key != "transfer_output_files" {
			continue
		}
		for _, name := range strings.Split(o.value, ",") {
			name = path.Clean(strings.TrimSpace(name))
			if slices.ContainsFunc(
				d.Inputs,
				func(in Input) bool { return in.Secret && (in.Name == name || strings.HasPrefix(name, in.Name+"/")) },
			) {
				return condor.Refusal("transfer_output_files: %s comes from a Secret and is never brought back", name)
			}
		}
	}
	return nil
}
